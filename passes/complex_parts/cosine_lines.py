"""Cosine transforms of type 2 as transforms of real lines, whose last step turns the frequencies and leaves real ones.

lavax.scipy.fft writes them as an `rfft` with half a spectrum a + bi of frequencies k from 0 to h, half of the n points,
with which two tables c and s give 2(a·c + b·s) at the place k and 2(a·s − b·c) at n − k. Where the device has such a
step, both are computed where the spectrum is, and not by a kernel that reads it twice. What the tables hold is not
asked. Sine transforms turn the result round.
"""
from __future__ import annotations

from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.passes.build.builder import build, reshape
from lavax.passes.build.matching import is_value
from lavax.passes.complex_parts.fourier import has_steps, largest_prime
from lavax.passes.target.target import Transforms


@dataclass(frozen=True)
class CosineLines:
    """A transform that is found: of these lines, with these tables."""

    lines: Node
    cosines: Node
    sines: Node


def with_cosine_lines(graph: Graph, transforms: Transforms) -> Graph:
    """The graph with `fourier_cosines` for all cosine transforms of type 2 that the device has a step for; itself if
    there are none."""
    if not transforms.cosines or not any(node.op == "rfft" for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    is_changed = False
    readers = reader_counts(graph)
    for node in graph.nodes:
        is_turned = node.op == "flip" and node.attrs["axes"] == (node.type.rank - 1,)
        is_reversed = is_turned and readers[node.operands[0]] == 1
        whole = node.operands[0] if is_reversed else node
        lines = cosine_lines(whole, readers) if whole.op == "concatenate" else None
        half = node.shape[-1] // 2 if lines is not None else 0
        if lines is not None and _has_step(lines.lines, half, transforms):
            pairs = reshape(found[lines.lines], (prod(node.shape[:-1]), half, 1, 2))
            tables = found[lines.cosines], found[lines.sines]
            found[node] = build("fourier_cosines", pairs, *tables, type=node.type, reverse=is_reversed)
            is_changed = True
        else:
            found[node] = with_operands(node, tuple([found[operand] for operand in node.operands]))
    return graph_of(graph.inputs, [found[output] for output in graph.outputs]) if is_changed else graph


def _has_step(lines: Node, half: int, transforms: Transforms) -> bool:
    is_smooth = has_steps(half, largest_prime(lines, transforms))
    return is_smooth and len(transforms.mirrored_steps(half, False)) > 0


def reader_counts(graph: Graph) -> dict[Node, int]:
    """How often each value is read."""
    count: dict[Node, int] = dict.fromkeys(graph.outputs, 1)
    for node in graph.nodes:
        for operand in node.operands:
            count[operand] = count.get(operand, 0) + 1
    return count


def cosine_lines(whole: Node, readers: dict[Node, int]) -> CosineLines | None:
    """The lines and tables of a concatenation that is a cosine transform whose spectrum nothing else reads."""
    last = whole.type.rank - 1
    length = whole.shape[-1]
    # Of four points, the only number that is turned round is no `flip`.
    if len(whole.operands) != 2 or whole.attrs["axis"] != last or length % 2 or length < 6:
        return None
    ahead, mirrored = whole.operands
    if mirrored.op != "flip" or mirrored.attrs["axes"] != (last,) or mirrored.operands[0].op != "slice":
        return None
    cut = mirrored.operands[0]
    starts, limits, strides = (tuple(cut.attrs[name]) for name in ("start", "limit", "stride"))
    back = cut.operands[0]
    is_inner = starts == (*(0,) * last, 1) and limits == (*whole.shape[:-1], length // 2) and set(strides) == {1}
    if not is_inner or back.shape != ahead.shape or ahead.shape[-1] != length // 2 + 1:
        return None
    sum, difference = _doubled(ahead, "add"), _doubled(back, "subtract")
    if sum is None or difference is None:
        return None
    (real, c), (imaginary, s) = (product.operands for product in sum.operands)
    (other_real, other_s), (other_imaginary, other_c) = (product.operands for product in difference.operands)
    if (real, c, imaginary, s) != (other_real, other_c, other_imaginary, other_s):
        return None
    if (real.op, imaginary.op) != ("real", "imag") or real.operands != imaginary.operands:
        return None
    (spectrum,) = real.operands
    is_alone = readers[spectrum] == readers[real] == readers[imaginary] == 2
    tables = _line_of(c), _line_of(s)
    if spectrum.op != "rfft" or not is_alone or tables[0] is None or tables[1] is None:
        return None
    return CosineLines(spectrum.operands[0], tables[0], tables[1])


def _doubled(value: Node, op: str) -> Node | None:
    """The sum or difference of two products whose double the value is."""
    if value.op != "multiply" or not is_value(value.operands[1], 2.0) or value.operands[0].op != op:
        return None
    found = value.operands[0]
    return found if all(operand.op == "multiply" for operand in found.operands) else None


def _line_of(table: Node) -> Node | None:
    """The line that is repeated for all others."""
    if table.type.rank == 1:
        return table
    is_repeated = table.op == "broadcast" and tuple(table.attrs["axes"]) == (table.type.rank - 1,)
    is_line = is_repeated or (table.op == "reshape" and table.type.size == table.shape[-1])
    return table.operands[0] if is_line and table.operands[0].type.rank == 1 else None
