"""What a batching rule is, and what rules are made of.

In normal form a batched value has the batch axis in front of its own axes.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lavax.ir.graph import Node
from lavax.passes.build.builder import broadcast, build


@dataclass(frozen=True)
class Axis:
    """The axis that is put in front: its extent, and its name if it has one."""

    size: int
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Operand:
    """A value of the new graph: one for each element of the batch, or one for all of them."""

    node: Node
    batched: bool


# rule(node, operands, axis): the value of `node` on these operands. It is called only where an operand is batched,
# and where the node speaks of the axis by its name.
BatchRule = Callable[[Node, Sequence[Operand], Axis], Operand]
# The same, for operations that are batched as soon as an operand is.
SimpleBatchRule = Callable[[Node, Sequence[Operand], Axis], Node]


def batched_by(simple: SimpleBatchRule) -> BatchRule:
    """The rule that gives what `simple` builds as a batched value."""

    def rule(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
        return Operand(simple(node, operands, axis), True)

    return rule


def in_front(operand: Operand, axis: Axis) -> Node:
    """The operand with a batch axis: its own, or by repetition."""
    node = operand.node
    if operand.batched:
        return node
    shape = (axis.size, *node.shape)
    if node.op == "constant":
        return build("constant", type=node.type.with_shape(shape), value=node.attrs["value"])
    return broadcast(node, shape, range(1, len(shape)))


def shifted(axes: Sequence[int]) -> tuple[int, ...]:
    """Axes of a value as axes of the batched one."""
    return tuple(axis + 1 for axis in axes)


def to_front(node: Node, axis: int) -> Node:
    """`node` with that axis moved in front of all others."""
    if axis == 0:
        return node
    order = (axis, *(other for other in range(node.type.rank) if other != axis))
    return build("transpose", node, axes=order)


def from_front(node: Node, axis: int) -> Node:
    """`node` with its first axis moved to be the one at `axis`."""
    if axis == 0:
        return node
    order = list(range(1, node.type.rank))
    order.insert(axis, 0)
    return build("transpose", node, axes=tuple(order))
