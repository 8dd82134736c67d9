"""Results of branches and loops are taken out once: each has one place in memory, which its kernel writes."""

from __future__ import annotations

from lavax.ir.graph import Graph, Node, graph_of, with_operands


def with_results_once(graph: Graph) -> Graph:
    """The graph in which those that read the same result of a branch or a loop read the same node."""
    if not any(node.op == "item" for node in graph.nodes):
        return graph
    first: dict[tuple[Node, int], Node] = {}
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        made = with_operands(node, tuple(found[operand] for operand in node.operands))
        if node.op == "item":
            made = first.setdefault((made.operands[0], made.attrs["index"]), made)
        found[node] = made
    if all(found[node] is node for node in graph.nodes):
        return graph
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])
