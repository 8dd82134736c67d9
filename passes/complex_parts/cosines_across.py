"""Cosine transforms of types 2 and 3 of lines that had another axis before they were put along memory.

Steps on real lines whose neighbours are neighbouring lines read each of a line's numbers wherever it is, and write it
so, and what a cosine transform does before and after a Fourier transform is of one place, or of two. So nothing is
transposed where the device has such steps. Few lines beside each other, an odd number, are put along memory before a
type 2, whose last step writes them where they were.
"""
from __future__ import annotations

from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.passes.build.builder import build, flip, reshape, reshaped, transposed
from lavax.passes.complex_parts.cosine_lines import reader_counts
from lavax.passes.complex_parts.folded_lines import folded_line, unfolded_line
from lavax.passes.target.target import Transforms


@dataclass(frozen=True)
class _Lines:
    """Lines along an axis of a value, what their numbers at odd places are multiplied by, 1 or −1, in an order of
    cosine transforms, the order of axes in which they are along memory, and a factor of the first number."""

    value: Node
    sign: int
    axes: tuple[int, ...]
    first: float = 1.0

    @property
    def form(self) -> tuple[int, int, int]:
        """How many lines follow each other, the places of each, and how many are neighbours."""
        shape, axis = self.value.shape, self.axes[-1]
        return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def with_cosines_across(graph: Graph, transforms: Transforms) -> Graph:
    """The graph with cosine transforms along other axes than the last one where they are; itself if there are none."""
    if not any(node.op in ("fourier_cosines", "fourier_from_cosines") for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    counts, readers = reader_counts(graph), dict.fromkeys(graph.inputs, 2)
    for node in graph.nodes:
        given = _in_order(with_operands(node, tuple([found[operand] for operand in node.operands])))
        forward, inverse = _lines_of_type_2(given), _lines_of_type_3(given, readers)
        if forward is not None and _has_steps(forward, False, transforms):
            attrs = {"folded": forward.sign, "cosines": -1 if given.attrs["reverse"] else 1}
            (lines, length, behind), tables = forward.form, given.operands[1:]
            whole = reshape(forward.value, (lines, length, 1, behind))
            step = build("fourier_across_from_reals", whole, *tables, type=forward.value.type, **attrs)
            given = reshaped(transposed(step, forward.axes), node.shape)
        elif forward is not None and _are_beside(forward, transforms):
            type, attrs = forward.value.type, {**given.attrs, "beside": forward.form[2]}
            step = build("fourier_cosines", *given.operands, type=type, **attrs)
            given = reshaped(transposed(step, forward.axes), node.shape)
        elif inverse is not None and _has_steps(inverse, True, transforms):
            attrs = {"columns": inverse.form[1], "folded": inverse.sign, "cosines": 1}
            whole, type = reshape(inverse.value, inverse.form), inverse.value.type
            step = build("fourier_across_to_reals", whole, type=type, first=inverse.first, **attrs)
            given = reshaped(transposed(step, inverse.axes), node.shape)
        found[node], readers[given] = given, counts.get(node, 0)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _in_order(node: Node) -> Node:
    """A value that is transposed twice, as one is that is put back, is so once or not at all, and one that is turned
    round after is so before."""
    if node.op not in ("transpose", "flip") or node.operands[0].op != "transpose":
        return node
    (inner,) = node.operands
    axes = [inner.attrs["axes"][axis] for axis in node.attrs["axes"]]
    (value,) = inner.operands
    return transposed(value, axes) if node.op == "transpose" else transposed(flip(value, axes), inner.attrs["axes"])


def _has_steps(lines: _Lines, inverse: bool, transforms: Transforms) -> bool:
    _, length, behind = lines.form
    return len(transforms.across_steps(length, behind, lines.value.type.size, inverse, True)) > 0


def _are_beside(lines: _Lines, transforms: Transforms) -> bool:
    """Whether steps of lines along memory, in the order in which they are neighbours, write them where they were."""
    ahead, length, behind = lines.form
    is_in_order = [*lines.axes[:-1]] == sorted(lines.axes[:-1])
    return is_in_order and transforms.beside(length, behind, ahead * behind)


def _lines_of_type_2(node: Node) -> _Lines | None:
    """The lines whose transform of type 2 that is, if they are transposed before."""
    if node.op != "fourier_cosines":
        return None
    whole = _beneath_reshapes(node.operands[0])
    if node.attrs["folded"]:
        return _transposed(whole, node.attrs["folded"], node.shape[-1])
    found = folded_line(whole) if whole.type.rank else None
    if found is None or found.axes[-1] == found.lines.type.rank - 1 or whole.shape[-1] != node.shape[-1]:
        return None
    return _Lines(found.lines, found.sign, found.axes)


def _lines_of_type_3(node: Node, readers: dict[Node, int]) -> _Lines | None:
    """The same of type 3, whose result is read in order, or put into order by nothing else."""
    if node.op == "fourier_from_cosines":
        fold, spectrum = node.attrs["folded"], node
    else:
        written = unfolded_line(node) if node.op == "reshape" else None
        if written is None or written.lines.op != "fourier_from_cosines" or readers[written.lines] != 2:
            return None
        fold, spectrum = written.sign, written.lines
    whole = _beneath_reshapes(spectrum.operands[0])
    return _transposed(whole, fold, node.shape[-1], spectrum.attrs["first"]) if fold else None


def _transposed(whole: Node, sign: int, length: int, first: float = 1.0) -> _Lines | None:
    if whole.op != "transpose" or whole.shape[-1] != length:
        return None
    axes = tuple(whole.attrs["axes"])
    return _Lines(whole.operands[0], sign, axes, first) if axes[-1] != len(axes) - 1 else None


def _beneath_reshapes(value: Node) -> Node:
    while value.op == "reshape":
        (value,) = value.operands
    return value
