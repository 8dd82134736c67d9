"""Builds nodes that hold graphs (branches, loops, calls) and takes their results apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.ir.graph import Graph, Node, make_node
from lavax.ir.types import TensorType, TupleType, int32, tuple_of
from lavax.passes.build.builder import build


def item(node: Node, index: int) -> Node:
    """One result of a node with several."""
    return build("item", node, index=index)


def control_flow(op: str, operands: Sequence[Node], parts: Sequence[TensorType], **attrs: Any) -> Node:
    """A node that holds graphs."""
    return make_node(op, operands, attrs, tuple_of(parts))


def parts_of(node: Node) -> tuple[TensorType, ...]:
    """The types of the node's results."""
    assert isinstance(node.type, TupleType)
    return node.type.parts


def counted_step(body: Graph, position: int) -> int | None:
    """By how much each turn counts up a 32-bit integer that it carries; None if it does anything else with it."""
    before, after = body.inputs[position], body.outputs[position]
    if before.type != TensorType((), int32) or after.op != "add" or before not in after.operands:
        return None
    (other, *_) = [operand for operand in after.operands if operand is not before] or [before]
    return int(other.attrs["value"]) if other.op == "constant" else None
