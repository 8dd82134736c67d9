"""Pullbacks: reverse-mode derivatives of functions with any result."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lavax.errors import DtypeError, ShapeError
from lavax.ir import Graph
from lavax.ir.graph import Node, graph_of, make_node, substitute
from lavax.passes.differentiate import vjp as differentiate_backwards
from lavax.passes.simplify import remove_stop_gradient, simplify
from lavax.tracer.arguments import Arguments, Auxiliary, arguments_of, auxiliary_parts
from lavax.tracer.convert import is_numeric, lift
from lavax.tracer.executable import apply_graph
from lavax.tracer.pytree import TreeDef, flatten, flatten_up_to, unflatten
from lavax.tracer.residuals import split
from lavax.tracer.signature import signature_of
from lavax.tracer.trace import active_trace
from lavax.tracer.tracing import Traced, trace_function
from lavax.tracer.value import Value


@dataclass(frozen=True, eq=False)
class Pullback:
    """Cotangents of a function's result -> cotangents of its arguments; may be called many times.

    Takes a tree like the result (what stands at integers is ignored) and gives a tuple, one part an argument,
    with None at what is not float. It keeps what the function computed on the way.
    """

    graph: Graph  # residuals and cotangents -> cotangents of the float inputs
    residuals: tuple[Value, ...]
    result: TreeDef
    outputs: tuple[Node, ...]  # the leaves of the function's result
    arguments: Arguments
    by: tuple[int, ...]  # the leaves of the arguments that get cotangents

    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        parts = flatten_up_to(self.result, cotangents)
        pairs = zip(parts, self.outputs, strict=True)
        given = [_cotangent(part, output) for part, output in pairs if output.dtype.is_float]
        found = apply_graph(self.graph, [*self.residuals, *given], [False] * len(self.by))
        leaves: list[Any] = [None] * len(self.arguments.leaves)
        for leaf, value in zip(self.by, found, strict=True):
            leaves[leaf] = value
        return tuple(self.arguments.call.arguments(leaves)[0])


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(function(*primals), pullback)`, and the auxiliary result as a third with `has_aux`.

    `pullback` is a Pullback: it takes a tree like the result and gives a tuple of gradients, one an argument. Raises
    DtypeError where the result holds something that cannot be a value.
    """
    signature = signature_of(function)
    arguments = arguments_of(signature, primals, {})
    rest = Auxiliary()
    structures: list[TreeDef] = []

    def run(tracers: list[Value]) -> list[Any]:
        result = function(*arguments.with_values(tracers)[0])
        value, auxiliary = auxiliary_parts(result, signature, "vjp") if has_aux else (result, None)
        leaves, structure = flatten(value)
        structures.append(structure)
        return [*leaves, *rest.hold(auxiliary)]

    traced = trace_function(run, arguments.as_inputs(), f"vjp of {signature.function}")
    count = structures[0].leaf_count
    by = [number for number, value in enumerate(arguments.values) if value.type.dtype.is_float]
    graph = _with_gradients(traced, count, by)
    early = len(traced.graph.inputs)
    halves = split(graph, early, len(traced.graph.outputs))
    weak = [*traced.weak, *[False] * halves.residual_count]
    results = apply_graph(halves.first, [*arguments.values, *traced.captured], weak)
    pullback = Pullback(
        halves.second,
        tuple(results[len(traced.weak) :]),
        structures[0],
        traced.graph.outputs[:count],
        arguments,
        tuple(arguments.inputs[number] for number in by),
    )
    value = unflatten(structures[0], results[:count])
    return (value, pullback, rest.rebuilt(results[count : len(traced.weak)])) if has_aux else (value, pullback)


def _with_gradients(traced: Traced, count: int, by: Sequence[int]) -> Graph:
    """The traced graph with its vjp: cotangents come in for the first `count` outputs only."""
    graph = differentiate_backwards(simplify(traced.graph), by)
    early = len(traced.graph.inputs)
    floats = [number for number, output in enumerate(traced.graph.outputs) if output.dtype.is_float]
    kept = list(graph.inputs[:early])
    replacements: dict[Node, Node] = {node: node for node in kept}
    for number, cotangent in zip(floats, graph.inputs[early:], strict=True):
        if number < count:
            kept.append(cotangent)
            replacements[cotangent] = cotangent
        else:
            replacements[cotangent] = make_node("constant", (), {"value": 0.0}, cotangent.type)
    found = substitute(graph, replacements)
    whole = graph_of(kept, [found[output] for output in graph.outputs])
    return remove_stop_gradient(whole) if active_trace() is None else simplify(whole)


def _cotangent(part: Any, output: Node) -> Value:
    """Raises ShapeError or DtypeError for what is not like the result's leaf."""
    if not is_numeric(part):
        raise DtypeError(f"the cotangent of a result {output.type} must be like it, got a {type(part).__name__}")
    value = lift(part, None if isinstance(part, Value) else output.dtype)
    if value.type != output.type:
        mistake = ShapeError if value.shape != output.shape else DtypeError
        raise mistake(f"the cotangent of a result {output.type} must be like it, got {value.type}")
    return value
