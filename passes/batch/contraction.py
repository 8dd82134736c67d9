"""Batching of contractions: a batch axis of both operands becomes one of the dot; of one operand, a free axis."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.ir.graph import Node
from lavax.passes.batch.batch_rule import Axis, BatchRule, Operand, batched_by, shifted, to_front
from lavax.passes.build.builder import build, dot, free_axes_of, precision_of


def _dot(node: Node, operands: Sequence[Operand], axis: Axis) -> Node:
    left, right = operands
    (left_batch, right_batch), (left_sum, right_sum) = node.attrs["batch"], node.attrs["contract"]
    rounding = precision_of(node)
    if left.batched:
        left_batch, left_sum = shifted(left_batch), shifted(left_sum)
    if right.batched:
        right_batch, right_sum = shifted(right_batch), shifted(right_sum)
    if left.batched and right.batched:
        return dot(left.node, right.node, (left_sum, right_sum), ((0, *left_batch), (0, *right_batch)), **rounding)
    if right.batched and not left_batch and right.node.type.rank == 1 + len(right_sum):
        # Vectors become the rows of a product, whose batch axis is in front already.
        return dot(right.node, left.node, (right_sum, left_sum), **rounding)
    product = dot(left.node, right.node, (left_sum, right_sum), (left_batch, right_batch), **rounding)
    free_before = 0 if left.batched else len(free_axes_of(product)[0])
    return to_front(product, len(left_batch) + free_before)


def _conv(node: Node, operands: Sequence[Operand], axis: Axis) -> Node:
    left, right = operands
    attrs: dict[str, Any] = dict(node.attrs)
    for name in ("batch", "contract", "window"):
        sides = zip(node.attrs[name], operands, strict=True)
        attrs[name] = tuple(shifted(axes) if operand.batched else axes for axes, operand in sides)
    (left_batch, right_batch), kept = attrs["batch"], node.operands[0].type.rank - len(node.attrs["contract"][0])
    if left.batched and right.batched:
        attrs["batch"] = ((0, *left_batch), (0, *right_batch))
        return build("conv", left.node, right.node, **attrs)
    product = build("conv", left.node, right.node, **attrs)
    return to_front(product, len(left_batch) if left.batched else kept)


RULES: dict[str, BatchRule] = {"dot": batched_by(_dot), "conv": batched_by(_conv)}
