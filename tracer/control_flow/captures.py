"""Captured values: those from outside that branches and bodies use become inputs of every graph of an operation."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lavax.ir import Graph
from lavax.ir.graph import Node, graph_of, input_node, substitute
from lavax.passes.simplify import simplify
from lavax.tracer.tracing.tracer import identity
from lavax.tracer.tracing.tracing import Traced
from lavax.tracer.values.value import Value


def with_common_captures(
    traced: Sequence[Traced], own: int | Sequence[int]
) -> tuple[tuple[Graph, ...], list[Value]]:
    """The graphs, with the values that any of them captured as inputs of all, and these values.

    The captured inputs follow a graph's `own` inputs: one count for all graphs, or one per graph.
    """
    counts = [own] * len(traced) if isinstance(own, int) else own
    captured: dict[Any, Value] = {}
    for each in traced:
        for value in each.captured:
            captured.setdefault(identity(value), value)
    graphs = []
    for each, count in zip(traced, counts, strict=True):
        known = dict(zip(map(identity, each.captured), each.graph.inputs[count:], strict=True))
        inputs = [
            known.get(identity) or input_node(f"outer{number}", value.type)
            for number, (identity, value) in enumerate(captured.items())
        ]
        graphs.append(simplify(_with_inputs(each.graph, (*each.graph.inputs[:count], *inputs))))
    return tuple(graphs), list(captured.values())


def _with_inputs(graph: Graph, inputs: Sequence[Node]) -> Graph:
    """The graph over inputs that are named by their positions, so that no two have one name."""
    renamed = [input_node(f"x{number}", node.type) for number, node in enumerate(inputs)]
    found = substitute(graph, dict(zip(inputs, renamed, strict=True)))
    return graph_of(renamed, [found[output] for output in graph.outputs])
