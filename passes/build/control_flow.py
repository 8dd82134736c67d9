"""Builds nodes that hold graphs (branches, loops, calls) and takes their results apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.ir.graph import Node, make_node
from lavax.ir.types import TensorType, TupleType, tuple_of
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
