"""Attention and its derivatives as compositions of products, a softmax and masks.

Higher derivatives are taken of these compositions, and they are computed if no attention kernel supports a case.
They need memory in proportion to the number of scores.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod

from lavax.ir.graph import Node
from lavax.ir.ops.attention import ROUNDED, names_of, within
from lavax.passes.build.builder import (
    add,
    broadcast_back,
    build,
    cast,
    divide,
    dot,
    equal,
    exp,
    greater_equal,
    index_type,
    iota,
    log,
    logical_and,
    multiply,
    reduce,
    reshape,
    scale,
    splat,
    subtract,
    sum_over,
    where,
    zeros,
)
from lavax.passes.target.kernel_limits import ATTENTION


def named_operands(node: Node) -> dict[str, Node]:
    """The operands of a node of ir/ops/attention.py by name."""
    return dict(zip(names_of(node.op, node.attrs), node.operands, strict=True))


def visible_pairs(node: Node) -> int:
    """The number of pairs of a query and a visible key of a node of ir/ops/attention.py."""
    query, key = node.operands[:2]
    in_window = _pairs_in_window(query.shape[-2], key.shape[-2], node.attrs["lowest"], node.attrs["highest"])
    return in_window * prod(query.shape[:-2])


@lru_cache(maxsize=1 << 8)  # equal in all layers
def _pairs_in_window(queries: int, keys: int, lowest: int, highest: int) -> int:
    first = (min(max(i + lowest, 0), keys) for i in range(queries))
    last = (min(max(i + highest + 1, 0), keys) for i in range(queries))
    return sum(max(end - start, 0) for start, end in zip(first, last, strict=True))


def pairs_in_blocks(node: Node) -> int:
    """The number of pairs that kernels on CPU drivers compute: those of blocks with at least one visible key."""
    query, key = node.operands[:2]
    queries, keys, size = query.shape[-2], key.shape[-2], ATTENTION.block_of_columns
    found = 0
    for start in range(0, queries, size):
        rows = min(size, queries - start)
        first = max(start + node.attrs["lowest"], 0) // size * size
        end = min(start + rows + node.attrs["highest"], keys)
        found += rows * max(min(-(-end // size) * size, keys) - first, 0)
    return found * prod(query.shape[:-2])


# Operations that one kernel computes together, with the names of the operands that they must share.
TOGETHER: Mapping[str, tuple[str, ...]] = {
    "attention": ("query", "key", "bias", "mask"),
    "attention_logsumexp": ("query", "key", "bias", "mask"),
    "attention_key_gradient": ("query", "key", "cotangent", "logsumexp", "bias", "mask"),
    "attention_value_gradient": ("query", "key", "cotangent", "logsumexp", "bias", "mask"),
    "attention_query_parts": ("query", "key", "cotangent", "logsumexp", "bias", "mask"),
}
# Attributes in which such operations may differ.
_OF_RESULTS = frozenset(("block", ROUNDED))


def joint_kernel_key(node: Node) -> tuple[object, ...] | None:
    """Equal for nodes that one kernel can compute together; None for a node that is always computed alone."""
    if node.op not in TOGETHER:
        return None
    operands = named_operands(node)
    shared = (operands.get(name) for name in TOGETHER[node.op])
    attrs = ((name, node.attrs[name]) for name in node.attrs if name not in _OF_RESULTS)
    return (TOGETHER[node.op], *shared, *sorted(attrs))


def batch_reshaped(node: Node, batch: tuple[int, ...]) -> Node:
    """The same attention with batch axes of another shape."""
    count = node.operands[0].type.rank - 2
    operands = (reshape(operand, (*batch, *operand.shape[count:])) for operand in node.operands)
    return build(node.op, *operands, **node.attrs)


def _product(node: Node, left: Node, right: Node, of_left: int, of_right: int) -> Node:
    """The product that sums over one axis of each operand, counted from the end: 1 or 2. It may round what `node`
    says."""
    batch = tuple(range(left.type.rank - 2))
    contract = (left.type.rank - of_left,), (right.type.rank - of_right,)
    return dot(left, right, contract, (batch, batch), node.attrs["precision"])


def _along_rows(statistic: Node, like: Node) -> Node:
    """One number per query, repeated for every key."""
    return broadcast_back(cast(statistic, like.dtype), like.shape, (like.type.rank - 1,))


def visible(node: Node, shape: tuple[int, ...]) -> Node | None:
    """True for the visible keys, whose scores are not `fill`; None if all keys are visible."""
    operands, attrs = named_operands(node), node.attrs
    mask = operands.get("mask")
    if not within(attrs, *shape[-2:]):
        return mask
    type = index_type(shape)
    distance = subtract(iota(type, len(shape) - 1), iota(type, len(shape) - 2))
    window = logical_and(
        greater_equal(distance, splat(attrs["lowest"], type)), greater_equal(splat(attrs["highest"], type), distance)
    )
    return window if mask is None else logical_and(mask, window)


def _scores(node: Node, query: Node | None = None) -> tuple[Node, Node | None]:
    """The scores, and the mask of visible keys; `query` may replace the operand."""
    operands, attrs = named_operands(node), node.attrs
    found = scale(_product(node, query or operands["query"], operands["key"], 1, 1), attrs["scale"])
    if "bias" in operands:
        found = add(found, operands["bias"])
    seen = visible(node, found.shape)
    return found if seen is None else where(seen, found, splat(attrs["fill"], found.type)), seen


def _grown(node: Node) -> tuple[Node, Node, Node]:
    """exp(scores - peak), its sum over the keys, and the peak, which derivatives treat as a constant."""
    scores, _ = _scores(node)
    last = (scores.type.rank - 1,)
    peak = build("stop_gradient", reduce("max", scores, last))
    if node.attrs["empty"]:
        is_empty = equal(peak, splat(float("-inf"), peak.type))
        peak = where(is_empty, zeros(peak.type), peak)
    grown = exp(subtract(scores, broadcast_back(peak, scores.shape, last)))
    return grown, sum_over(grown, last), peak


def softmax_of_scores(node: Node) -> Node:
    """The weights of an `attention` or `attention_logsumexp` node, as the softmax of the scores."""
    grown, total, _ = _grown(node)
    if node.attrs["empty"]:
        total = where(equal(total, zeros(total.type)), splat(1.0, total.type), total)
    return divide(grown, broadcast_back(total, grown.shape, (grown.type.rank - 1,)))


def _attention(node: Node) -> Node:
    return _product(node, softmax_of_scores(node), named_operands(node)["value"], 1, 2)


def _logsumexp(node: Node) -> Node:
    _, total, peak = _grown(node)
    if node.attrs["empty"]:
        nothing = equal(total, zeros(total.type))
        found = add(log(where(nothing, splat(1.0, total.type), total)), peak)
        found = where(nothing, splat(float("inf"), total.type), found)
    else:
        found = add(log(total), peak)
    return cast(found, node.dtype)


def weights_of_derivative(node: Node, query: Node | None = None) -> Node:
    """The weights of a derivative's node, from the logsumexp; `query` may replace the operand."""
    scores, _ = _scores(node, query)
    return exp(subtract(scores, _along_rows(named_operands(node)["logsumexp"], scores)))


