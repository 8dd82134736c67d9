"""Reductions as kernels have forms for them: long rows in parts, and positions of extrema of long rows as minima."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.monoids import REDUCTIONS
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import broadcast, build, concatenate, reshaped, slice_along, transposed
from lavax.passes.prepare.stacked_values import joined_one_by_one
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS
from lavax.passes.target.target import ANY_DEVICE, Target


@dataclass(frozen=True)
class SplitRows:
    """When a reduction is split into parts. Chosen by `python -m benchmarks comparison --only 'sum-*'`."""

    long_row: int = 1 << 15  # elements of a row that one workgroup would take too long over
    few_rows: int = 256  # rows that leave a device idle if each is one workgroup's
    part: int = 1 << 12  # elements per part
    # Reductions over leading axes are split if there are fewer columns than `few_columns`, of `long_column` elements at
    # least. Parts are then made so short that all columns of all parts are `columns_of_parts`.
    few_columns: int = 1 << 12
    long_column: int = 1 << 13
    columns_of_parts: int = 1 << 14
    shortest_part: int = 1 << 8


SPLIT_ROWS = SplitRows()
_MOST_LOOKED_AT = 64  # elementwise operations ahead of a reduction, in search of transpositions


def prepare_reduction(node: Node, target: Target = ANY_DEVICE) -> Node:
    """Splits a long row: parts first, then the sum of the parts. Every run adds in the same order."""
    one_by_one = joined_one_by_one(node, target)
    if one_by_one is not None:
        return one_by_one
    length = _length(node)
    rows = node.type.size
    if length == 0:
        return build("constant", type=node.type, value=REDUCTIONS[node.op].identity(node.dtype))
    columns = _is_over_columns(node, target)
    longest = MAX_LOOP_ITERATIONS if columns else target.rows.longest
    long = length >= SPLIT_ROWS.long_row if rows <= SPLIT_ROWS.few_rows else length > longest
    part = _part_of_columns(length, rows, target) if columns else None
    if part is not None:
        return _columns_in_parts(node, length, part)
    return _in_parts(node, length, rows, SPLIT_ROWS.part, target) if long and rows else node


def part_of_columns(node: Node, target: Target) -> int | None:
    """The elements of each part of long columns that are split into equal parts; None for all others."""
    length, axes = _length(node), node.attrs["axes"]
    inner_first = 0 < len(axes) < node.operands[0].type.rank and axes[0] == 0
    if not inner_first or not length or not _is_over_columns(node, target):
        return None
    part = _part_of_columns(length, node.type.size, target)
    part = None if part is None else _divisor(length, part)
    return part if part is not None and length % part == 0 else None


def _length(node: Node) -> int:
    return prod(node.operands[0].shape[axis] for axis in node.attrs["axes"])


def _is_over_columns(node: Node, target: Target) -> bool:
    (operand,) = node.operands
    if target.rows.long_column is not None:
        return _reads_columns(operand, node.attrs["axes"])
    return len(operand.shape) - 1 not in node.attrs["axes"]


def _part_of_columns(length: int, columns: int, target: Target) -> int | None:
    """The elements of each part of columns; None if the columns are best left whole."""
    if not 0 < columns < SPLIT_ROWS.few_columns or length < (target.rows.long_column or SPLIT_ROWS.long_column):
        return None
    part = 1 << (length * columns // SPLIT_ROWS.columns_of_parts).bit_length() >> 1
    return max(min(part, SPLIT_ROWS.part), SPLIT_ROWS.shortest_part)


def _divisor(length: int, part: int) -> int:
    """The greatest number of elements, up to `part`, that divides a column and is not much less; else `part`."""
    return next((size for size in range(part, part // 2, -1) if length % size == 0), part)


def _reads_columns(operand: Node, axes: tuple[int, ...]) -> bool:
    """Whether neighbours in memory are of different rows, for at least half of the elements that are read.

    What is reduced may be read through a transposition: then rows of a weight in memory look like columns, and columns
    like rows. Arrays that are repeated have few elements.
    """
    along, across = _elements_along(operand, axes)
    return across >= along if along or across else len(operand.shape) - 1 not in axes


def _elements_along(operand: Node, axes: tuple[int, ...]) -> tuple[int, int]:
    """The elements read whose neighbours in memory lie along some axes, and the others."""
    found = [0, 0]
    for axis, size in _neighbours_read(operand):
        found[axis not in axes] += size
    return found[0], found[1]


def _neighbours_read(operand: Node) -> Iterator[tuple[int, int]]:
    """Of each array that a value is computed from element by element, the axis of the value along which neighbours in
    memory lie, and the elements. Arrays may be moved on the way, in which each element stays one. What is moved
    after it was repeated, such as a weight's integers and scales, counts as an array."""
    seen, stack = {operand}, [(operand, tuple(range(operand.type.rank)), False)]
    while stack:
        node, places, is_moved = stack.pop()
        if node.type.size <= 1:
            continue
        family = OPERATIONS[node.op].family if node.op in OPERATIONS else "movement"
        if family == "elementwise" and len(seen) <= _MOST_LOOKED_AT:
            ahead = [(each, places, is_moved) for each in node.operands]
        elif node.op in _BIJECTIONS and len(seen) <= _MOST_LOOKED_AT:
            ahead = [(node.operands[0], tuple(places[axis] for axis in _BIJECTIONS[node.op](node)), True)]
        else:
            if family != "source" and (is_moved or node.op != "broadcast"):
                yield places[_neighbour_axis(node)], node.type.size
            continue
        stack += [each for each in ahead if each[0] not in seen]
        seen.update(each for each, *_ in ahead)


