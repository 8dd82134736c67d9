"""Expands rules that contain themselves, so that a graph with such rules has a finite text."""
from __future__ import annotations

from typing import Any

from lavax.ir.graph import Graph, LaterGraph, Node, graph_of, make_node
from lavax.passes.build.inline import CALLS, inline


def finite_rules(graph: Graph, depth: int = 1) -> Graph:
    """The graph in which no rule of a function with custom derivatives contains itself.

    If such a rule calls the function, the call has its rules expanded, nested to `depth`. The innermost calls become
    plain operations, as do calls whose rules raise an error.
    """
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    results: dict[Node, list[Node]] = {}  # an inlined call -> the values of its body
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
    """None for a call whose rules are not expanded."""
    contains_itself = node.op in CALLS and any(isinstance(value, LaterGraph) for value in node.attrs.values())
    if contains_itself and depth == 0:
        return None
    try:
        return {name: _finite(value, depth) for name, value in node.attrs.items()}
    except Exception:  # a rule may raise what it likes
        if not contains_itself:
            raise
        return None


def _finite(value: Any, depth: int) -> Any:
    if isinstance(value, Graph):
        return finite_rules(value, depth)
    if isinstance(value, LaterGraph):
        return finite_rules(value.graph, depth - 1)
    return tuple(_finite(part, depth) for part in value) if isinstance(value, tuple) else value
