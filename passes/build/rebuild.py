"""A graph built anew, in which some nodes are others."""

from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.passes.build.builder import located, set_location


def rebuilt(graph: Graph, change: Callable[[Node, Node], Node]) -> Graph:
    """The graph with what `change` gives for each node: it takes the node, and the same of its new operands."""
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            found[node] = change(node, with_operands(node, tuple([found[operand] for operand in node.operands])))
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])