def _through_transpose(node: Node) -> list[int]:
    return [node.attrs["axes"].index(axis) for axis in range(node.type.rank)]


def _through_reshape(node: Node) -> list[int]:
    """Per axis of the operand that of the result along which its neighbours lie, or the last one."""
    (operand,) = node.operands
    steps = {prod(node.shape[axis + 1 :]): axis for axis, extent in enumerate(node.shape) if extent > 1}
    last = node.type.rank - 1
    return [steps.get(prod(operand.shape[axis + 1 :]), last) for axis in range(operand.type.rank)]


_BIJECTIONS: dict[str, Callable[[Node], list[int]]] = {"transpose": _through_transpose, "reshape": _through_reshape}


def _neighbour_axis(node: Node) -> int:
    """The axis of an array along which neighbours in memory lie."""
    if node.op in _BIJECTIONS:
        return _BIJECTIONS[node.op](node)[_neighbour_axis(node.operands[0])]
    (operand,) = node.operands if node.op == "shear" else (node,)
    if operand.op != "broadcast" or not operand.operands[0].shape:
        return len(node.shape) - 1
    axis = int(operand.attrs["axes"][_neighbour_axis(operand.operands[0])])
    if operand is node:
        return axis
    along = dict(zip(node.attrs["axes"], node.attrs["along"], strict=True))  # of windows
    return int(along.get(axis, axis))


