"""Transforms of real lines of which one part of the spectrum is read alone, as cosine and sine transforms of type 1 do,
or the conjugates, as `ihfft` does.

Where the device has a last step for the spectra of pairs, it writes that part or these, and no kernel copies it.
"""
from __future__ import annotations

from collections.abc import Mapping
from math import prod

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.ops.lowered.fourier import CONJUGATES, ONLY_REAL, ONLY_SINES
from lavax.ir.ops.lowered.lines_across import TURNED
from lavax.passes.build.builder import build, reshape
from lavax.passes.complex_parts.cosine_lines import reader_counts
from lavax.passes.complex_parts.fourier import across_of, beside_of, has_steps, largest_prime
from lavax.passes.complex_parts.parts import Parts, separated
from lavax.passes.target.target import Transforms


def with_spectrum_parts(graph: Graph, transforms: Transforms) -> Graph:
    """The graph with steps that write one part alone; itself if there are none."""
    if not transforms.cosines or not any(node.op == "rfft" for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    readers, is_changed = reader_counts(graph), False
    for node in graph.nodes:
        part = _part_of(node, readers)
        conjugates = _conjugates_where_they_are(part, found, transforms) if part is not None else None
        if conjugates is not None:
            found[node] = build("complex", *conjugates.nodes)
            is_changed = True
        elif part is not None and _has_step(*part, transforms):
            lines, only = part
            pairs = reshape(found[lines], (prod(lines.shape[:-1]), lines.shape[-1] // 2, 1, 2))
            found[node] = _step(pairs, node, only)
            is_changed = True
        else:
            found[node] = with_operands(node, tuple([found[operand] for operand in node.operands]))
    return graph_of(graph.inputs, [found[output] for output in graph.outputs]) if is_changed else graph


def _step(pairs: Node, node: Node, only: int) -> Node:
    """The step that gives what a node is."""
    if only != CONJUGATES:
        return build("fourier_spectrum", pairs, type=node.type, only=only)
    whole = build("fourier_spectrum", pairs, type=pairs.type.with_shape((*node.shape, 2)), only=only)
    return build("complex", *separated(whole).nodes)


def _conjugates_where_they_are(
    part: tuple[Node, int], found: Mapping[Node, Node], transforms: Transforms
) -> Parts | None:
    """The conjugates where lines along another axis are not put along memory: of lines turned round, or of those that
    lie beside each other."""
    lines, only = part
    if only != CONJUGATES or lines.op != "transpose":
        return None
    length = lines.shape[-1]
    across = across_of([lines], length, largest_prime(lines, transforms), False, transforms)
    if across is not None:
        return across.of_reals(found[lines.operands[0]], TURNED)
    beside = beside_of([lines], length, False, transforms) if length % 2 == 0 else None
    return beside.of_reals(found[lines.operands[0]], CONJUGATES) if beside is not None else None


def _part_of(node: Node, readers: dict[Node, int]) -> tuple[Node, int] | None:
    """The lines of whose spectra, which nothing else reads, a value is one part, and which."""
    if node.op == "conjugate":
        return _lines_beneath(node, readers, CONJUGATES)
    if node.op == "real":
        return _lines_beneath(node, readers, ONLY_REAL)
    if node.op != "negate" or node.operands[0].op != "slice":
        return None
    (cut,) = node.operands
    (part,) = cut.operands
    if part.op != "imag" or readers[cut] > 1 or readers[part] > 1:
        return None
    last, inner = part.type.rank - 1, [*(0,) * (part.type.rank - 1), 1]
    limit = [*part.shape[:last], part.shape[last] - 1]
    is_inner = [*cut.attrs["start"]] == inner and [*cut.attrs["limit"]] == limit and {*cut.attrs["stride"]} <= {1}
    return _lines_beneath(part, readers, ONLY_SINES) if is_inner else None


def _lines_beneath(part: Node, readers: dict[Node, int], only: int) -> tuple[Node, int] | None:
    (spectrum,) = part.operands
    return (spectrum.operands[0], only) if spectrum.op == "rfft" and readers[spectrum] == 1 else None


def _has_step(lines: Node, only: int, transforms: Transforms) -> bool:
    if only == CONJUGATES and lines.op == "transpose":
        return False  # those are put along memory where they are read
    length = lines.shape[-1]
    is_smooth = length % 2 == 0 and length > 2 and has_steps(length // 2, largest_prime(lines, transforms))
    return is_smooth and len(transforms.mirrored_steps(length // 2, False, lines.dtype)) > 0
