"""Rules that hold themselves, written out so that they can be written down."""
from __future__ import annotations

from typing import Any

from lavax.base.errors import CustomRuleError
from lavax.ir.graph import Graph, LaterGraph, Node, graph_of, make_node
from lavax.passes.build.inline import CALLS, inline


def finite_rules(graph: Graph, depth: int = 1) -> Graph:
    """The graph in which no rule of a function with derivatives of its own holds itself.

    Where such a rule calls the function, the call has its rules written out, `depth` times within one another; the
    innermost calls are plain operations, as are those whose rules say that they cannot be had there.
    """
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    results: dict[Node, list[Node]] = {}  # a call that gave way -> the values of its body
    for node in graph.nodes:
        if node.op == "item" and node.operands[0] in results:
            found[node] = results[node.operands[0]][node.attrs["index"]]
            continue
        operands = tuple(found[operand] for operand in node.operands)
        attrs = _finite_attributes(node, depth)
        if attrs is None:
            results[node] = inline(finite_rules(node.attrs["body"], depth), operands)
        else:
            found[node] = make_node(node.op, operands, attrs, node.type, node.location)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _finite_attributes(node: Node, depth: int) -> dict[str, Any] | None:
    """None for a call whose rules are not written out."""
    holds_itself = node.op in CALLS and any(isinstance(value, LaterGraph) for value in node.attrs.values())
    if holds_itself and depth == 0:
        return None
    try:
        return {name: _finite(value, depth) for name, value in node.attrs.items()}
    except CustomRuleError:
        if not holds_itself:
            raise
        return None


def _finite(value: Any, depth: int) -> Any:
    if isinstance(value, Graph):
        return finite_rules(value, depth)
    if isinstance(value, LaterGraph):
        return finite_rules(value.graph, depth - 1)
    return tuple(_finite(part, depth) for part in value) if isinstance(value, tuple) else value
