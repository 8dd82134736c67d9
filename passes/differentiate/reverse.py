"""Reverse mode: a walk over a graph, from its outputs, that appends the nodes of its gradient."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from lavax.base.errors import DtypeError, NonScalarGradError
from lavax.ir.graph import Graph, Node, further_inputs, graph_of, with_operands
from lavax.passes.build.builder import add_to, is_zero, located, set_location, splat, zeros
from lavax.passes.build.control_flow import parts_of
from lavax.passes.differentiate.reverse_control_flow import CONTROL_FLOW_RULES, keep_for_gradient
from lavax.passes.differentiate.rules import NOT_DIFFERENTIABLE, RULES
from lavax.passes.differentiate.values_of_rules import has_rules, with_values_of_rules


def chosen_inputs(graph: Graph, wrt: Sequence[int]) -> list[Node]:
    for position in wrt:
        if not 0 <= position < len(graph.inputs):
            raise IndexError(f"differentiate: there is no input {position}, the graph has {len(graph.inputs)} inputs")
        chosen = graph.inputs[position]
        if not chosen.dtype.is_inexact:
            raise DtypeError(f"differentiate: input {chosen.name} is {chosen.type}; only floats have gradients")
    return [graph.inputs[position] for position in wrt]


def _depending_on(graph: Graph, sources: Sequence[Node]) -> set[Node]:
    """The values that a small change of `sources` changes by a small amount."""
    active = set(sources)
    for node in graph.nodes:
        varies = node.dtype.is_inexact or node.op in CONTROL_FLOW_RULES
        if varies and node.op not in NOT_DIFFERENTIABLE and not active.isdisjoint(node.operands):
            active.add(node)
    return active


def with_kept_values(graph: Graph, sources: Sequence[Node]) -> Graph:
    """The graph in which scans keep the values that their gradients need."""
    if not any(node.op == "scan" for node in graph.nodes):
        return graph
    active = _depending_on(graph, sources)
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        rebuilt = with_operands(node, tuple(found[operand] for operand in node.operands))
        if node.op == "scan" and node in active:
            rebuilt = keep_for_gradient(rebuilt, [operand in active for operand in node.operands])
        found[node] = rebuilt
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def through_rules(graph: Graph, sources: Sequence[Node]) -> frozenset[Node]:
    """The functions with rules of their own, by which a derivative by `sources` goes."""
    those = [node for node in graph.nodes if has_rules(node)]
    return frozenset(_depending_on(graph, sources).intersection(those)) if those else frozenset()


class _Cotangents:
    """The nonzero cotangents found so far: one per value, and one per result of nodes with several."""

    def __init__(self, active: set[Node], seeds: Mapping[Node, Node]) -> None:
        self.active = active
        self.of = {node: seed for node, seed in seeds.items() if node in active}
        self.of_parts: dict[Node, list[Node | None]] = {}

    def add(self, node: Node, cotangent: Node) -> None:
        if not is_zero(cotangent):
            self.of[node] = add_to(self.of.get(node), cotangent)

    def add_part(self, node: Node, index: int, cotangent: Node) -> None:
        parts = self.of_parts.setdefault(node, [None] * len(parts_of(node)))
        if not is_zero(cotangent):
            parts[index] = add_to(parts[index], cotangent)

    def go_through(self, node: Node) -> None:
        """Adds the contributions of a node's cotangents to those of its operands."""
        if node.op in CONTROL_FLOW_RULES:
            parts = self.of_parts.get(node)
            if parts is not None:
                matters = [operand in self.active for operand in node.operands]
                found = CONTROL_FLOW_RULES[node.op](node, parts, matters)
                for operand, gradient in zip(node.operands, found, strict=True):
                    if gradient is not None:
                        self.add(operand, gradient)
        elif node in self.of and node.op == "item":
            self.add_part(node.operands[0], node.attrs["index"], self.of[node])
        elif node in self.of:
            rule, cotangent = RULES[node.op], self.of[node]
            for position, operand in enumerate(node.operands):
                if operand in self.active:
                    self.add(operand, rule(node, cotangent, position))


def backward(graph: Graph, sources: Sequence[Node], seeds: Mapping[Node, Node]) -> list[Node]:
    """The cotangents of `sources`, given those of some of the graph's values."""
    cotangents = _Cotangents(_depending_on(graph, sources), seeds)
    with located():
        for node in reversed(graph.nodes):
            set_location(node.location)
            cotangents.go_through(node)
    return [cotangents.of[source] if source in cotangents.of else zeros(source.type) for source in sources]


def differentiate(graph: Graph, wrt: Sequence[int], output: int = 0) -> Graph:
    """The graph of `graph`'s outputs, followed by the gradients of one of them.

    `wrt` holds positions of float inputs; each gradient has its input's type, and is zero if the output does not
    depend on the input. `output` is the position of a float scalar. The result is an ordinary graph and can be
    differentiated again. Raises NonScalarGradError if the output is no float scalar, DtypeError for an input that
    is not a float, IndexError for an input that does not exist.
    """
    sources = chosen_inputs(graph, wrt)
    graph = with_kept_values(graph, sources)
    value = graph.outputs[output]
    if value.shape != () or not value.dtype.is_inexact:
        raise NonScalarGradError(f"differentiate: output {output} is {value.type}; a gradient needs a float scalar")
    gradients = backward(graph, sources, {value: splat(1, value.type)})
    whole = graph_of(graph.inputs, (*graph.outputs, *gradients))
    return with_values_of_rules(whole, through_rules(graph, sources))


def vjp(graph: Graph, wrt: Sequence[int]) -> Graph:
    """The graph of `graph`'s outputs, followed by the cotangents of the inputs at `wrt`.

    It has one more input for each float output, after the inputs of `graph`: that output's cotangent. They are
    called cotangent0, cotangent1, …, skipping names that are taken. The result is linear in them.
    Raises DtypeError for an input in `wrt` that is not a float, IndexError for one that does not exist.
    """
    sources = chosen_inputs(graph, wrt)
    graph = with_kept_values(graph, sources)
    floats = [output for output in graph.outputs if output.dtype.is_inexact]
    given = further_inputs("cotangent", (value.type for value in floats), graph.inputs)
    seeds: dict[Node, Node] = {}
    for value, cotangent in zip(floats, given, strict=True):
        seeds[value] = add_to(seeds.get(value), cotangent)
    gradients = backward(graph, sources, seeds)
    whole = graph_of((*graph.inputs, *given), (*graph.outputs, *gradients))
    return with_values_of_rules(whole, through_rules(graph, sources))
