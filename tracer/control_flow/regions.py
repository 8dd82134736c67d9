"""Traced functions as the branches and bodies of a region: graphs that take the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lavax.ir import Graph
from lavax.ir.graph import Node, graph_of, input_node, make_node, substitute
from lavax.ir.location import user_location
from lavax.ir.types import TensorType, tuple_of
from lavax.passes.simplify import simplify
from lavax.tracer.calls.signature import require_function
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.pytrees.pytree import TreeDef, unflatten
from lavax.tracer.tracing.tracer import Tracer
from lavax.tracer.tracing.tracing import Input, Traced, trace_function
from lavax.tracer.values.abstract import Abstract
from lavax.tracer.values.value import Value


def trace_body(
    function: Callable[..., Any], structures: Sequence[TreeDef], kinds: Sequence[Abstract], name: str
) -> Traced:
    """Traces `function`, one pytree an argument, for leaves of which only the kinds are known. Keeps its effects.

    `name` names it in messages ("scan body"). Raises TypeError where it is no function.
    """
    require_function(function, f"{name} must be a function")

    def call(tracers: list[Value]) -> Any:
        arguments, position = [], 0
        for structure in structures:
            arguments.append(unflatten(structure, tracers[position : position + structure.leaf_count]))
            position += structure.leaf_count
        return function(*arguments)

    inputs = [Input(f"x{number}", kind) for number, kind in enumerate(kinds)]
    return trace_function(call, inputs, name, keep_effects=True)


def with_common_captures(
    traced: Sequence[Traced], own: int | Sequence[int]
) -> tuple[tuple[Graph, ...], list[Value]]:
    """The graphs with the values from outside that any of them met as inputs of all, behind their `own` inputs.

    `own` is how many each has of its own: one number for all, or one for each.
    """
    counts = [own] * len(traced) if isinstance(own, int) else own
    captured: dict[Any, Value] = {}
    for each in traced:
        for value in each.captured:
            captured.setdefault(_identity(value), value)
    graphs = []
    for each, count in zip(traced, counts, strict=True):
        met = dict(zip(map(_identity, each.captured), each.graph.inputs[count:], strict=True))
        inputs = [
            met.get(identity) or input_node(f"outer{number}", value.type)
            for number, (identity, value) in enumerate(captured.items())
        ]
        graphs.append(simplify(_with_inputs(each.graph, (*each.graph.inputs[:count], *inputs))))
    return tuple(graphs), list(captured.values())


def _identity(value: Value) -> Any:
    return value.node if isinstance(value, Tracer) else id(value)


def _with_inputs(graph: Graph, inputs: Sequence[Node]) -> Graph:
    """The graph over inputs named by their positions, so that no two names meet."""
    renamed = [input_node(f"x{number}", node.type) for number, node in enumerate(inputs)]
    found = substitute(graph, dict(zip(inputs, renamed, strict=True)))
    return graph_of(renamed, [found[output] for output in graph.outputs])


def apply_region(
    op: str, operands: Sequence[Value], parts: Sequence[TensorType], weak: Sequence[bool], **attrs: Any
) -> list[Value]:
    """The results of a region on values: recorded in the active trace, or run at once."""
    inputs = [input_node(f"x{number}", operand.type) for number, operand in enumerate(operands)]
    node = make_node(op, inputs, attrs, tuple_of(parts), user_location())
    results = [make_node("item", (node,), {"index": number}) for number in range(len(parts))]
    return apply_graph(graph_of(inputs, results), operands, weak)
