"""What an element of a node is computed from: the coordinates at which each operand is read.

One entry an operation. This is what makes movement free: a transposed, sliced, padded or gathered operand is the
same array read at other coordinates. Reductions and contractions read many elements and are not in this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT, Node
from lavax.ir.operation import names_of_family
from lavax.passes.kernels.index import (
    ZERO,
    Index,
    add,
    clamp,
    constant,
    flatten,
    linear,
    lookup,
    near,
    quotient,
    unflatten,
)

Coordinates = tuple[Index, ...]
Read = tuple[Node, Coordinates]


@dataclass(frozen=True)
class Within:
    """A condition: low <= index <= high, and index - low a multiple of `step`."""

    index: Index
    low: int
    high: int
    step: int = 1

    @property
    def always(self) -> bool:
        return self.low <= self.index.low and self.index.high <= self.high and self.step == 1


def _elementwise(node: Node, at: Coordinates) -> tuple[Read, ...]:
    return tuple([(operand, at) for operand in node.operands])


def _nothing(node: Node, at: Coordinates) -> tuple[Read, ...]:
    return ()


def _reshape(node: Node, at: Coordinates) -> tuple[Read, ...]:
    (operand,) = node.operands
    return ((operand, unflatten(flatten(at, node.shape), operand.shape)),)


def _transpose(node: Node, at: Coordinates) -> tuple[Read, ...]:
    source = [ZERO] * len(at)
    for index, axis in zip(at, node.attrs["axes"], strict=True):
        source[axis] = index
    return ((node.operands[0], tuple(source)),)


def _broadcast(node: Node, at: Coordinates) -> tuple[Read, ...]:
    (operand,) = node.operands
    places = zip(operand.shape, node.attrs["axes"], strict=True)
    return ((operand, tuple(ZERO if extent == 1 else at[axis] for extent, axis in places)),)


def _slice(node: Node, at: Coordinates) -> tuple[Read, ...]:
    steps = zip(at, node.attrs["start"], node.attrs["stride"], strict=True)
    return ((node.operands[0], tuple(linear([(index, stride)], start) for index, start, stride in steps)),)


def _flip(node: Node, at: Coordinates) -> tuple[Read, ...]:
    axes = node.attrs["axes"]
    flipped = (
        linear([(index, -1)], extent - 1) if axis in axes else index
        for axis, (index, extent) in enumerate(zip(at, node.shape, strict=True))
    )
    return ((node.operands[0], tuple(flipped)),)


def _pad(node: Node, at: Coordinates) -> tuple[Read, ...]:
    """Outside the operand the nearest element is read, and not used."""
    (operand,) = node.operands
    source = []
    for index, low, between, extent in zip(at, node.attrs["low"], node.attrs["interior"], operand.shape, strict=True):
        step = between + 1
        source.append(quotient(clamp(add(index, -low), 0, (extent - 1) * step), step))
    return ((operand, tuple(source)),)


def inside_pad(node: Node, at: Coordinates) -> list[Within]:
    """When an element of a pad is the operand's; conditions that always hold are left out."""
    (operand,) = node.operands
    conditions = []
    for index, low, between, extent in zip(at, node.attrs["low"], node.attrs["interior"], operand.shape, strict=True):
        step = between + 1 if extent > 1 else 1
        conditions.append(Within(index, low, low + (extent - 1) * step, step))
    return [condition for condition in conditions if not condition.always]


def _shear(node: Node, at: Coordinates) -> tuple[Read, ...]:
    source = list(at)
    for axis, along, stride, dilation in sheared_axes(node):
        source[axis] = linear([(at[axis], stride), (at[along], dilation)])
    return ((node.operands[0], tuple(source)),)


def sheared_axes(node: Node) -> Iterator[tuple[int, int, int, int]]:
    """(axis, axis along which its places move, stride, dilation), of each sheared axis."""
    return zip(*(node.attrs[name] for name in ("axes", "along", "stride", "dilation")), strict=True)


