"""Scatters of many updates over few lines, which would have few invocations go through them one by one.

Where the array is small the updates are dealt out to several copies of it, which are then folded. Where it is large
they are brought into the order of their places, so that each element finds its own side by side. In both ways the
updates of an element are joined in an order that is the same on every run.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as joined
from math import prod

from lavax.ir.graph import Node
from lavax.ir.ops.indexing import JOINS, SCATTERS
from lavax.ir.types import DType
from lavax.passes.builder import (
    add,
    broadcast,
    build,
    gather,
    greater_equal,
    index_type,
    iota,
    less,
    logical_and,
    multiply,
    pad,
    reduce,
    reshape,
    scatter,
    splat,
    transpose,
    where,
)
from lavax.passes.decompose.sorting import order_of_rows
from lavax.passes.kernels.scatter_lines import Lines, lines_of

# So many updates for one line are many, and so many lines are enough for any device.
_MANY_UPDATES, _MANY_LINES = 1 << 11, 1 << 12
# How many updates each copy of a small array takes at least, how much memory the copies may always take, and how many
# lines of all copies make it worth while.
_LEAST_SHARE, _ALWAYS_SMALL, _ENOUGH_COPIES = 64, 1 << 16, 32

_FOLDS = {"add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max"}
_IDENTITIES: dict[str, Callable[[DType], float | int | bool]] = {
    "add": lambda dtype: dtype.number(0),
    "multiply": lambda dtype: dtype.number(1),
    "minimum": lambda dtype: dtype.highest,
    "maximum": lambda dtype: dtype.lowest,
}


def _scatter(node: Node) -> Node:
    array, updates, *indices = node.operands
    lines = lines_of(node)
    steps = prod(indices[0].shape[place] for place in lines.serial)
    count = array.type.size // prod(array.shape[axis] for axis in lines.along)
    if steps < _MANY_UPDATES or count >= _MANY_LINES or updates.type.size == 0:
        return node
    join = node.op.removeprefix("scatter_")
    if join not in JOINS:
        return _last_one(node)
    room = max(2 * updates.type.size, _ALWAYS_SMALL) // array.type.size
    parts = min(-(-_MANY_LINES // count), steps // _LEAST_SHARE, room)
    if parts * count >= _ENOUGH_COPIES:
        return _by_copies(node, lines, join, parts)
    return _by_segments(node, join)


def _last_one(node: Node) -> Node:
    """scatter_set: the number of the last update of each place, and then what that update says."""
    array, updates, *indices = node.operands
    axes, shape = node.attrs["axes"], indices[0].shape
    count = prod(shape)
    numbers = reshape(iota(index_type((count,)), 0), shape)
    places = index_type([array.shape[axis] for axis in axes])
    last = _scatter(scatter("maximum", splat(-1, places), numbers, indices, range(len(axes))))
    window = updates.shape[len(shape) :]
    read = gather(reshape(updates, (count, *window)), (last,), (0,))
    order = _axes_in_front(array, axes)
    back = sorted(range(len(order)), key=order.__getitem__)
    written = broadcast(greater_equal(last, splat(0, last.type)), read.shape, range(len(axes)))
    return where(transpose(written, back), transpose(read, back), array)


def _axes_in_front(array: Node, axes: Sequence[int]) -> list[int]:
    return [*axes, *(axis for axis in range(array.type.rank) if axis not in axes)]


def _by_copies(node: Node, lines: Lines, join: str, parts: int) -> Node:
    array, updates, *indices = node.operands
    axes, shape = node.attrs["axes"], indices[0].shape
    kept = list(lines.aligned.values())
    steps = prod(shape[place] for place in lines.serial)
    share = -(-steps // parts)
    front = tuple(shape[place] for place in kept)
    places = [*kept, *lines.serial]

    def dealt_out(value: Node, filling: float | bool) -> Node:
        window = value.shape[len(shape) :]
        moved = transpose(value, [*places, *range(len(shape), value.type.rank)])
        flat = reshape(moved, (*front, steps, *window))
        none = [0] * flat.type.rank
        more = [parts * share - steps if axis == len(front) else 0 for axis in range(flat.type.rank)]
        full = pad(flat, none, more, none, filling) if any(more) else flat
        return reshape(full, (*front, parts, share, *window))

    dealt = index_type((*front, parts, share))
    identity = _IDENTITIES[join](array.dtype)
    positions = [
        iota(dealt, kept.index(lines.aligned[axis])) if axis in lines.aligned else dealt_out(index, -1)
        for index, axis in zip(indices, axes, strict=True)
    ]
    copies = scatter(
        join,
        splat(identity, array.type.with_shape((parts, *array.shape))),
        dealt_out(updates, identity),
        [iota(dealt, len(front)), *positions],
        [0, *(axis + 1 for axis in axes)],
    )
    return build(join, array, reduce(_FOLDS[join], copies, (0,)))


def _by_segments(node: Node, join: str) -> Node:
    array, updates, *indices = node.operands
    axes, count = node.attrs["axes"], indices[0].type.size
    extents = [array.shape[axis] for axis in axes]
    places, order = prod(extents), _axes_in_front(array, axes)
    width = array.type.size // places
    rows = reshape(transpose(array, order), (places, width))
    place = reshape(_flat_places(indices, extents), (1, count))
    sequence = order_of_rows(place)
    ordered = gather(reshape(place, (count,)), (reshape(sequence, (count,)),), (0,))
    bounds = build("search_sorted", ordered, iota(index_type((places + 1,)), 0), right=False)
    folded = build(
        "fold_segments", rows, reshape(updates, (count, width)), reshape(sequence, (count,)), bounds, join=join
    )
    moved = reshape(folded, [array.shape[axis] for axis in order])
    return transpose(moved, sorted(range(len(order)), key=order.__getitem__))


def _flat_places(indices: Sequence[Node], extents: Sequence[int]) -> Node:
    """The row-major position of each update; behind all places for those outside the range."""
    checks, flat = [], None
    for index, extent in zip(indices, extents, strict=True):
        checks += [greater_equal(index, splat(0, index.type)), less(index, splat(extent, index.type))]
        flat = index if flat is None else add(multiply(flat, splat(extent, index.type)), index)
    assert flat is not None
    return where(joined(logical_and, checks), flat, splat(prod(extents), flat.type))


RULES: dict[str, Callable[[Node], Node]] = dict.fromkeys(SCATTERS, _scatter)

