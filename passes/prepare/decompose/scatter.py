"""Scatters of many updates over few lines, which would have few invocations go through them one by one.

Where the array is small the updates are dealt out to several copies of it, which are then folded. Where it is large
they are sorted by their places, so that those of one place stand side by side, and only the places that they go to are
visited. In both ways the updates of an element are joined in an order that is the same on every run.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce as joined
from math import prod

from lavax.ir.graph import Node
from lavax.ir.ops.indexing import JOINS, SCATTERS
from lavax.ir.ops.lowered.scatter import levels_of
from lavax.ir.types import uint32
from lavax.passes.build.builder import (
    add,
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
    slice_along,
    splat,
    transpose,
    transposed,
    where,
)
from lavax.passes.kernels.scatter_lines import Lines, lines_of
from lavax.passes.prepare.decompose.radix_sort import WORD, keys_of, payload_of, sorted_by_bits, with_payload
from lavax.passes.prepare.decompose.sorting import has_digits_sorted, order_of_rows
from lavax.passes.target.kernel_limits import MAX_LOOP_ITERATIONS
from lavax.passes.target.target import Target

# So few updates a line's invocation joins itself, one by one.
_FEW_UPDATES = 1 << 5
# So many updates for one line are many, and so many lines are enough for any device.
_MANY_UPDATES, _MANY_LINES = 1 << 11, 1 << 12
# How many updates each copy of a small array takes at least, how much memory the copies may always take, and how many
# lines of all copies make it worth while.
_LEAST_SHARE, _ALWAYS_SMALL, _ENOUGH_COPIES = 64, 1 << 16, 32

# So many updates one invocation joins in a row; what a run has behind them was folded before.
_CHUNK = 1 << 7


def _scatter(node: Node, target: Target) -> Node:
    array, updates, *indices = node.operands
    if updates.type.size == 0:
        return array
    lines, keys = lines_of(node), indices[0].type.size
    steps = prod(indices[0].shape[place] for place in lines.serial)
    count = array.type.size // prod(array.shape[axis] for axis in lines.along)
    if steps <= _FEW_UPDATES or (keys > steps and count >= _MANY_LINES and steps <= MAX_LOOP_ITERATIONS):
        return node
    join = node.op.removeprefix("scatter_")
    if join in JOINS and steps >= _MANY_UPDATES and count < _MANY_LINES:
        room = max(2 * updates.type.size, _ALWAYS_SMALL) // array.type.size
        parts = min(-(-_MANY_LINES // count), steps // _LEAST_SHARE, room)
        if parts * count >= _ENOUGH_COPIES and steps <= parts * MAX_LOOP_ITERATIONS:
            return _by_copies(node, lines, join, parts)
    return _by_runs(node, join, target)


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
    identity = JOINS[join].identity(array.dtype)
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
    return build(join, array, reduce(JOINS[join].reduction, copies, (0,)))


def _by_runs(node: Node, join: str, target: Target) -> Node:
    array, updates, *indices = node.operands
    axes, count = node.attrs["axes"], indices[0].type.size
    extents = [array.shape[axis] for axis in axes]
    # The indexed axes side by side, where the first of them stands.
    window = [axis for axis in range(array.type.rank) if axis not in axes]
    position = [*window[: axes[0]], *axes, *window[axes[0] :]]
    places = reshape(_flat_places(indices, extents), (count,))
    lines = reshape(updates, (count, *updates.shape[indices[0].type.rank :]))
    runs = _in_order(places, lines, prod(extents), target)
    levels = _folded(runs, join)
    neighbours = range(axes[0], axes[0] + len(axes))
    moved = transposed(array, position)
    joined = build("join_runs", moved, *runs, *levels, join=join, chunk=_CHUNK, axes=tuple(neighbours))
    return transposed(joined, sorted(range(len(position)), key=position.__getitem__))


def _folded(runs: tuple[Node, Node, Node], join: str) -> list[Node]:
    """The first run of every chunk of updates, then that of every chunk of these, until they are one chunk."""
    updates, order, places = runs
    levels: list[Node] = []
    for count in levels_of(places.type.size, _CHUNK):
        levels.append(build("fold_runs", updates, order, places, join=join, chunk=_CHUNK))
        updates, places = levels[-1], slice_along(places, 0, 0, places.type.size, _CHUNK)
        order = iota(index_type((count,)), 0)
    return levels


def _in_order(places: Node, updates: Node, extent: int, target: Target) -> tuple[Node, Node, Node]:
    """The updates, their numbers in the order of their places, and the places in order."""
    numbers = iota(places.type, 0)
    if not has_digits_sorted(places, target):
        order = order_of_rows(places, target)
        return updates, order, gather(places, (order,), (0,))
    goes_along = updates.type.rank == 1 and updates.dtype.bits == WORD
    payload = build("bitcast", updates, type=places.type.with_dtype(uint32)) if goes_along else numbers
    pairs = sorted_by_bits(with_payload(places, payload), WORD, extent.bit_length())
    if not goes_along:
        return updates, payload_of(pairs), keys_of(pairs)
    return build("bitcast", payload_of(pairs), type=updates.type), numbers, keys_of(pairs)


def _flat_places(indices: Sequence[Node], extents: Sequence[int]) -> Node:
    """The row-major position of each update; behind all places for those outside the range."""
    checks, flat = [], None
    for index, extent in zip(indices, extents, strict=True):
        checks += [greater_equal(index, splat(0, index.type)), less(index, splat(extent, index.type))]
        flat = index if flat is None else add(multiply(flat, splat(extent, index.type)), index)
    assert flat is not None
    return where(joined(logical_and, checks), flat, splat(prod(extents), flat.type))


RULES: dict[str, Callable[[Node, Target], Node]] = dict.fromkeys(SCATTERS, _scatter)

