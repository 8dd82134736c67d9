"""Has attention write its results in 16 bits, where that is what all who read them want."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Graph, Node, graph_of, with_operands
from lavax.ir.ops.attention import OPERANDS, ROUNDED
from lavax.passes.build.builder import build, located, set_location
from lavax.passes.target.target import Target


def with_rounded_results(graph: Graph, target: Target) -> Graph:
    """The graph in which casts of attention are part of it, on devices whose kernels write such results."""
    outputs = frozenset(graph.outputs)
    rounded = {
        node
        for node in graph.nodes
        if node.op in OPERANDS
        and node not in outputs
        and target.attention.rounds_results(node)
        and _are_casts(graph.users.get(node, ()), node)
    }
    if not rounded:
        return graph
    found: dict[Node, Node] = {node: node for node in graph.inputs}
    with located():
        for node in graph.nodes:
            set_location(node.location)
            operands = tuple(found[operand] for operand in node.operands)
            if node in rounded:
                found[node] = build(node.op, *operands, **{**node.attrs, ROUNDED: True})
            elif node.op == "cast" and node.operands[0] in rounded:
                (found[node],) = operands
            else:
                found[node] = with_operands(node, operands)
    return graph_of(graph.inputs, [found[output] for output in graph.outputs])


def _are_casts(users: Sequence[Node], node: Node) -> bool:
    """Whether all that read the node cast it to its precision."""
    return bool(users) and all(user.op == "cast" and user.dtype.name == node.attrs["precision"] for user in users)