def prepare_position(node: Node) -> Node:
    """The first position of a long row's extremum, or of a NaN: that of each part, and then that of the best part."""
    (operand,) = node.operands
    axis, extremum = node.attrs["axis"], "max" if node.op == "argmax" else "min"
    length, rows = operand.shape[axis], node.type.size
    part = max(SPLIT_ROWS.part, -(-length // MAX_LOOP_ITERATIONS))
    if length <= MAX_LOOP_ITERATIONS or part > MAX_LOOP_ITERATIONS:
        return node
    parts = -(-length // part)
    others = tuple(other for other in range(len(operand.shape)) if other != axis)
    moved = reshaped(transposed(operand, (*others, axis)), (rows, length))
    identity = REDUCTIONS[extremum].identity(operand.dtype)
    padded = build("pad", moved, low=(0, 0), high=(0, parts * part - length), interior=(0, 0), value=identity)
    split = reshaped(padded if parts * part > length else moved, (rows, parts, part))
    positions = build(node.op, split, axis=2, type=node.type.with_shape((rows, parts)))
    best = build(node.op, build(extremum, split, axes=(2,)), axis=1, type=node.type.with_shape((rows,)))
    number = build("iota", type=positions.type, axis=1)
    first = build("multiply", number, build("constant", type=positions.type, value=part))
    is_best = build("equal", number, broadcast(best, positions.shape, (0,)))
    nothing = build("constant", type=positions.type, value=0)
    chosen = build("where", is_best, build("add", first, positions), nothing)
    return reshaped(build("sum", chosen, axes=(1,)), node.shape)


def _columns_in_parts(node: Node, length: int, part: int) -> Node:
    """Sums of parts of columns, side by side as the columns are, then their sum, itself in parts if they are many."""
    (operand,) = node.operands
    axes = node.attrs["axes"]
    outer = [axis for axis in range(len(operand.shape)) if axis not in axes]
    sizes = dict.fromkeys(outer, 0)
    for axis, size in _neighbours_read(operand):
        if axis in sizes:
            sizes[axis] += size
    inner = max(outer, key=lambda axis: (sizes[axis], axis))
    ahead = [axis for axis in outer if axis < min(inner, axes[0])]
    behind = [axis for axis in outer if axis not in ahead and axis != inner] + [inner]
    before, columns = (tuple(operand.shape[axis] for axis in group) for group in (ahead, behind))
    lead, first = ((prod(before),), 1) if prod(before) > 1 else ((), 0)
    part = _divisor(length, part)  # it needs no padding, and columns are as well aligned wherever parts begin
    parts = -(-length // part)
    moved = reshaped(transposed(operand, (*ahead, *axes, *behind)), (*lead, length, prod(columns)))
    if parts * part > length:
        nothing, value = (0,) * moved.type.rank, REDUCTIONS[node.op].identity(node.dtype)
        high = (*nothing[:first], parts * part - length, 0)
        moved = build("pad", moved, low=nothing, high=high, interior=nothing, value=value)
    partial = build(node.op, reshaped(moved, (*lead, parts, part, prod(columns))), axes=(first + 1,))
    whole = build(node.op, partial, axes=(first,))
    if parts > SPLIT_ROWS.part:
        whole = _columns_in_parts(whole, parts, SPLIT_ROWS.part)
    order = [*ahead, *behind]
    return transposed(reshaped(whole, (*before, *columns)), [order.index(axis) for axis in outer])


def _in_parts(node: Node, length: int, rows: int, part: int, target: Target) -> Node:
    """Sums of parts, then their sum, itself in parts if they are many: chains of additions stay short."""
    (operand,) = node.operands
    axes = node.attrs["axes"]
    outer = tuple(axis for axis in range(len(operand.shape)) if axis not in axes)
    moved = reshaped(transposed(operand, (*outer, *axes)), (rows, length))
    between = rows > 1 and length % target.vector > 0  # vectors begin anywhere, so that each element would be tested
    whole = _of_whole_parts(node, moved, part) if between else _of_padded_parts(node, moved, part)
    (partial,) = whole.operands
    (axis,) = whole.attrs["axes"]
    if partial.shape[axis] > SPLIT_ROWS.part:
        whole = _in_parts(whole, partial.shape[axis], rows, SPLIT_ROWS.part, target)
    return reshaped(whole, node.shape)


def _of_padded_parts(node: Node, moved: Node, part: int) -> Node:
    """The sum of the sums of parts of rows, of which the last one is padded."""
    rows, length = moved.shape
    parts = -(-length // part)
    if parts * part > length:
        high, value = (0, parts * part - length), REDUCTIONS[node.op].identity(moved.dtype)
        moved = build("pad", moved, low=(0, 0), high=high, interior=(0, 0), value=value)
    return build(node.op, build(node.op, reshaped(moved, (rows, parts, part)), axes=(2,)), axes=(1,))


def _of_whole_parts(node: Node, moved: Node, part: int) -> Node:
    """The sum of the sums of whole parts of rows, and of what is left at their ends.

    Rows are the inner axis: it is known how far behind a vector neighbouring rows begin, and parts move that by none.
    """
    rows, length = moved.shape
    parts, rest = divmod(length, part)
    whole = reshaped(slice_along(moved, 1, 0, parts * part), (rows, parts, part))
    sums = build(node.op, transposed(whole, (1, 0, 2)), axes=(2,))
    if rest:
        left = build(node.op, slice_along(moved, 1, parts * part, length), axes=(1,))
        sums = concatenate((sums, reshaped(left, (1, rows))), 0)
    return build(node.op, sums, axes=(0,))
