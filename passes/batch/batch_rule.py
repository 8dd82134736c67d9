"""The type of batching rules, and the functions that rules share.

In normal form, a batched value has the batch axis in front of its own axes.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import Node
from lavax.passes.build.builder import broadcast, build


@dataclass(frozen=True)
class Axis:
    """The batch axis: its extent, and its name if it has one."""

    size: int
    name: str | None = None


@dataclass(frozen=True, eq=False)
class Operand:
    """A value of the new graph, either one per batch element or one for all of them."""

    node: Node
    batched: bool


# rule(node, operands, axis): the value of `node` on these operands. It is called only if an operand is batched or the
# node refers to the axis by name.
BatchRule = Callable[[Node, Sequence[Operand], Axis], Operand]
# The same, for operations whose result is always batched if an operand is.
SimpleBatchRule = Callable[[Node, Sequence[Operand], Axis], Node]


def batched_by(simple: SimpleBatchRule) -> BatchRule:
    """The rule that marks the result of `simple` as batched."""

    def rule(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
        return Operand(simple(node, operands, axis), True)

    return rule


def in_front(operand: Operand, axis: Axis) -> Node:
    """The operand with a batch axis; one without is repeated."""
    node = operand.node
    if operand.batched:
        return node
    shape = (axis.size, *node.shape)
    if node.op == "constant":
        return build("constant", type=node.type.with_shape(shape), value=node.attrs["value"])
    return broadcast(node, shape, range(1, len(shape)))


def shifted(axes: Sequence[int]) -> tuple[int, ...]:
    """The numbers of a value's axes once it is batched."""
    return tuple(axis + 1 for axis in axes)


def to_front(node: Node, axis: int) -> Node:
    """`node` with that axis moved in front of all others."""
    if axis == 0:
        return node
    order = (axis, *(other for other in range(node.type.rank) if other != axis))
    return build("transpose", node, axes=order)


def from_front(node: Node, axis: int) -> Node:
    """`node` with its first axis moved to position `axis`."""
    if axis == 0:
        return node
    order = list(range(1, node.type.rank))
    order.insert(axis, 0)
    return build("transpose", node, axes=tuple(order))
