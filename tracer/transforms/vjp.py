"""Pullbacks: reverse-mode derivatives of functions with any result."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import Node, graph_of, make_node, substitute
from lavax.ir.types import TensorType
from lavax.passes.differentiate import vjp as differentiate_backwards
from lavax.passes.simplify import simplify
from lavax.tracer.calls.call import CallStructure
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.pytrees.pytree import TreeDef, flatten_up_to
from lavax.tracer.tracing.convert import value_like
from lavax.tracer.transforms.linear_functions import register_linear_function
from lavax.tracer.transforms.residuals import split
from lavax.tracer.transforms.transformed_call import TransformedCall, finished, floats, transformed_call
from lavax.tracer.values.value import Value


@dataclass(frozen=True, eq=False)
class PullbackRule:
    """A pullback without the values that the function computed."""

    graph: Graph  # residuals and cotangents -> cotangents of the float inputs
    result: TreeDef
    types: tuple[TensorType, ...]  # of the leaves of the function's result
    call: CallStructure
    by: Mapping[int, bool]  # the leaves of the arguments that get cotangents, and whether these are weak


@dataclass(frozen=True, eq=False)
class Pullback:
    """Cotangents of a function's result -> cotangents of its arguments; may be called many times.

    Takes a tree of the result's structure (leaves at integers are ignored) and returns a tuple, one tree per argument,
    with None at leaves that are not float. It keeps the values that the function computed, which are its children as a
    container: so it can be passed to compiled functions, and returned from them.
    """

    rule: PullbackRule
    residuals: tuple[Value, ...]

    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        rule = self.rule
        parts = zip(flatten_up_to(rule.result, cotangents), rule.types, strict=True)
        given = [_cotangent(part, type) for part, type in parts if type.dtype.is_inexact]
        found = apply_graph(rule.graph, [*self.residuals, *given], [*rule.by.values()])
        leaves: list[Any] = [None] * rule.call.leaf_count
        for leaf, value in zip(rule.by, found, strict=True):
            leaves[leaf] = value
        return tuple(rule.call.arguments(leaves)[0])


register_linear_function(Pullback)


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
    arguments = call.arguments
    by = [arguments.inputs[number] for number in call.float_inputs]
    rule = PullbackRule(
        halves.second,
        call.structure,
        tuple(output.type for output in call.results),
        arguments.call,
        {leaf: arguments.leaves[leaf].weak for leaf in by},
    )
    pullback = Pullback(rule, tuple(results[len(call.graph.outputs) :]))
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


def _cotangent(part: Any, type: TensorType) -> Value:
    return value_like(part, type, f"the cotangent of a result {type}")