def _unshear(node: Node, at: Coordinates) -> tuple[Read, ...]:
    """Where no element stands the nearest one is read, and not used."""
    (operand,) = node.operands
    source = list(at)
    for axis, along, stride, dilation in sheared_axes(node):
        place = linear([(at[axis], 1), (at[along], -dilation)])
        source[axis] = quotient(clamp(place, 0, (operand.shape[axis] - 1) * stride), stride)
    return ((operand, tuple(source)),)


def inside_unshear(node: Node, at: Coordinates) -> list[Within]:
    """When an element of an unshear is the operand's; conditions that always hold are left out."""
    (operand,) = node.operands
    conditions = []
    for axis, along, stride, dilation in sheared_axes(node):
        place = linear([(at[axis], 1), (at[along], -dilation)])
        last = operand.shape[axis] - 1
        conditions.append(Within(place, 0, last * stride, stride if last else 1))
    return [condition for condition in conditions if not condition.always]


def concatenate_starts(node: Node) -> list[int]:
    """Where each operand of a concatenate begins along its axis."""
    starts, axis = [0], node.attrs["axis"]
    for operand in node.operands[:-1]:
        starts.append(starts[-1] + operand.shape[axis])
    return starts


# Operations whose elements are each one of their operand's.
MOVES = frozenset(("reshape", "transpose", "broadcast", "slice", "flip"))


def lies_end_to_end(node: Node) -> bool:
    """Whether a concatenation is of inputs that are only moved."""
    return node.op == "concatenate" and all(map(_is_moved_input, node.operands))


def _is_moved_input(node: Node) -> bool:
    while node.op in MOVES:
        (node,) = node.operands
    return node.op == INPUT or lies_end_to_end(node)


def _concatenate(node: Node, at: Coordinates) -> tuple[Read, ...]:
    axis = node.attrs["axis"]
    reads = []
    for operand, start in zip(node.operands, concatenate_starts(node), strict=True):
        along = near(add(at[axis], -start), 0, operand.shape[axis] - 1)
        reads.append((operand, (*at[:axis], along, *at[axis + 1 :])))
    return tuple(reads)


def behind_counted(index: Node) -> list[Node]:
    """The nodes of which the value of an index operand is made, operands first, if `counted` knows it; else none."""
    chain = [index]
    while chain[-1].op in MOVES:
        chain.append(chain[-1].operands[0])
    return chain[::-1] if chain[-1].op in ("iota", "constant") else []


def counted(index: Node, at: Coordinates) -> Index | None:
    """The value of an index operand that counts or is constant, however it was moved; None: it must be read."""
    while index.op in MOVES:
        ((index, at),) = READS[index.op](index, at)
    if index.op == "iota":
        axis: int = index.attrs["axis"]
        return at[axis]
    return constant(index.attrs["value"]) if index.op == "constant" else None


def _gather(node: Node, at: Coordinates) -> tuple[Read, ...]:
    """Indices first: the array's coordinates are made of them."""
    array, *indices = node.operands
    rank = len(indices[0].shape)
    places, window = at[:rank], iter(at[rank:])
    reads: list[Read] = []
    position: dict[int, Index] = {}
    for index, axis in zip(indices, node.attrs["axes"], strict=True):
        known = counted(index, places)
        if known is None:
            reads.append((index, places))
            position[axis] = lookup(index, places, array.shape[axis])
        else:
            position[axis] = clamp(known, 0, array.shape[axis] - 1)
    source = tuple(position[axis] if axis in position else next(window) for axis in range(len(array.shape)))
    return (*reads, (array, source))


READS: dict[str, Callable[[Node, Coordinates], tuple[Read, ...]]] = {
    **dict.fromkeys(names_of_family("elementwise"), _elementwise),
    "constant": _nothing,
    "iota": _nothing,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "flip": _flip,
    "pad": _pad,
    "shear": _shear,
    "unshear": _unshear,
    "concatenate": _concatenate,
    "gather": _gather,
}
