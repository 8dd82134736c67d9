"""A contraction seen as batch × M × N × K: its extents, how its operands lie in memory, and its sum in parts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from lavax.ir.graph import INPUT, Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import build, precision_of, reshaped, transposed
from lavax.passes.kernels.index import ZERO, Index, Variable, flatten, grows_by_one, unflatten, variable
from lavax.passes.kernels.reads import READS, Coordinates

# Beyond so many nodes between an operand and memory nobody asks how it lies there.
_FAR = 32
# A copy in another order pays for a product that reads each element so often, with so many products in all.
_READ_OVER, _WORTH_COPY = 1 << 9, 1 << 28
# Of what moves elements, that which computes nothing of their places.
_STRIDED_MOVEMENT = frozenset(("reshape", "transpose", "broadcast", "slice"))
# Vectors of four are loaded along a part.
_STEP = 4


@dataclass(frozen=True)
class Sizes:
    """The extents of a contraction's four groups of axes."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    summed: tuple[int, ...]

    @property
    def b(self) -> int:
        return prod(self.batch)

    @property
    def m(self) -> int:
        return prod(self.rows)

    @property
    def n(self) -> int:
        return prod(self.columns)

    @property
    def k(self) -> int:
        return prod(self.summed)


def sizes_of(dot: Node) -> Sizes:
    left, right = dot.operands
    (left_batch, right_batch), (left_sum, right_sum) = dot.attrs["batch"], dot.attrs["contract"]
    return Sizes(
        tuple(left.shape[axis] for axis in left_batch),
        tuple(left.shape[axis] for axis in free_axes(left.type, left_batch, left_sum)),
        tuple(right.shape[axis] for axis in free_axes(right.type, right_batch, right_sum)),
        tuple(left.shape[axis] for axis in left_sum),
    )


def operand_at(dot: Node, side: int, batch: Coordinates, free: Coordinates, summed: Coordinates) -> Coordinates:
    """The coordinates of an element of the left (0) or right (1) operand."""
    operand = dot.operands[side]
    batched, contracted = dot.attrs["batch"][side], dot.attrs["contract"][side]
    at = [ZERO] * len(operand.shape)
    kept = free_axes(operand.type, batched, contracted)
    for axes, indices in ((batched, batch), (contracted, summed), (kept, free)):
        for axis, index in zip(axes, indices, strict=True):
            at[axis] = index
    return tuple(at)


@dataclass(frozen=True)
class Neighbours:
    """What lies side by side in memory of an operand: elements along the sum, or along its free axes."""

    summed: bool
    free: bool


def neighbours_of(dot: Node, side: int) -> Neighbours:
    """How the arrays that an operand is computed from lie in memory, by most of their reads."""
    sizes = sizes_of(dot)
    extents = sizes.rows if side == 0 else sizes.columns
    free, summed = variable("free", prod(extents)), variable("summed", sizes.k)
    at = operand_at(dot, side, (ZERO,) * len(sizes.batch), unflatten(free, extents), unflatten(summed, sizes.summed))
    positions = _positions(dot.operands[side], at)
    along_sum = sum(grows_by_one(position, "summed") for position in positions)
    along_free = sum(grows_by_one(position, "free") for position in positions)
    return Neighbours(along_sum > 0 and along_sum >= along_free, along_free > 0 and along_free >= along_sum)


def lies_scattered(dot: Node, side: int) -> bool:
    """Whether an operand is an array in another order, in which neighbours in memory are none in the contraction, and
    is read so often that it is worth a copy."""
    operand, sizes = dot.operands[side], sizes_of(dot)
    reads = sizes.n if side == 0 else sizes.m
    if reads < _READ_OVER or operand.type.size * reads < _WORTH_COPY or not _is_reordered(operand):
        return False
    found = neighbours_of(dot, side)
    return not (found.summed or found.free)


def lies_in_strides(dot: Node, side: int, computed: Collection[Node]) -> bool:
    """Whether an operand is made, element by element, of one array, where a step along the free axes and the sum is
    always as long; `computed` are the nodes that are computed of those it is made of."""
    sizes, operand = sizes_of(dot), dot.operands[side]
    extents = sizes.rows if side == 0 else sizes.columns
    free, summed = variable("free", prod(extents)), variable("summed", sizes.k)
    at = operand_at(dot, side, (ZERO,) * len(sizes.batch), unflatten(free, extents), unflatten(summed, sizes.summed))
    found: set[Index] = set()
    stack = [(operand, at)]
    while stack:
        node, place = stack.pop()
        if node not in computed:
            found.add(flatten(place, node.shape))
        elif is_strided(node):
            stack.extend(READS[node.op](node, place))
        else:
            return False
    return all(isinstance(atom, Variable) for position in found for atom, _ in position.terms)


