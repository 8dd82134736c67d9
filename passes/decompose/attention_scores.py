"""Derivatives of attention by contractions, with scores in memory, where a device has these faster and has room.

Where there is room for them from the first use on, the weights of attention itself wait there for its derivatives.
Else these compute scores once more, in an order in which what is made of them is part of the contraction.
"""

from __future__ import annotations

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.ops.attention import ATTRIBUTES
from lavax.passes.attention import composition, derivative, named_operands, softmax_of_scores, weights_of_derivative
from lavax.passes.builder import broadcast, build, located, reshape, set_location, slice_
from lavax.passes.simplify.rewriting import rewrite
from lavax.passes.simplify.rules import MERGING, RULES_WITHOUT_GRADIENTS
from lavax.passes.target import Target

_FORWARD = ("attention", "attention_logsumexp")
_GRADIENTS = ("attention_query_gradient", "attention_key_gradient", "attention_value_gradient")
# What says which scores a node has.
_Key = tuple[object, ...]


def with_stored_scores(graph: Graph, target: Target) -> Graph:
    """The graph with derivatives of attention as products where that suits the device."""
    chosen = {node for node in graph.nodes if node.op in _GRADIENTS and target.stores_scores(node)}
    if not chosen:
        return graph
    kept = _with_room(graph, {_of_scores(node) for node in chosen}, target.kept_bytes)
    weights: dict[_Key, Node] = {}
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            found[node] = rebuilt = with_operands(node, tuple(found[operand] for operand in node.operands))
            if node in chosen:
                found[node] = _stored(rebuilt, weights.get(_of_scores(node)))
            elif node.op in _FORWARD and _of_scores(node) in kept:
                weights[_of_scores(node)] = softmax_of_scores(rebuilt)
                found[node] = composition(rebuilt)
    composed = graph_of(graph.inputs, [found[output] for output in graph.outputs])
    return rewrite(composed, RULES_WITHOUT_GRADIENTS, MERGING)


def _of_scores(node: Node) -> _Key:
    """Equal for nodes with the same scores."""
    operands = named_operands(node)
    return *(operands.get(name) for name in ("query", "key", "bias", "mask")), *(node.attrs[key] for key in ATTRIBUTES)


def _with_room(graph: Graph, wanted: set[_Key], room: int) -> set[_Key]:
    """Of the scores that are wanted for derivatives, those for whose weights there is room from the first use on."""
    found: set[_Key] = set()
    for node in graph.nodes:
        if node.op in _FORWARD and _of_scores(node) in wanted - found:
            query, key = node.operands[:2]
            room -= query.type.nbytes // query.shape[-1] * key.shape[-2]
            if room < 0:
                break
            found.add(_of_scores(node))
    return found


def _stored(node: Node, weights: Node | None) -> Node:
    """A derivative as products. The product of queries and keys comes once the logsumexp is there, that of cotangents
    and values after the weights and delta: so weights and the scores' cotangents are all that goes to memory."""
    operands = named_operands(node)
    if weights is None:
        weights = weights_of_derivative(node, query=_after(operands["query"], operands["logsumexp"]))
    cotangent = _after(operands["cotangent"], weights)
    if "delta" in operands:
        cotangent = _after(cotangent, operands["delta"])
    return derivative(node, weights, cotangent)


def _after(value: Node, other: Node) -> Node:
    """`value`, once `other` is there."""
    rank = other.type.rank
    corner = slice_(other, [0] * rank, [1] * rank, [1] * rank)
    return build("barrier", value, broadcast(reshape(corner, ()), value.shape, ()))
