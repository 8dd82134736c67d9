"""Batching of reductions over a named axis: over the batch if it has that name, otherwise elementwise."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Graph, Node
from lavax.ir.ops.named_axes import REDUCTIONS
from lavax.passes.batch.batch_rule import Axis, BatchRule, Operand, in_front, shifted
from lavax.passes.batch.elementwise import elementwise
from lavax.passes.build.builder import build, index_type, iota, multiply, reduce, splat


def refers_to(node: Node, name: str | None) -> bool:
    """Whether the node, or one of the graphs it holds, refers to the axis of that name."""
    if name is None:
        return False
    if node.op in RULES:
        return bool(node.attrs["name"] == name)
    graphs = (part for value in node.attrs.values() for part in (value if isinstance(value, tuple) else (value,)))
    return any(refers_to(inner, name) for graph in graphs if isinstance(graph, Graph) for inner in graph.nodes)


def _elsewhere(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    """The rule for an axis other than the batch axis."""
    if not any(operand.batched for operand in operands):
        return Operand(build(node.op, *(operand.node for operand in operands), **node.attrs), False)
    return Operand(elementwise(node, operands, axis), True)


def _reduction(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    (x,) = operands
    if node.attrs["name"] != axis.name:
        return _elsewhere(node, operands, axis)
    if x.batched:
        return Operand(reduce(REDUCTIONS[node.op], x.node, (0,)), False)
    if node.op == "axis_sum":
        return Operand(multiply(x.node, splat(axis.size, x.node.type)), False)
    return x


def _index(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    if node.attrs["name"] != axis.name:
        return Operand(build(node.op, **node.attrs), False)
    return Operand(iota(index_type((axis.size,)), 0), True)


def _gather(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    """The values of all elements along a new first axis, which is the batch axis itself."""
    (x,) = operands
    if node.attrs["name"] == axis.name:
        return Operand(in_front(x, axis), False)
    if not x.batched:
        return Operand(build(node.op, x.node, **node.attrs), False)
    gathered = build(node.op, x.node, **node.attrs)  # the named axis, the batch axis, then the axes of x
    order = (1, 0, *shifted(shifted(range(node.operands[0].type.rank))))
    return Operand(build("transpose", gathered, axes=order), True)


RULES: dict[str, BatchRule] = {
    **dict.fromkeys(REDUCTIONS, _reduction),
    "axis_index": _index,
    "axis_gather": _gather,
}
