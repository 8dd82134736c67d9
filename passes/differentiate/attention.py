"""Gradients of attention: separate operations with memory linear in the sequence, whose own gradients are
those of their compositions."""
from __future__ import annotations

from functools import lru_cache

from lavax.ir.graph import Node, further_inputs, graph_of, with_operands
from lavax.ir.ops.attention import ATTRIBUTES, statistic_dtype
from lavax.passes.build.attention import (
    composition,
    named_operands,
    unscaled_score_gradient,
    weights_of_derivative,
)
from lavax.passes.build.builder import build, cast, multiply, sum_over
from lavax.passes.build.inline import inline
from lavax.passes.differentiate.gradient_rule import GradientRule

_GRADIENTS = {"query": "attention_query_gradient", "key": "attention_key_gradient"}


@lru_cache(maxsize=1)
def _statistics(node: Node, cotangent: Node) -> tuple[Node, Node]:
    """The logsumexp and delta, cached because the rule is called once per operand and they are the same for all."""
    more = node.operands[3:]
    logsumexp = build("attention_logsumexp", *node.operands[:2], *more, **node.attrs)
    statistic = statistic_dtype(node.dtype)
    products = multiply(cast(cotangent, statistic), cast(node, statistic))
    return logsumexp, sum_over(products, (node.type.rank - 1,))


def _attention(node: Node, cotangent: Node, position: int) -> Node:
    operands = named_operands(node)
    name = list(operands)[position]
    attrs = {key: node.attrs[key] for key in ATTRIBUTES}
    more = [operands[key] for key in ("bias", "mask") if key in operands]
    query, key, value = node.operands[:3]
    logsumexp, delta = _statistics(node, cotangent)
    if name == "value":
        return build("attention_value_gradient", query, key, cotangent, logsumexp, *more, **attrs)
    found = (query, key, value, cotangent, delta, logsumexp, *more)
    if name == "bias":
        return _score_gradient(node, build("attention_query_gradient", *found, **attrs))
    return build(_GRADIENTS[name], *found, **attrs)


def _score_gradient(node: Node, derivative: Node) -> Node:
    """The cotangent of each score. Scores and logsumexps of few bits would lose what their difference is, and exp turns
    that into a relative error: all but the weights is computed in 32 bits, by products of what the operands are."""
    wide = statistic_dtype(node.dtype)
    if wide == node.dtype:
        return unscaled_score_gradient(derivative)
    operands = (cast(operand, wide) if operand.dtype.is_float else operand for operand in derivative.operands)
    precision = node.attrs["precision"] or node.dtype.name
    derivative = build(derivative.op, *operands, **{**derivative.attrs, "precision": precision})
    weights = cast(cast(weights_of_derivative(derivative), node.dtype), wide)
    return cast(unscaled_score_gradient(derivative, weights), node.dtype)


def _by_composition(node: Node, cotangent: Node, position: int) -> Node:
    """The gradient by a single operand position; the same node may be the operand at several positions."""
    from lavax.passes.differentiate.reverse import vjp  # reverse uses this table

    inputs = further_inputs("operand", (operand.type for operand in node.operands), ())
    value = composition(with_operands(node, tuple(inputs)))
    return inline(vjp(graph_of(inputs, (value,)), [position]), (*node.operands, cotangent))[-1]


RULES: dict[str, GradientRule] = {
    "attention": _attention,
    "attention_logsumexp": _by_composition,
    "attention_query_gradient": _by_composition,
    "attention_key_gradient": _by_composition,
    "attention_value_gradient": _by_composition,
}
