"""Gathers and scatters whose positions are partly known."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    broadcast,
    equal,
    gather,
    index_type,
    iota,
    logical_and,
    reshape,
    scatter_add,
    slice_along,
    transpose,
    where,
    zeros,
)
from lavax.passes.build.matching import is_splat, is_value, other_axes, splat_value, without_units
from lavax.passes.simplify import folding
from lavax.passes.simplify.rewriting import RewriteRule


def _placed(x: Node, shape: Sequence[int], places: Sequence[int]) -> Node:
    """A broadcast whose axes need not be sorted: axis d of `x` becomes axis places[d]."""
    order = sorted(range(len(places)), key=places.__getitem__)
    return broadcast(transpose(x, order), shape, sorted(places))


def _gather_at_units(node: Node) -> Node | None:
    """Leaves the positions' axes of extent 1 to a reshape of the result."""
    x, *indices = node.operands
    if 1 not in indices[0].shape:
        return None
    squeezed = [reshape(index, without_units(index.shape)) for index in indices]
    return reshape(gather(x, squeezed, node.attrs["axes"]), node.shape)


def _gather_at_splat(node: Node) -> Node | None:
    """A position that is a splat -> a slice, without that axis."""
    x, *indices = node.operands
    axes = node.attrs["axes"]
    known = next((number for number, index in enumerate(indices) if is_splat(index)), None)
    if known is None:
        return None
    axis = axes[known]
    position = min(max(splat_value(indices[known]), 0), x.shape[axis] - 1)
    taken = slice_along(x, axis, position, position + 1)
    taken = reshape(taken, [extent for other, extent in enumerate(x.shape) if other != axis])
    del indices[known]
    if not indices:
        rank = node.type.rank
        return broadcast(taken, node.shape, range(rank - taken.type.rank, rank))
    left = [other - (other > axis) for other in axes if other != axis]
    return gather(taken, indices, left)


def _varies_along(index: Node, axis: int) -> bool:
    return not (index.op == "broadcast" and axis not in index.attrs["axes"])


def _without_axis(index: Node, axis: int) -> Node:
    """A broadcast index that does not vary along `axis`, without that axis."""
    kept = other_axes(index.type.rank, (axis,))
    return broadcast(
        index.operands[0], [index.shape[other] for other in kept], [kept.index(a) for a in index.attrs["axes"]]
    )


def _gather_of_whole_axis(node: Node) -> Node | None:
    """A position that is iota along an axis on which no other position depends -> the whole axis."""
    x, *indices = node.operands
    axes, rank = node.attrs["axes"], indices[0].type.rank
    for number, index in enumerate(indices):
        if index.op != "iota" or index.shape[index.attrs["axis"]] > x.shape[axes[number]]:
            continue
        along, axis = index.attrs["axis"], axes[number]
        others = indices[:number] + indices[number + 1 :]
        if any(_varies_along(other, along) for other in others):
            continue
        x = slice_along(x, axis, 0, index.shape[along])
        window = other_axes(x.type.rank, axes)
        if not others:
            return _placed(transpose(x, [axis, *window]), node.shape, [along, *range(rank, node.type.rank)])
        read = gather(x, [_without_axis(other, along) for other in others], axes[:number] + axes[number + 1 :])
        # The axes of `read`: those of the positions without `along`, then those of the window, which include `axis`.
        place = rank - 1 + sorted((*window, axis)).index(axis)
        order = other_axes(node.type.rank, (place,))
        return transpose(read, [*order[:along], place, *order[along:]])
    return None


def _scatter_nothing(node: Node) -> Node | None:
    """scatter_add(x, 0, i…) -> x."""
    x, updates, *_ = node.operands
    return x if is_value(updates, 0) else None


def _scatter_at_units(node: Node) -> Node | None:
    """Removes the positions' axes of extent 1 by a reshape of the updates."""
    x, updates, *indices = node.operands
    shape = indices[0].shape
    if 1 not in shape:
        return None
    squeezed = [reshape(index, without_units(index.shape)) for index in indices]
    updates = reshape(updates, without_units(shape) + updates.shape[len(shape) :])
    return scatter_add(x, updates, squeezed, node.attrs["axes"])


def _scatter_once(node: Node) -> Node | None:
    """scatter_add(0, u, i…) -> where(i = position, u, 0), if each element of the result has at most one update.

    That is the case if, for each axis of the positions, one of them is iota along it and covers the whole axis of the
    result. Then the update for an element is at known coordinates, and the other positions decide whether it applies.
    """
    x, updates, *indices = node.operands
    axes = node.attrs["axes"]
    if not is_value(x, 0):
        return None
    counting: dict[int, int] = {}  # axis of the positions -> axis of the result
    asking = []
    for index, axis in zip(indices, axes, strict=True):
        along = index.attrs["axis"] if index.op == "iota" else None
        if along is not None and along not in counting and index.shape[along] == x.shape[axis]:
            counting[along] = axis
        else:
            asking.append((index, axis))
    if len(counting) < indices[0].type.rank:
        return None
    places = [counting[along] for along in range(indices[0].type.rank)]
    placed = _placed(updates, x.shape, [*places, *other_axes(x.type.rank, axes)])
    if not asking:
        return placed
    positions = index_type(x.shape)
    meant = [equal(_placed(index, x.shape, places), iota(positions, axis)) for index, axis in asking]
    return where(reduce(logical_and, meant), placed, zeros(x.type))


RULES: dict[str, tuple[RewriteRule, ...]] = {
    "gather": (folding.movement, _gather_at_splat, _gather_at_units, _gather_of_whole_axis),
    "scatter_add": (_scatter_nothing, _scatter_at_units, _scatter_once),
}
