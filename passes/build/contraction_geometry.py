"""A contraction as batch × M × N × K: its extents, the memory layout of its operands, and its sum in parts."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import lru_cache
from math import prod

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.ir.operation import OPERATIONS
from lavax.ir.ops.contraction import free_axes
from lavax.passes.build.builder import build, precision_of, reshaped, transposed
from lavax.passes.kernels.index import ZERO, Index, Variable, flatten, grows_by_one, unflatten, variable
from lavax.passes.kernels.reads import READS, Coordinates


@dataclass(frozen=True)
class Copies:
    """When a copy of an operand that is easier to read pays."""

    reads: int  # of each element, at least
    products: int  # in all, at least

    def pay(self, array: Node, reads: int) -> bool:
        """Whether that is so of an array each of whose elements is read so often."""
        return reads >= self.reads and array.type.size * reads >= self.products


# In another order. Chosen by `python -m benchmarks comparison --only convolution --only convnet-step`.
_REORDERED = Copies(reads=1 << 9, products=1 << 28)
# The same of operands of 16 bits, eight of which are a vector. Chosen by `python -m benchmarks models` (U-Net).
REORDERED_NARROW = Copies(reads=1 << 7, products=1 << 24)
# Of several arrays end to end. Chosen by `python -m benchmarks models` (GPT-2). What is in lines of whole vectors of 16
# bits then costs as much as in another order: it is read number by number unless it is one array.
_JOINED = Copies(reads=1 << 9, products=1 << 28)
# The most nodes between an operand and memory that a search visits.
_SEARCH_DEPTH = 32
# Movement whose index expressions are linear.
_STRIDED_MOVEMENT = frozenset(("reshape", "transpose", "broadcast", "slice"))
# Parts of a sum are loaded in vectors of this length.
_VECTOR = 4
# Whether operands lie apart, by all that it follows from: layers have equal ones, and a step is fused twice.
_APART: dict[Hashable, bool] = {}
_MOST_KNOWN = 1 << 10
_OfSides = tuple[Sequence[int], Sequence[int]]  # axes of the left and of the right operand


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
    return _sizes(left.type.shape, right.type.shape, dot.attrs["batch"], dot.attrs["contract"])


@lru_cache(maxsize=1 << 12)
def _sizes(left: tuple[int, ...], right: tuple[int, ...], batch: _OfSides, contract: _OfSides) -> Sizes:
    rows, columns = (
        tuple(extent for axis, extent in enumerate(shape) if axis not in batch[side] and axis not in contract[side])
        for side, shape in enumerate((left, right))
    )
    return Sizes(
        tuple(left[axis] for axis in batch[0]),
        rows,
        columns,
        tuple(left[axis] for axis in contract[0]),
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
    """Which elements of an operand are adjacent in memory: those along the sum, or along the free axes."""

    summed: bool
    free: bool


def neighbours_of(dot: Node, side: int) -> Neighbours:
    """The memory layout of the arrays that an operand is computed from, by the majority of their reads."""
    sizes = sizes_of(dot)
    extents = sizes.rows if side == 0 else sizes.columns
    free, summed = variable("free", prod(extents)), variable("summed", sizes.k)
    at = operand_at(dot, side, (ZERO,) * len(sizes.batch), unflatten(free, extents), unflatten(summed, sizes.summed))
    positions = _positions(dot.operands[side], at)
    along_sum = sum(grows_by_one(position, "summed") for position in positions)
    along_free = sum(grows_by_one(position, "free") for position in positions)
    return Neighbours(along_sum > 0 and along_sum >= along_free, along_free > 0 and along_free >= along_sum)


def pays_in_one_array(dot: Node, side: int, in_vectors: bool) -> bool:
    """Whether an operand that is several arrays end to end is read so often that it is best copied to one.

    `in_vectors`: whether its lines would be whole vectors of 16 bits there.
    """
    return _pays(dot, side, REORDERED_NARROW if in_vectors and dot.attrs["precision"] else _JOINED)


def _pays(dot: Node, side: int, copies: Copies) -> bool:
    sizes = sizes_of(dot)
    return copies.pay(dot.operands[side], sizes.n if side == 0 else sizes.m)


def lies_scattered(dot: Node, side: int) -> bool:
    """Whether an operand lies apart, and is read so often that a copy pays."""
    copies = REORDERED_NARROW if dot.attrs["precision"] else _REORDERED
    return _pays(dot, side, copies) and lies_apart(dot, side)


def lies_apart(dot: Node, side: int) -> bool:
    """Whether an operand is a reordered array whose neighbours in memory are not adjacent in the contraction."""
    order = _order(dot.operands[side])
    if order is None:
        return False
    known = (sizes_of(dot), dot.attrs["batch"][side], dot.attrs["contract"][side], side, order)
    if known not in _APART:
        if len(_APART) >= _MOST_KNOWN:
            _APART.clear()
        _APART[known] = neighbours_of(dot, side) == Neighbours(False, False)
    return _APART[known]


def lies_in_strides(dot: Node, side: int, computed: Collection[Node]) -> bool:
    """Whether an operand is computed element by element from one array, in which steps along the free axes and the sum
    have constant lengths; `computed` holds those nodes behind the operand that are computed rather than read."""
    sizes, operand = sizes_of(dot), dot.operands[side]
    extents = sizes.rows if side == 0 else sizes.columns
    free, summed = variable("free", prod(extents)), variable("summed", sizes.k)
    at = operand_at(dot, side, (ZERO,) * len(sizes.batch), unflatten(free, extents), unflatten(summed, sizes.summed))
    found: set[Index] = set()
    stack = [(operand, at)]
    while stack:
        node, at = stack.pop()
        if node not in computed:
            found.add(flatten(at, node.shape))
        elif is_strided(node):
            stack.extend(READS[node.op](node, at))
        else:
            return False
    return all(isinstance(atom, Variable) for position in found for atom, _ in position.terms)


def are_windows(operand: Node) -> bool:
    """Whether an operand is several windows of several elements each, besides their channels."""
    while operand.op in ("reshape", "transpose", "pad"):  # as sums are padded, or split into parts
        (operand,) = operand.operands
    groups = (operand.attrs["axes"], operand.attrs["along"]) if operand.op == "shear" else ()
    return bool(groups) and all(prod(operand.shape[axis] for axis in group) > 1 for group in groups)


def is_strided(node: Node) -> bool:
    """Whether a node does not depend on its elements' positions, and keeps constant strides."""
    return node.op in _STRIDED_MOVEMENT or node.op == "constant" or OPERATIONS[node.op].family == "elementwise"