def cotangent_of_weights(node: Node, cotangent: Node | None = None) -> Node:
    """For a node with the operands of attention_query_gradient; `cotangent` may replace the operand."""
    operands = named_operands(node)
    return _product(node, cotangent or operands["cotangent"], operands["value"], 1, 1)


def unscaled_score_gradient(node: Node, weights: Node | None = None, cotangent: Node | None = None) -> Node:
    """The cotangent of each score, 0 if it is `fill`, for a node with the operands of attention_query_gradient.

    Existing weights can be passed, and a replacement of the operand `cotangent`.
    """
    operands = named_operands(node)
    weights = weights or weights_of_derivative(node)
    of_weights = cotangent_of_weights(node, cotangent)
    found = multiply(weights, subtract(of_weights, _along_rows(operands["delta"], weights)))
    seen = visible(node, found.shape)
    return found if seen is None else where(seen, found, zeros(found.type))


def derivative(node: Node, weights: Node | None = None, cotangent: Node | None = None) -> Node:
    """A derivative's node as a product with the weights, or with the cotangents of the scores."""
    operands = named_operands(node)
    if node.op == "attention_value_gradient":
        return _product(node, weights or weights_of_derivative(node), operands["cotangent"], 2, 2)
    scores = scale(unscaled_score_gradient(node, weights, cotangent), node.attrs["scale"])
    if node.op == "attention_query_gradient":
        return _product(node, scores, operands["key"], 1, 2)
    return _product(node, scores, operands["query"], 2, 2)


_COMPOSITIONS: Mapping[str, Callable[[Node], Node]] = {
    "attention": _attention,
    "attention_logsumexp": _logsumexp,
    "attention_query_gradient": derivative,
    "attention_key_gradient": derivative,
    "attention_value_gradient": derivative,
}


def composition(node: Node) -> Node:
    """The value of a node of ir/ops/attention.py, composed of other operations on the same operands."""
    return _COMPOSITIONS[node.op](node)