def is_strided(node: Node) -> bool:
    """Whether a node computes nothing of its elements' places, and moves no element out of strides."""
    return node.op in _STRIDED_MOVEMENT or node.op == "constant" or OPERATIONS[node.op].family == "elementwise"


def _is_reordered(node: Node) -> bool:
    """Whether all of an array, and nothing but it, is read in another order."""
    while node.op in ("transpose", "reshape", "flip"):
        (node,) = node.operands
    return node.op == INPUT or node.op not in READS


def _positions(node: Node, at: Coordinates) -> set[Index]:
    """Positions read in memory; what is neither movement nor elementwise is taken to lie there."""
    found: set[Index] = set()
    seen: set[tuple[Node, Coordinates]] = set()
    stack = [(node, at)]
    while stack:
        read, place = stack.pop()
        if (read, place) in seen:
            continue
        seen.add((read, place))
        if read.op in READS and len(seen) <= _FAR:
            stack.extend(READS[read.op](read, place))
        else:
            found.add(flatten(place, read.shape))
    return found


# -- the sum in parts -------------------------------------------------------------------------------------------------


def in_parts(dot: Node, wanted: int) -> Node:
    """The contraction as the sum of some `wanted` contractions over parts of its sum, added up in a fixed order.

    Where the axes of the sum divide well, they are split where they stand, so that no index is taken apart anew;
    else the sum is flattened and padded with zeros.
    """
    extents = sizes_of(dot).summed
    parts = _parts_of_axes(extents, wanted)
    if 2 * prod(parts) > wanted:
        return _split_axes(dot, parts)
    length = prod(extents)
    size = -(-length // (_STEP * wanted)) * _STEP
    return _split_axes(_flattened(dot, -(-length // size) * size), (-(-length // size),))


def number_of_parts(extents: tuple[int, ...], wanted: int) -> int:
    """How many parts `in_parts` makes where that many are wanted."""
    found = prod(_parts_of_axes(extents, wanted))
    length = prod(extents)
    return found if 2 * found > wanted else -(-length // (-(-length // (_STEP * wanted)) * _STEP))


def _parts_of_axes(extents: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """Into how many parts to split each axis, the first ones most; parts of the last axis are multiples of four."""
    parts = []
    for number, extent in enumerate(extents):
        whole = extent // _STEP if number == len(extents) - 1 and extent % _STEP == 0 else extent
        part = max(divisor for divisor in range(1, min(whole, wanted) + 1) if whole % divisor == 0)
        parts.append(part)
        wanted = -(-wanted // part)
    return tuple(parts)


def _split_axes(dot: Node, parts: tuple[int, ...]) -> Node:
    """Parts of axes become batch axes, the last of them all, whose products are added up."""
    operands, batches, contracts = [], [], []
    for operand, batch, contract in zip(dot.operands, dot.attrs["batch"], dot.attrs["contract"], strict=True):
        count = dict(zip(contract, parts, strict=True))
        shape: list[int] = []
        first: dict[int, int] = {}  # of each axis, where it stands afterwards, or where its parts do
        for axis, extent in enumerate(operand.shape):
            first[axis] = len(shape)
            shape += [count[axis], extent // count[axis]] if count.get(axis, 1) > 1 else [extent]
        split = [axis for axis in contract if count[axis] > 1]
        operands.append(reshaped(operand, tuple(shape)))
        batches.append((*(first[axis] for axis in batch), *(first[axis] for axis in split)))
        contracts.append(tuple(first[axis] + (count[axis] > 1) for axis in contract))
    product = build("dot", *operands, contract=tuple(contracts), batch=tuple(batches), **precision_of(dot))
    kept = len(dot.attrs["batch"][0])
    return build("sum", product, axes=tuple(range(kept, len(batches[0]))))


def _flattened(dot: Node, length: int) -> Node:
    """The contraction over one axis, padded with zeros to that length."""
    operands, contracts, batches = [], [], []
    for operand, batch, contract in zip(dot.operands, dot.attrs["batch"], dot.attrs["contract"], strict=True):
        free = free_axes(operand.type, batch, contract)
        kept = tuple(operand.shape[axis] for axis in (*batch, *free))
        order = (*batch, *free, *contract)
        moved = transposed(operand, order)
        summed = prod(operand.shape[axis] for axis in contract)
        flat = reshaped(moved, (*kept, summed))
        widths = (0,) * len(kept)
        zero = operand.dtype.number(0)
        high = (*widths, length - summed)
        padded = build("pad", flat, low=(*widths, 0), high=high, interior=(*widths, 0), value=zero)
        operands.append(padded if length > summed else flat)
        contracts.append((len(kept),))
        batches.append(tuple(range(len(batch))))
    return build("dot", *operands, contract=tuple(contracts), batch=tuple(batches), **precision_of(dot))
