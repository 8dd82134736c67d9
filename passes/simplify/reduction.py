"""Reductions: over fewer axes, of fewer elements, and of operands as they lie in memory."""
from __future__ import annotations

from math import prod

from lavax.ir.graph import Node
from lavax.passes.build.builder import (
    broadcast,
    cast,
    multiply,
    negate,
    reduce,
    reshape,
    splat,
    sum_over,
    transpose,
    zeros,
)
from lavax.passes.build.matching import axis_groups, other_axes
from lavax.passes.numerics.widen import wide_float
from lavax.passes.simplify import folding
from lavax.passes.simplify.rewriting import RewriteRule


def _over_nothing(node: Node) -> Node | None:
    (x,) = node.operands
    return None if node.attrs["axes"] else x


def _over_units(node: Node) -> Node | None:
    """Removes axes of extent 1 by a reshape."""
    (x,) = node.operands
    axes = [axis for axis in node.attrs["axes"] if x.shape[axis] != 1]
    return None if len(axes) == len(node.attrs["axes"]) else reshape(reduce(node.op, x, axes), node.shape)


def _twice(node: Node) -> Node | None:
    """sum(sum(x)) -> sum(x) over the axes of both; the same for prod, max, min."""
    (inner,) = node.operands
    if inner.op != node.op:
        return None
    (x,) = inner.operands
    left = other_axes(x.type.rank, inner.attrs["axes"])
    return reduce(node.op, x, [*inner.attrs["axes"], *(left[axis] for axis in node.attrs["axes"])])


def _of_transpose(node: Node) -> Node | None:
    """reduce(transpose(x)) -> reduce(x), transposed if the remaining axes change their order."""
    (moved,) = node.operands
    if moved.op != "transpose":
        return None
    places = moved.attrs["axes"]
    gone = [places[axis] for axis in node.attrs["axes"]]
    left = [axis for axis in places if axis not in gone]
    return transpose(reduce(node.op, moved.operands[0], gone), [sorted(left).index(axis) for axis in left])


def _of_reshape(node: Node) -> Node | None:
    """reduce(reshape(x)) -> reshape(reduce(x)), if each axis of x is reduced or kept as a whole."""
    (moved,) = node.operands
    if moved.op != "reshape":
        return None
    (x,) = moved.operands
    axes, gone = set(node.attrs["axes"]), []
    for before, after in axis_groups(x.shape, moved.shape):
        if axes.issuperset(after):
            gone += before
        elif not axes.isdisjoint(after):
            return None
    return reshape(reduce(node.op, x, gone), node.shape)


def _of_broadcast(node: Node) -> Node | None:
    """reduce(broadcast(x)) -> broadcast(reduce(x)); a sum over n repetitions is multiplied by n, rounded once."""
    (repeated,) = node.operands
    if repeated.op != "broadcast":
        return None
    (x,) = repeated.operands
    places, axes = repeated.attrs["axes"], node.attrs["axes"]
    own = [axis for axis, place in enumerate(places) if place in axes]
    count = prod(repeated.shape[axis] for axis in axes if axis not in places)
    if node.op == "prod" and count > 1:
        return None
    if node.op == "sum" and count > 1:
        held = wide_float(node.dtype)
        summed = reduce(node.op, cast(x, held), own)
        reduced = cast(multiply(summed, splat(count, summed.type)), node.dtype)
    else:
        reduced = reduce(node.op, x, own)
    left = other_axes(repeated.type.rank, axes)
    return broadcast(reduced, node.shape, [left.index(place) for place in places if place not in axes])


def _sum_of_negated(node: Node) -> Node | None:
    """sum(-x) -> -sum(x)."""
    (x,) = node.operands
    return negate(sum_over(x.operands[0], node.attrs["axes"])) if x.op == "negate" else None


def _position_of_equals(node: Node) -> Node | None:
    """argmax or argmin of equal elements, or of one element -> 0."""
    (x,) = node.operands
    return zeros(node.type) if x.op == "constant" or x.shape[node.attrs["axis"]] == 1 else None


_COMMON: tuple[RewriteRule, ...] = (_over_nothing, _over_units, _of_transpose, _of_reshape, _of_broadcast)

RULES: dict[str, tuple[RewriteRule, ...]] = {
    "sum": (folding.sum_of_splat, *_COMMON, _sum_of_negated),
    "prod": (folding.prod_of_splat, *_COMMON),
    "max": (folding.movement, *_COMMON),
    "min": (folding.movement, *_COMMON),
    "argmax": (_position_of_equals,),
    "argmin": (_position_of_equals,),
}
# For nodes that are the only users of their operand.
MERGING: dict[str, tuple[RewriteRule, ...]] = dict.fromkeys(("sum", "prod", "max", "min"), (_twice,))
