"""Computes derivatives of attention by contractions, with scores in memory, if that is faster and they fit.

Attention that kernels have no form for, because its heads are too long or its dtype is not float32, does so always, and
so does attention that the device computes faster by products.

Devices that stage operands round the weights to the operation's precision, which is that of the products. Others would
round them at every read, and keep them as they are.

If there is room from the forward pass on, the weights of attention stay in memory for its derivatives. Otherwise the
derivatives compute the scores again, in an order that makes the operations on them epilogues of the contraction.
"""

from __future__ import annotations

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.ops.attention import ATTRIBUTES, GRADIENTS, names_of
from lavax.passes.build.attention import (
    composition,
    cotangent_of_weights,
    derivative,
    named_operands,
    softmax_of_scores,
    weights_of_derivative,
)
from lavax.passes.build.builder import build, computed_after, located, multiply, set_location, sum_over
from lavax.passes.prepare.decompose.attention import RULES, has_form
from lavax.passes.simplify.rewriting import rewrite
from lavax.passes.simplify.rules import MERGING, RULES_WITHOUT_GRADIENTS
from lavax.passes.target.target import Attention, Target

_FORWARD = ("attention", "attention_logsumexp")
# Identifies the scores of a node.
_Key = tuple[object, ...]


def with_stored_scores(graph: Graph, target: Target) -> Graph:
    """The graph with derivatives of attention as contractions, where that suits the device, or nothing else does."""
    chosen = {node for node in graph.nodes if node.op in GRADIENTS and target.attention.stores_scores(node)}
    formless = {node for node in graph.nodes if node.op in RULES and _is_composed(node, target)}
    if not chosen and not formless:
        return graph
    kept = _with_room(graph, {_of_scores(node) for node in chosen}, target.attention)
    weights: dict[_Key, Node] = {}
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            found[node] = rebuilt = with_operands(node, tuple(found[operand] for operand in node.operands))
            if (node in chosen or node.op in RULES) and not target.products.stages_operands:
                rebuilt = build(node.op, *rebuilt.operands, **{**node.attrs, "precision": ""})
            if node in chosen:
                kept_weights = weights.get(_of_scores(node))
                if kept_weights is not None and target.attention.scores_by_rows and _has_own_delta(node):
                    rebuilt = _with_delta_of(rebuilt, kept_weights)
                stored = _stored_by_rows if target.attention.scores_by_rows else _stored
                found[node] = stored(rebuilt, kept_weights)
            elif node.op in _FORWARD and _of_scores(node) in kept:
                weights[_of_scores(node)] = softmax_of_scores(rebuilt)
                found[node] = composition(rebuilt)
            elif node in formless:
                found[node] = composition(rebuilt)
    composed = graph_of(graph.inputs, [found[output] for output in graph.outputs])
    return rewrite(composed, RULES_WITHOUT_GRADIENTS, MERGING)


def _is_composed(node: Node, target: Target) -> bool:
    return not has_form(node) or (node.op in _FORWARD and target.attention.by_products(node))


def _of_scores(node: Node) -> _Key:
    """Equal for nodes with the same scores."""
    operands = named_operands(node)
    return *(operands.get(name) for name in ("query", "key", "bias", "mask")), *(node.attrs[key] for key in ATTRIBUTES)


def _with_room(graph: Graph, wanted: set[_Key], attention: Attention) -> set[_Key]:
    """The scores, of those `wanted` for derivatives, whose weights stay in memory from the forward pass on.

    They take at most `attention.kept_bytes`. On a device whose kernels of attention are cheap to compile, those of a
    stack of layers do not stay: memory is at its peak where the last layers run, and the forward pass without scores
    needs least of it.
    """
    forward = {_of_scores(node): node for node in graph.nodes if node.op in _FORWARD and _of_scores(node) in wanted}
    if len(forward) > 1 and not attention.scores_by_rows:
        return set()
    room, found = attention.kept_bytes, set()
    for scores, node in forward.items():
        query, key = node.operands[:2]
        room -= query.type.nbytes // query.shape[-1] * key.shape[-2]
        if room < 0:
            break
        found.add(scores)
    return found


def _stored(node: Node, weights: Node | None) -> Node:
    """A derivative as contractions. Queries times keys is computed after the logsumexp and the cotangent, cotangents
    times values after the weights and delta. So only the weights and the scores' cotangents are stored, and not from
    the forward pass on."""
    operands = named_operands(node)
    if weights is None:
        query = computed_after(operands["query"], operands["logsumexp"])
        weights = weights_of_derivative(node, query=computed_after(query, operands["cotangent"]))
    cotangent = computed_after(operands["cotangent"], weights)
    if "delta" in operands:
        cotangent = computed_after(cotangent, operands["delta"])
    return derivative(node, weights, cotangent)


def _stored_by_rows(node: Node, weights: Node | None) -> Node:
    """A derivative as contractions without epilogues: kernels over rows do the elementwise part."""
    return derivative(node, weights or weights_of_derivative(node))


def _has_own_delta(node: Node) -> bool:
    """Whether a derivative's delta is Σ cotangent · out of the attention with the same scores and values."""
    operands = named_operands(node)
    delta, cotangent = operands.get("delta"), operands["cotangent"]
    if delta is None or delta.op != "sum" or delta.operands[0].op != "multiply":
        return False
    factors = delta.operands[0].operands
    if delta.attrs["axes"] != (cotangent.type.rank - 1,) or cotangent not in factors:
        return False
    out = factors[0] if factors[1] is cotangent else factors[1]
    if out.op != "attention":
        return False
    return _of_scores(out) == _of_scores(node) and named_operands(out)["value"] is operands["value"]


def _with_delta_of(node: Node, weights: Node) -> Node:
    """The derivative with delta computed as Σ weights · cotangent of weights, which is the same number. The kernel over
    rows that computes the scores' cotangents can sum that itself."""
    operands = named_operands(node)
    operands["delta"] = sum_over(multiply(weights, cotangent_of_weights(node)), (weights.type.rank - 1,))
    return with_operands(node, tuple(operands[name] for name in names_of(node.op, node.attrs)))
