"""Has attention write its results in 16 bits, where that is what all who read them want."""
from __future__ import annotations

from collections.abc import Sequence

from lavax.ir.graph import Graph, Node
from lavax.ir.ops.attention import OPERANDS, ROUNDED
from lavax.passes.build.builder import build
from lavax.passes.build.rebuild import rebuilt
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

    def with_cast(node: Node, new: Node) -> Node:
        if node in rounded:
            return build(node.op, *new.operands, **{**node.attrs, ROUNDED: True})
        return new.operands[0] if node.op == "cast" and node.operands[0] in rounded else new

    return rebuilt(graph, with_cast)


def _are_casts(users: Sequence[Node], node: Node) -> bool:
    """Whether all that read the node cast it to its precision."""
    return bool(users) and all(user.op == "cast" and user.dtype.name == node.attrs["precision"] for user in users)
