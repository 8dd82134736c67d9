"""Transposes of linear functions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.base.errors import LinearityError, NonFloatArgumentError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import Node, graph_of, substitute
from lavax.ir.location import user_error
from lavax.passes.build.builder import zeros
from lavax.passes.differentiate import vjp
from lavax.passes.differentiate.dependence import depends_on
from lavax.passes.differentiate.linear_calls import with_bodies_of_calls
from lavax.passes.simplify import simplify
from lavax.tracer.calls.call import CallStructure, call_of, named_conversion
from lavax.tracer.calls.signature import signature_of
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.pytrees.pytree import TreeDef, flatten_up_to, unflatten
from lavax.tracer.tracing.convert import abstract_of, value_like
from lavax.tracer.tracing.tracing import trace_call, without_effects
from lavax.tracer.transforms.transformed_call import finished
from lavax.tracer.values.value import Value


@dataclass(frozen=True, eq=False)
class Transpose:
    """Takes a tree of the structure of a linear function's result and returns a tuple of trees, one per argument."""

    graph: Graph  # cotangents and captured values -> cotangents of the arguments' leaves
    captured: tuple[Value, ...]
    call: CallStructure
    structure: TreeDef  # of the result
    results: tuple[Node, ...]

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        parts = flatten_up_to(self.structure, cotangent)
        given = [
            value_like(part, node.type, f"the cotangent of a result {node.type}")
            for part, node in zip(parts, self.results, strict=True)
        ]
        found = apply_graph(finished(self.graph), [*given, *self.captured], [False] * len(self.graph.outputs))
        return tuple(unflatten(self.call.positional, found))


def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Transpose:
    """The transpose of `fun`, which must be linear in its arguments.

    `primals` determine structures, shapes and dtypes only: arrays, numbers or anything with `shape` and `dtype`. The
    transpose of a function f32[n] -> f32[m] takes f32[m] and returns (f32[n],). Raises NonFloatArgumentError for
    arguments or results that are not float, LinearityError if the function is not linear. (It does not detect a
    constant that the function adds, which does not change the transpose.)
    """
    signature = signature_of(fun, "linear_transpose")
    call, leaves = call_of(primals, {})
    kinds = named_conversion(abstract_of, leaves, call, signature)
    what = f"linear_transpose of {signature.function}"
    traced = without_effects(trace_call(fun, signature, call, kinds, "linear_transpose"))
    for node in (*traced.graph.inputs[: len(kinds)], *traced.graph.outputs):
        if not node.dtype.is_inexact:
            raise user_error(NonFloatArgumentError, f"{what}: arguments and results must be floats, got {node.type}")
    count, early = len(kinds), len(traced.graph.inputs)
    linear = with_bodies_of_calls(traced.graph, [position < count for position in range(early)])
    pulled = simplify(vjp(simplify(linear), range(count)))
    own, cotangents = pulled.inputs[:count], pulled.inputs[early:]
    results = pulled.outputs[len(traced.graph.outputs) :]
    transposed = graph_of((*cotangents, *pulled.inputs[count:early]), results)
    if depends_on(results, own, ()):
        reader = next((node for node in transposed.nodes if not set(own).isdisjoint(node.operands)), None)
        place = f", at {reader.location}" if reader and reader.location else ""
        raise user_error(
            LinearityError,
            f"{what}: the function is not linear in its arguments: its derivative depends on them, by way of "
            f"{reader.op if reader else 'a result'}{place}. Use vjp for the derivative at a point, or close over "
            "values that are not to be transposed",
        )
    # Loops take the arguments though no cotangent depends on them.
    kept = {node: node for node in pulled.inputs} | {node: zeros(node.type) for node in own}
    unread = substitute(graph_of(pulled.inputs, results), kept)
    transposed = simplify(graph_of(transposed.inputs, [unread[node] for node in results]))
    return Transpose(transposed, traced.captured, call, traced.structure, traced.graph.outputs)
