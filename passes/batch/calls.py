"""Functions that keep their name in the graph: their bodies and rules are batched."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.ir.graph import Graph, LaterGraph, Node
from lavax.passes.batch.rule import Axis, Operand, Rule, in_front
from lavax.passes.builder import build


def batched_body(graph: Graph, batched: Sequence[bool], axis: Axis) -> Graph:
    """`graph` with the batch axis in front of those inputs and of all outputs."""
    from lavax.passes.batch.batching import batch  # which goes through calls by these rules

    places = [0 if flag else None for flag in batched]
    return batch(graph, places, [0] * len(graph.outputs), axis.size, axis.name)


def _custom(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    """All operands are repeated, so that a rule's cotangents are those of one element, and are summed by the
    gradient of the repetition."""
    attrs = {name: _batched_rule(value, axis) for name, value in node.attrs.items()}
    return Operand(build(node.op, *(in_front(operand, axis) for operand in operands), **attrs), True)


def _batched_rule(value: Any, axis: Axis) -> Any:
    if isinstance(value, Graph):
        return batched_body(value, [True] * len(value.inputs), axis)
    return LaterGraph(lambda: _batched_rule(value.graph, axis)) if isinstance(value, LaterGraph) else value


def _checkpoint(node: Node, operands: Sequence[Operand], axis: Axis) -> Operand:
    body = batched_body(node.attrs["body"], [operand.batched for operand in operands], axis)
    return Operand(build(node.op, *(operand.node for operand in operands), keep=node.attrs["keep"], body=body), True)


RULES: dict[str, Rule] = {
    "checkpoint": _checkpoint,
    "custom_jvp": _custom,
    "custom_vjp": _custom,
}
