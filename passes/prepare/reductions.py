"""Reductions as kernels have forms for them: long rows in parts, and positions of extrema of long rows as minima."""

from __future__ import annotations

from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.ir.monoids import REDUCTIONS
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import broadcast, build, reshaped, transposed
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
    length = _length(node)
    rows = node.type.size
    if length == 0:
        return build("constant", type=node.type, value=REDUCTIONS[node.op].identity(node.dtype))
    columns = _is_over_columns(node, target)
    longest = MAX_LOOP_ITERATIONS if columns else target.rows.longest
    long = length >= SPLIT_ROWS.long_row if rows <= SPLIT_ROWS.few_rows else length > longest
    part = _part_of_columns(length, rows, target) if columns else None
    if part is not None:
        return _in_parts(node, length, rows, part)
    return _in_parts(node, length, rows, SPLIT_ROWS.part) if long and rows else node


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
    last, seen, stack = len(operand.shape) - 1, {operand}, [operand]
    along = across = 0
    while stack:
        node = stack.pop()
        family = OPERATIONS[node.op].family if node.op in OPERATIONS else "movement"
        if family == "elementwise" and len(seen) <= _MOST_LOOKED_AT:
            ahead = [each for each in node.operands if each not in seen]
            seen.update(ahead)
            stack += ahead
        elif family != "source" and node.op != "broadcast":
            neighbours = node.attrs["axes"].index(last) if node.op == "transpose" else last
            along += node.type.size * (neighbours in axes)
            across += node.type.size * (neighbours not in axes)
    return across >= along if along or across else last not in axes


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


def _in_parts(node: Node, length: int, rows: int, part: int) -> Node:
    """Sums of parts, then their sum, itself in parts if they are many: chains of additions stay short."""
    (operand,) = node.operands
    axes = node.attrs["axes"]
    outer = tuple(axis for axis in range(len(operand.shape)) if axis not in axes)
    inner_first = bool(outer) and axes[0] < outer[0]
    order = (*axes, *outer) if inner_first else (*outer, *axes)
    moved = transposed(operand, order)
    if inner_first:  # a divisor needs no padding, and columns are as well aligned wherever parts begin
        part = _divisor(length, part)
    parts = -(-length // part)
    shape, padding = (
        ((length, rows), ((parts * part - length, 0)))
        if inner_first
        else ((rows, length), (0, parts * part - length))
    )
    padded = build(
        "pad",
        reshaped(moved, shape),
        low=(0, 0),
        high=padding,
        interior=(0, 0),
        value=REDUCTIONS[node.op].identity(node.dtype),
    )
    split = (parts, part, rows) if inner_first else (rows, parts, part)
    partial = build(
        node.op,
        reshaped(padded if max(padding) else padded.operands[0], split),
        axes=(1,) if inner_first else (2,),
    )
    whole = build(node.op, partial, axes=(0,) if inner_first else (1,))
    if parts > SPLIT_ROWS.part:
        whole = _in_parts(whole, parts, rows, SPLIT_ROWS.part)
    return reshaped(whole, node.shape)
