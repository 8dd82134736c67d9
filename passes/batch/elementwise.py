"""Batching of elementwise operations: operands without a batch axis are repeated."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Node
from lavax.passes.batch.batch_rule import Axis, Operand, in_front
from lavax.passes.build.builder import build


def elementwise(node: Node, operands: Sequence[Operand], axis: Axis) -> Node:
    repeated = [in_front(operand, axis) for operand in operands]
    declared = node.type.with_shape((axis.size, *node.shape))
    return build(node.op, *repeated, type=declared, **node.attrs)
