"""What functions with rules of their own give once a derivative was taken by these: the values that the rules compute.

A rule may give something else than the derivative, such as a clipped gradient. As in JAX, it holds for one derivative:
the next one is that of what the rule computed, its value among it. A value that is left to the function itself would
be differentiated by the rule a second time.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from lavax.ir.graph import Graph, LaterGraph, Node, graph_of, with_operands
from lavax.ir.operation import OPERATIONS
from lavax.passes.build.builder import build, zeros
from lavax.passes.build.control_flow import parts_of
from lavax.passes.build.inline import inline

Values = Sequence[Node]


def _of_vjp(node: Node, operands: Values) -> Values:
    """The results are the first outputs of the forward rule; residuals follow."""
    return inline(rule_of(node, "forward"), operands)[: len(parts_of(node))]


def _of_jvp(node: Node, operands: Values) -> Values:
    """The results are the first outputs of the rule; they do not depend on its tangents."""
    directions = [zeros(operand.type) for operand in operands[: node.attrs["arguments"]] if operand.dtype.is_inexact]
    return inline(rule_of(node, "rule"), (*operands, *directions))[: len(parts_of(node))]


_VALUES: dict[str, Callable[[Node, Values], Values]] = {"custom_jvp": _of_jvp, "custom_vjp": _of_vjp}


def rule_of(node: Node, name: str) -> Graph:
    rule = node.attrs[name]
    return rule.graph if isinstance(rule, LaterGraph) else rule


def has_rules(node: Node) -> bool:
    """Whether a node is such a function, or control flow with one inside."""
    if OPERATIONS[node.op].family != "region":  # as nearly all nodes are none
        return False
    return node.op in _VALUES or any(has_rules(inner) for body in _bodies(node) for inner in body.nodes)


def with_values_of_rules(graph: Graph, taken: Collection[Node]) -> Graph:
    """The graph in which the functions among `taken` give what their rules compute, and so do those in their bodies."""
    if not taken:
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    results: dict[Node, Values] = {}
    for node in graph.nodes:
        if node.op == "item" and node.operands[0] in results:
            found[node] = results[node.operands[0]][node.attrs["index"]]
            continue
        operands = tuple([found[operand] for operand in node.operands])
        if node not in taken:
            found[node] = with_operands(node, operands)
        elif node.op in _VALUES:
            results[node] = _VALUES[node.op](node, operands)
        else:
            attrs = {name: _in_body(value) for name, value in node.attrs.items()}
            found[node] = build(node.op, *operands, type=node.type, **attrs)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _bodies(node: Node) -> list[Graph]:
    """The graphs that a node of control flow runs."""
    if node.op in _VALUES:
        return []
    values = [each for value in node.attrs.values() for each in (value if isinstance(value, tuple) else (value,))]
    return [value for value in values if isinstance(value, Graph)]


def _in_body(value: object) -> object:
    if isinstance(value, tuple) and any(isinstance(each, Graph) for each in value):
        return tuple(map(_in_body, value))
    if not isinstance(value, Graph):
        return value
    return with_values_of_rules(value, frozenset(filter(has_rules, value.nodes)))
