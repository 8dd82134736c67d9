"""Orders of sorted values from other orders."""
from __future__ import annotations

from lavax.ir.graph import Node
from lavax.passes.build.builder import flip, slice_along, splat, subtract


def first_of_falling(backwards: Node, axis: int, count: int) -> Node:
    """The first `count` of a falling order, from the stable rising one of the flipped value."""
    last = splat(backwards.shape[axis] - 1, backwards.type)
    return slice_along(subtract(last, flip(backwards, (axis,))), axis, 0, count)