def _order(node: Node) -> Hashable | None:
    """How the node lies in memory, if it is a whole array in another order, perhaps in another dtype; else None."""
    moves: list[Hashable] = [node.shape]
    while node.op in ("transpose", "reshape", "flip", "cast"):
        moves += (node.op, node.attrs.get("axes"), node.operands[0].shape)
        (node,) = node.operands
    return tuple(moves) if node.op == INPUT or node.op not in READS else None


def _positions(node: Node, at: Coordinates) -> set[Index]:
    """Positions read in memory; nodes that are neither movement nor elementwise are assumed to be stored."""
    found: set[Index] = set()
    seen: set[tuple[Node, Coordinates]] = set()
    stack = [(node, at)]
    while stack:
        read, there = stack.pop()
        if (read, there) in seen:
            continue
        seen.add((read, there))
        if read.op == "concatenate":  # where one begins changes nothing, and the ends of others would hide growth
            stack.extend((operand, there) for operand in read.operands)
        elif read.op in READS and len(seen) <= _SEARCH_DEPTH:
            stack.extend(READS[read.op](read, there))
        else:
            found.add(flatten(there, read.shape))
    return found


# -- the sum in parts -------------------------------------------------------------------------------------------------


def in_parts(dot: Node, wanted: int) -> Node:
    """The contraction as the sum of about `wanted` contractions over parts of its sum, added in a fixed order.

    If the axes of the sum divide well, they are split in place, which needs no further index arithmetic. Otherwise
    the sum is flattened and padded with zeros.
    """
    extents = sizes_of(dot).summed
    parts = _parts_of_axes(extents, wanted)
    if 2 * prod(parts) > wanted:
        return _split_axes(dot, parts)
    length = prod(extents)
    size = -(-length // (_VECTOR * wanted)) * _VECTOR
    return _split_axes(padded_sum(dot, -(-length // size) * size), (-(-length // size),))


def number_of_parts(extents: tuple[int, ...], wanted: int) -> int:
    """The number of parts that `in_parts` makes if that many are wanted."""
    found = prod(_parts_of_axes(extents, wanted))
    length = prod(extents)
    return found if 2 * found > wanted else -(-length // (-(-length // (_VECTOR * wanted)) * _VECTOR))


def _parts_of_axes(extents: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """The parts to split each axis into, most for the first axes; parts of the last axis are multiples of four."""
    parts = []
    for number, extent in enumerate(extents):
        whole = extent // _VECTOR if number == len(extents) - 1 and extent % _VECTOR == 0 else extent
        part = max(divisor for divisor in range(1, min(whole, wanted) + 1) if whole % divisor == 0)
        parts.append(part)
        wanted = -(-wanted // part)
    return tuple(parts)


def _split_axes(dot: Node, parts: tuple[int, ...]) -> Node:
    """Makes parts of axes the last batch axes, and sums the result over them."""
    operands, batches, contracts = [], [], []
    for operand, batch, contract in zip(dot.operands, dot.attrs["batch"], dot.attrs["contract"], strict=True):
        count = dict(zip(contract, parts, strict=True))
        shape: list[int] = []
        first: dict[int, int] = {}  # axis -> its new position, or that of its parts
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


def padded_sum(dot: Node, length: int) -> Node:
    """The contraction over a single axis, padded with zeros to that length."""
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
