"""Values whose axes are axes of the scores, and views of them with these axes in another order.

A `Placed` value maps each of its axes to a score axis, or to None for an axis of extent 1 that is not a score axis. So
movement between two operations of a pattern has no effect, as long as it splits no axis.
"""
from __future__ import annotations

from collections.abc import Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.builder import broadcast, reshape, transpose
from lavax.passes.build.matching import axis_groups

Axes = tuple[int | None, ...]


@dataclass(frozen=True)
class Placed:
    """A node, and the score axis of each of its axes."""

    node: Node
    axes: Axes


def same_axes(one: Axes, other: Axes) -> bool:
    """Whether two values of one shape have the same axes at the same positions; axes of extent 1 do not matter."""
    return all(a == b or a is None or b is None for a, b in zip(one, other, strict=True))


def behind(placed: Placed) -> Placed | None:
    """The operand, if the value is a cast between floats or movement that splits no axis; else None."""
    node, axes = placed.node, placed.axes
    if node.op == "cast":
        (operand,) = node.operands
        return Placed(operand, axes) if operand.dtype.is_float and node.dtype.is_float else None
    if node.op == "transpose":
        found: list[int | None] = [None] * len(axes)
        for axis, source in zip(axes, node.attrs["axes"], strict=True):
            found[source] = axis
        return Placed(node.operands[0], tuple(found))
    if node.op == "reshape":
        return _behind_reshape(placed)
    return None


def _behind_reshape(placed: Placed) -> Placed | None:
    (operand,) = placed.node.operands
    if not operand.type.size:
        return None
    found: list[int | None] = [None] * operand.type.rank
    for before, after in axis_groups(operand.shape, placed.node.shape):
        if len(before) != 1 or len(after) != 1:
            return None
        found[before[0]] = placed.axes[after[0]]
    return Placed(operand, tuple(found))


def settled(placed: Placed) -> list[Placed]:
    """The value and all values that `behind` leads to, the last one first."""
    chain = [placed]
    while (found := behind(chain[-1])) is not None:
        chain.append(found)
    return chain[::-1]


def repeated_from(placed: Placed) -> Placed | None:
    """The operand of a broadcast, with its axes; None if the value is no broadcast."""
    if placed.node.op != "broadcast":
        return None
    (operand,) = placed.node.operands
    places = placed.node.attrs["axes"]
    axes = tuple(
        None if extent == 1 else placed.axes[place] for extent, place in zip(operand.shape, places, strict=True)
    )
    return Placed(operand, axes)


def in_order(placed: Placed, order: Sequence[int], extents: Sequence[int]) -> Node:
    """The value with the score axes in `order`, broadcast along those it lacks; other axes are dropped."""
    kept = [axis for axis in placed.axes if axis is not None]
    node = placed.node
    if len(kept) != len(placed.axes):
        node = reshape(node, [extents[axis] for axis in kept])
    there = [axis for axis in order if axis in kept]
    node = transpose(node, [kept.index(axis) for axis in there])
    return broadcast(node, [extents[axis] for axis in order], [order.index(axis) for axis in there])
