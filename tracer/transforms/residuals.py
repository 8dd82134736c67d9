"""Splits a graph in two; the second half reuses values of the first."""
from __future__ import annotations

from collections.abc import Iterable

from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import INPUT, Node, graph_of, input_node, substitute, topological

_RECOMPUTED = frozenset({"broadcast"})  # cheaper to compute again than to keep


@dataclass(frozen=True, eq=False)
class Halves:
    """`first`: the early inputs -> its outputs, then the residuals. `second`: residuals, late inputs -> its outputs."""

    first: Graph
    second: Graph
    residual_count: int


def split(graph: Graph, early: int, outputs: int) -> Halves:
    """Splits `graph` into a half with its first `outputs` outputs, and a half with the others.

    The first outputs use only the first `early` inputs.
    """
    late_inputs = graph.inputs[early:]
    late = set(late_inputs)
    late.update(_nodes_after(graph, late))
    wanted = graph.outputs[outputs:]
    read = [operand for node in topological(wanted) if node in late for operand in node.operands]
    residuals = _residuals([*read, *wanted], late)
    inputs = [input_node(f"residual{number}", node.type) for number, node in enumerate(residuals)]
    names = [*inputs, *late_inputs]
    body = Graph((*residuals, *late_inputs), tuple(topological(wanted, stop=residuals)), wanted)
    found = substitute(body, dict(zip(body.inputs, names, strict=True)))
    first = graph_of(graph.inputs[:early], [*graph.outputs[:outputs], *residuals])
    return Halves(first, graph_of(names, [found[node] for node in wanted]), len(residuals))


def _nodes_after(graph: Graph, start: Iterable[Node]) -> set[Node]:
    """The nodes that depend on one of `start`."""
    after = set(start)
    for node in graph.nodes:
        if not after.isdisjoint(node.operands):
            after.add(node)
    return after


def _residuals(candidates: Iterable[Node], late: set[Node]) -> list[Node]:
    """The `candidates` to keep: nothing late, no constants, and nothing that is cheap to compute again."""
    kept: dict[Node, None] = {}
    for node in candidates:
        while node.op in _RECOMPUTED and node not in late:
            (node,) = node.operands
        if node not in late and (node.operands or node.op == INPUT):
            kept[node] = None
    return list(kept)
