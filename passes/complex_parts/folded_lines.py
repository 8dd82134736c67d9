"""Lines of real numbers that cosine transforms put into another order, as part of a step that reads or writes them.

Such a transform of type 2 takes x[0], x[2], …, x[3], x[1], and one of type 3 gives numbers in that order. Four
neighbours of x are parts of two complex numbers of a step that holds both, so that nothing need be moved. Sine
transforms change the signs at odd places.
"""
from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.passes.build.builder import build, reshape, transposed
from lavax.passes.complex_parts.cosine_lines import reader_counts

_INVERSES = ("fourier_from_cosines", "fourier_join", "fourier_to_reals")  # inverse transforms


@dataclass(frozen=True)
class Ordered:
    """Lines in another order, what the numbers at odd places are multiplied by, 1 or −1, and their axes before."""

    lines: Node
    sign: int
    axes: tuple[int, ...]


def with_folded_lines(graph: Graph) -> Graph:
    """The graph whose steps of cosine transforms read and write lines as these are before and after; itself if there
    are no such."""
    if not any(node.op in ("fourier_cosines", *_INVERSES) for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    readers, is_changed = reader_counts(graph), False
    for node in graph.nodes:
        written = unfolded_line(node) if node.op in ("concatenate", "reshape") else None
        read = folded_line(node.operands[0].operands[0]) if _is_of_lines(node) else None
        if written is not None and _suits(written.lines, readers):
            ((spectrum,), attrs) = written.lines.operands, {**written.lines.attrs, "folded": written.sign}
            found[node] = build(written.lines.op, found[spectrum], type=node.type, **attrs)
        elif read is not None:
            pairs, tables = node.operands[0], [found[table] for table in node.operands[1:]]
            form = reshape(transposed(found[read.lines], read.axes), pairs.shape)
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


def _suits(inverse: Node, readers: dict[Node, int]) -> bool:
    """Whether an inverse transform gives lines that nothing else reads."""
    return inverse.op in _INVERSES and readers[inverse] == (3 if inverse.op == "fourier_to_reals" else 2)


def folded_line(whole: Node) -> Ordered | None:
    """The lines whose numbers at even places a value has, and then those at odd ones from the last to the first. Both
    may be transposed, as lines along another axis are."""
    last = whole.type.rank - 1
    if whole.op != "concatenate" or len(whole.operands) != 2 or whole.attrs["axis"] != last:
        return None
    (even, axes), (turned, other_axes) = map(_before_transposition, whole.operands)
    odd, sign = _turned(turned, axes[last])
    if odd is None or axes != other_axes or even.op != "slice" or odd.op != "slice" or even.operands != odd.operands:
        return None
    (lines,) = even.operands
    at = [int(axis == axes[last]) for axis in range(whole.type.rank)]
    is_every_other = all(list(part.attrs["stride"]) == [1 + here for here in at] for part in (even, odd))
    starts = [list(part.attrs["start"]) for part in (even, odd)]
    is_whole = tuple(lines.shape[axis] for axis in axes) == whole.shape and even.shape == odd.shape
    if not is_whole or not is_every_other or starts != [[0] * len(at), at]:
        return None
    return Ordered(lines, sign, axes)


def _before_transposition(part: Node) -> tuple[Node, tuple[int, ...]]:
    """What is transposed, and the order of its axes."""
    if part.op == "transpose":
        return part.operands[0], tuple(part.attrs["axes"])
    return part, tuple(range(part.type.rank))


def unfolded_line(whole: Node) -> Ordered | None:
    """The lines whose first half a value has at even places, and whose second one, from the end, at odd ones. Of an odd
    number of places the last one has the number between them."""
    if whole.type.rank == 0:
        return None
    half, last = whole.shape[-1] // 2, whole.type.rank - 1
    if whole.op == "reshape":
        return _unfolded_pairs(whole, half)
    if whole.op != "concatenate" or len(whole.operands) != 2 or whole.attrs["axis"] != last:
        return None
    pairs, middle = whole.operands
    if pairs.op != "reshape" or whole.shape[-1] % 2 == 0:
        return None
    found = _unfolded_pairs(pairs, half + 1)
    is_between = found is not None and middle.operands == (found.lines,) and _is_part(middle, half, 1)
    return found if is_between and found is not None and found.lines.shape == whole.shape else None


def _unfolded_pairs(pairs: Node, behind: int) -> Ordered | None:
    """The lines whose first half is at even places, and the one that begins `behind`, from the end, at odd ones."""
    (both,) = pairs.operands
    if both.op != "concatenate" or both.attrs["axis"] != both.type.rank - 1 or both.shape[-1] != 2:
        return None
    if len(both.operands) != 2 or any(part.op != "reshape" for part in both.operands):
        return None
    ahead, (back, sign) = both.operands[0].operands[0], _turned(both.operands[1].operands[0], pairs.type.rank - 1)
    if back is None or ahead.op != "slice" or back.op != "slice" or ahead.operands != back.operands:
        return None
    (lines,), half = ahead.operands, pairs.shape[-1] // 2
    is_whole = lines.shape == (*pairs.shape[:-1], half + behind) and both.shape == (*pairs.shape[:-1], half, 2)
    are_both = _is_part(ahead, 0, half) and _is_part(back, behind, half)
    return Ordered(lines, sign, tuple(range(pairs.type.rank))) if is_whole and are_both else None


def _is_part(part: Node, start: int, count: int) -> bool:
    """Whether a value is a slice of that many numbers of each line."""
    if part.op != "slice" or set(part.attrs["stride"]) != {1}:
        return False
    starts, batch = tuple(part.attrs["start"]), part.operands[0].shape[:-1]
    return starts == (*(0,) * len(batch), start) and part.shape == (*batch, count)


def _turned(part: Node, axis: int) -> tuple[Node | None, int]:
    """The value that is turned round along an axis, and perhaps negated; None if it is not."""
    sign = 1
    if part.op == "negate":
        part, sign = part.operands[0], -1
    if part.op != "flip" or tuple(part.attrs["axes"]) != (axis,):
        return None, sign
    (value,) = part.operands
    return (value.operands[0], -sign) if value.op == "negate" else (value, sign)
