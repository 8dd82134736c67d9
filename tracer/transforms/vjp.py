"""Pullbacks: reverse-mode derivatives of functions with any result."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import Node, graph_of, make_node, substitute
from lavax.passes.differentiate import vjp as differentiate_backwards
from lavax.passes.simplify import simplify
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.pytrees.pytree import TreeDef, flatten_up_to
from lavax.tracer.tracing.convert import value_like
from lavax.tracer.transforms.arguments import Arguments
from lavax.tracer.transforms.residuals import split
from lavax.tracer.transforms.transformed_call import TransformedCall, finished, floats, transformed_call
from lavax.tracer.values.value import Value


@dataclass(frozen=True, eq=False)
class Pullback:
    """Cotangents of a function's result -> cotangents of its arguments; may be called many times.

    Takes a tree of the result's structure (leaves at integers are ignored) and returns a tuple, one tree per argument,
    with None at leaves that are not float. It keeps the values that the function computed.
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
        given = [_cotangent(part, output) for part, output in pairs if output.dtype.is_inexact]
        weak = [self.arguments.leaves[leaf].weak for leaf in self.by]
        found = apply_graph(self.graph, [*self.residuals, *given], weak)
        leaves: list[Any] = [None] * len(self.arguments.leaves)
        for leaf, value in zip(self.by, found, strict=True):
            leaves[leaf] = value
        return tuple(self.arguments.call.arguments(leaves)[0])


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(function(*primals), pullback)`, and with `has_aux` the auxiliary result as a third.

    `pullback` is a Pullback: it takes a tree of the result's structure and returns a tuple of gradients, one per
    argument. Raises DtypeError if a leaf of the result cannot be a value.
    """
    call = transformed_call(fun, primals, {}, "vjp", has_aux, floats)
    graph = _with_gradients(call)
    early = len(call.graph.inputs)
    halves = split(graph, early, len(call.graph.outputs))
    weak = [*call.traced.weak, *[False] * halves.residual_count]
    results = apply_graph(halves.first, call.values, weak)
    inputs = call.arguments.inputs
    pullback = Pullback(
        halves.second,
        tuple(results[len(call.graph.outputs) :]),
        call.structure,
        call.results,
        call.arguments,
        tuple(inputs[number] for number in call.float_inputs),
    )
    value, auxiliary = call.parts(results)
    return (value, pullback, auxiliary) if has_aux else (value, pullback)


def _with_gradients(call: TransformedCall) -> Graph:
    """The traced graph with its vjp; only the float leaves of the value have cotangent inputs."""
    graph = differentiate_backwards(simplify(call.graph), call.float_inputs)
    early, count = len(call.graph.inputs), len(call.results)
    floats = [number for number, output in enumerate(call.graph.outputs) if output.dtype.is_inexact]
    kept = list(graph.inputs[:early])
    replacements: dict[Node, Node] = {node: node for node in kept}
    for number, cotangent in zip(floats, graph.inputs[early:], strict=True):
        if number < count:
            kept.append(cotangent)
            replacements[cotangent] = cotangent
        else:
            replacements[cotangent] = make_node("constant", (), {"value": cotangent.dtype.number(0)}, cotangent.type)
    found = substitute(graph, replacements)
    return finished(graph_of(kept, [found[output] for output in graph.outputs]))


def _cotangent(part: Any, output: Node) -> Value:
    return value_like(part, output.type, f"the cotangent of a result {output.type}")
