"""Lines of real numbers that cosine transforms put into another order, as part of a step that reads or writes them.

Such a transform of type 2 takes x[0], x[2], …, x[3], x[1], and one of type 3 gives numbers in that order. Four
neighbours of x are parts of two complex numbers of a step that holds both, so that nothing need be moved. Sine
transforms change the signs at odd places.
"""
from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.passes.build.builder import build, reshape
from lavax.passes.complex_parts.cosine_lines import reader_counts


@dataclass(frozen=True)
class Ordered:
    """Lines in another order, and what the numbers at odd places are multiplied by: 1 or −1."""

    lines: Node
    sign: int


def with_folded_lines(graph: Graph) -> Graph:
    """The graph whose steps of cosine transforms read and write lines as these are before and after; itself if there
    are no such."""
    if not any(node.op in ("fourier_cosines", "fourier_join") for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    readers, is_changed = reader_counts(graph), False
    for node in graph.nodes:
        written = unfolded_line(node) if node.op == "reshape" else None
        read = folded_line(node.operands[0].operands[0]) if _is_of_lines(node) else None
        if written is not None and _suits(written.lines, readers):
            (spectrum,) = written.lines.operands
            found[node] = build("fourier_join", found[spectrum], type=node.type, rest=1, folded=written.sign)
        elif read is not None:
            pairs, tables = node.operands[0], [found[table] for table in node.operands[1:]]
            form = reshape(found[read.lines], pairs.shape)
            attrs = {**node.attrs, "folded": read.sign}
            found[node] = build("fourier_cosines", form, *tables, type=node.type, **attrs)
        else:
            found[node] = with_operands(node, tuple([found[operand] for operand in node.operands]))
            continue
        is_changed = True
    return graph_of(graph.inputs, [found[output] for output in graph.outputs]) if is_changed else graph


def _is_of_lines(node: Node) -> bool:
    """Whether it is a cosine transform of lines of an even number of pairs."""
    return node.op == "fourier_cosines" and node.operands[0].op == "reshape" and node.operands[0].shape[1] % 2 == 0


def _suits(join: Node, readers: dict[Node, int]) -> bool:
    """Whether an inverse transform gives lines of an even number of pairs, which nothing else reads."""
    return join.op == "fourier_join" and readers[join] == 2 and join.operands[0].shape[1] % 2 == 1


def folded_line(whole: Node) -> Ordered | None:
    """The lines whose numbers at even places a value has, and then those at odd ones from the last to the first."""
    if whole.op != "concatenate" or len(whole.operands) != 2 or whole.attrs["axis"] != whole.type.rank - 1:
        return None
    even, (odd, sign) = whole.operands[0], _turned(whole.operands[1])
    if odd is None or even.op != "slice" or odd.op != "slice" or even.operands != odd.operands:
        return None
    (lines,) = even.operands
    first = (0,) * (whole.type.rank - 1)
    strides = (*(1 for _ in first), 2)
    starts = [tuple(part.attrs["start"]) for part in (even, odd)]
    is_every_other = all(tuple(part.attrs["stride"]) == strides for part in (even, odd))
    is_whole = lines.shape == whole.shape and even.shape == odd.shape
    return Ordered(lines, sign) if is_whole and is_every_other and starts == [(*first, 0), (*first, 1)] else None


def unfolded_line(whole: Node) -> Ordered | None:
    """The lines whose first half a value has at even places, and whose second one, from the end, at odd ones."""
    (both,) = whole.operands
    if both.op != "concatenate" or both.attrs["axis"] != both.type.rank - 1 or both.shape[-1] != 2:
        return None
    if len(both.operands) != 2 or any(part.op != "reshape" for part in both.operands):
        return None
    ahead, (back, sign) = both.operands[0].operands[0], _turned(both.operands[1].operands[0])
    if back is None or ahead.op != "slice" or back.op != "slice" or ahead.operands != back.operands:
        return None
    (lines,) = ahead.operands
    half, first = whole.shape[-1] // 2, (0,) * (whole.type.rank - 1)
    starts = [tuple(part.attrs["start"]) for part in (ahead, back)]
    is_unit = all(set(part.attrs["stride"]) == {1} for part in (ahead, back))
    is_half = {part.shape for part in (ahead, back)} == {(*whole.shape[:-1], half)}
    is_whole = lines.shape == whole.shape and both.shape == (*whole.shape[:-1], half, 2)
    are_both = starts == [(*first, 0), (*first, half)]
    return Ordered(lines, sign) if is_whole and is_half and is_unit and are_both else None


def _turned(part: Node) -> tuple[Node | None, int]:
    """The value that is turned round along the last axis, and perhaps negated; None if it is not."""
    sign = 1
    if part.op == "negate":
        part, sign = part.operands[0], -1
    if part.op != "flip" or part.attrs["axes"] != (part.type.rank - 1,):
        return None, sign
    (value,) = part.operands
    return (value.operands[0], -sign) if value.op == "negate" else (value, sign)
