"""Cosine transforms of type 2 as transforms of real lines, whose last step turns the frequencies and leaves real ones.

lavax.scipy.fft writes them as an `rfft` with half a spectrum a + bi of frequencies k from 0 to h, half of the n points,
with which two tables c and s give 2(a·c + b·s) at the place k and 2(a·s − b·c) at n − k. Where the device has such a
step, both are computed where the spectrum is, and not by a kernel that reads it twice. What the tables hold is not
asked. Sine transforms turn the result round. Transforms of type 4 of odd lines are written so, too, with both at other
places.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.ops.lowered.odd_lines import ODD_TYPE_2, ODD_TYPE_4
from lavax.passes.build.builder import build, reshape
from lavax.passes.build.matching import is_value
from lavax.passes.complex_parts.fourier import has_steps, largest_prime
from lavax.passes.target.target import Transforms


@dataclass(frozen=True)
class CosineLines:
    """A transform that is found: of these lines, with these tables, and of what kind if the lines are odd."""

    lines: Node
    cosines: Node
    sines: Node
    kind: int


def with_cosine_lines(graph: Graph, transforms: Transforms) -> Graph:
    """The graph with steps that leave real numbers for all cosine transforms of type 2, and those of type 4 of odd
    lines, that the device has steps for; itself if there are none."""
    if not transforms.cosines or not any(node.op == "rfft" for node in graph.nodes):
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    is_changed = False
    readers = reader_counts(graph)
    for node in graph.nodes:
        is_turned = node.op == "flip" and node.attrs["axes"] == (node.type.rank - 1,)
        is_reversed = is_turned and readers[node.operands[0]] == 1
        whole = node.operands[0] if is_reversed else node
        lines = _lines_of(whole, readers) if whole.op == "concatenate" else None
        if lines is not None and _has_step(lines, transforms) and not (is_reversed and lines.kind == ODD_TYPE_4):
            operands = [found[operand] for operand in (lines.lines, lines.cosines, lines.sines)]
            found[node] = _step(lines, operands, node, is_reversed)
            is_changed = True
        else:
            found[node] = with_operands(node, tuple([found[operand] for operand in node.operands]))
    return graph_of(graph.inputs, [found[output] for output in graph.outputs]) if is_changed else graph


def _step(lines: CosineLines, operands: Sequence[Node], node: Node, is_reversed: bool) -> Node:
    x, *tables = operands
    batch, length = prod(node.shape[:-1]), node.shape[-1]
    if length % 2:
        kind = -lines.kind if is_reversed else lines.kind
        return build("fourier_from_reals", reshape(x, (batch, length, 1)), *tables, type=node.type, cosines=kind)
    pairs = reshape(x, (batch, length // 2, 1, 2))
    return build("fourier_cosines", pairs, *tables, type=node.type, reverse=is_reversed)


def _has_step(found: CosineLines, transforms: Transforms) -> bool:
    length = found.lines.shape[-1]
    points = length if length % 2 else length // 2
    if not has_steps(points, largest_prime(found.lines, transforms)):
        return False
    if length % 2:
        return len(transforms.odd_steps(length)) > 0
    return len(transforms.mirrored_steps(points, False, found.lines.dtype)) > 0


def reader_counts(graph: Graph) -> dict[Node, int]:
    """How often each value is read."""
    count: dict[Node, int] = dict.fromkeys(graph.outputs, 1)
    for node in graph.nodes:
        for operand in node.operands:
            count[operand] = count.get(operand, 0) + 1
    return count


def _lines_of(whole: Node, readers: dict[Node, int]) -> CosineLines | None:
    """The lines and tables of a concatenation that is a cosine transform whose spectrum nothing else reads."""
    last, length = whole.type.rank - 1, whole.shape[-1]
    if whole.attrs["axis"] != last or length < 3:
        return None
    if len(whole.operands) == 2:
        ahead, mirrored = whole.operands
        back = _beneath_turned(mirrored, 1, (length + 1) // 2, 1)
        is_whole = ahead.shape[-1] == length // 2 + 1
        return _of_both(ahead, back, ODD_TYPE_2, 1, readers) if back is not None and is_whole else None
    if len(whole.operands) == 4 and length % 2:
        return _of_type_4(whole, readers)
    return None


def _of_type_4(whole: Node, readers: dict[Node, int]) -> CosineLines | None:
    """Ahead at odd frequencies, back at even ones from the last, ahead at even ones, back at odd ones from the last."""
    length = whole.shape[-1]
    half = length // 2 + 1
    first, second, third, fourth = whole.operands
    sides = _beneath_slice(first, 1, half, 2), _beneath_slice(third, 0, half, 2)
    turned = _beneath_turned(second, 2, half, 2), _beneath_turned(fourth, 1, half, 2)
    ahead, back = sides[0], turned[0]
    if ahead is None or back is None or sides != (ahead, ahead) or turned != (back, back):
        return None
    return _of_both(ahead, back, ODD_TYPE_4, 1 if length % 4 == 1 else -1, readers)


def _beneath_turned(part: Node, start: int, limit: int, stride: int) -> Node | None:
    """The value of whose last axis a part is a slice, turned round. A single number is so in any case."""
    is_turned = part.op == "flip" and part.attrs["axes"] == (part.type.rank - 1,)
    cut = part.operands[0] if is_turned else part
    return _beneath_slice(cut, start, limit, stride) if is_turned or part.shape[-1] == 1 else None


def _beneath_slice(cut: Node, start: int, limit: int, stride: int) -> Node | None:
    """The value of whose last axis a part is that slice."""
    if cut.op != "slice":
        return None
    (value,) = cut.operands
    last, batch = cut.type.rank - 1, value.shape[:-1]
    starts, limits, strides = (tuple(cut.attrs[name]) for name in ("start", "limit", "stride"))
    is_whole = starts[:-1] == (0,) * last and limits[:-1] == batch and set(strides[:-1]) <= {1}
    taken = range(starts[-1], limits[-1], strides[-1])
    return value if is_whole and taken == range(start, limit, stride) and value.shape[-1] >= limit else None


def _of_both(ahead: Node, back: Node, kind: int, sign: int, readers: dict[Node, int]) -> CosineLines | None:
    """The lines and tables of twice the sums, and of twice the differences, which have the sign."""
    sum, difference = _doubled(ahead, "add", 2.0), _doubled(back, "subtract", 2.0 * sign)
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
    tables = line_of(c), line_of(s)
    if spectrum.op != "rfft" or not is_alone or tables[0] is None or tables[1] is None:
        return None
    return CosineLines(spectrum.operands[0], tables[0], tables[1], kind)


def _doubled(value: Node, op: str, factor: float) -> Node | None:
    """The sum or difference of two products that is multiplied by the factor."""
    if value.op != "multiply" or not is_value(value.operands[1], factor) or value.operands[0].op != op:
        return None
    found = value.operands[0]
    return found if all(operand.op == "multiply" for operand in found.operands) else None


def line_of(table: Node) -> Node | None:
    """The line that is repeated for all others."""
    if table.type.rank == 1:
        return table
    is_repeated = table.op == "broadcast" and tuple(table.attrs["axes"]) == (table.type.rank - 1,)
    is_line = is_repeated or (table.op == "reshape" and table.type.size == table.shape[-1])
    return table.operands[0] if is_line and table.operands[0].type.rank == 1 else None
