"""Pushforwards: forward-mode derivatives."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lavax.base.errors import NonFloatArgumentError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import graph_of
from lavax.ir.location import user_error
from lavax.ir.types import TensorType
from lavax.passes.differentiate import jvp as differentiate_forwards
from lavax.passes.simplify import simplify
from lavax.tracer.calls.call import CallStructure
from lavax.tracer.calls.signature import Signature
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.pytrees.pytree import TreeDef, flatten_up_to, unflatten
from lavax.tracer.tracing.convert import constant, value_like
from lavax.tracer.tracing.float0 import is_float0
from lavax.tracer.transforms.arguments import Arguments
from lavax.tracer.transforms.linear_functions import register_linear_function
from lavax.tracer.transforms.residuals import split
from lavax.tracer.transforms.transformed_call import TransformedCall, finished, floats, transformed_call
from lavax.tracer.values.value import Value


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """`(function(*primals), tangent of the result)`, and with `has_aux` the auxiliary result as a third.

    `tangents` has one tree per primal, of its structure, shapes and dtypes; the tangent of the result has those of the
    result. None stands for the tangent of anything but floats, in both, and may stand for zeros in `tangents`. Raises
    ShapeError, DtypeError or TreeMismatchError for tangents that do not match the primals, NonFloatArgumentError for a
    tangent of anything but floats.
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("jvp takes primals and tangents as two tuples, with one entry per argument: jvp(f, (x,), (t,))")
    call = transformed_call(fun, primals, {}, "jvp", has_aux, floats)
    by, given = _places(call.arguments).tangents(tangents)
    graph = finished(_with_tangents(simplify(call.graph), call, by))
    weak = [*call.traced.weak, *call.weak_floats]
    outputs = apply_graph(graph, [*call.values, *given], weak)
    value, auxiliary = call.parts(outputs)
    types = [output.type for output in call.results]
    pushed = _tangent_tree(call.structure, types, outputs[len(call.graph.outputs) :])
    return (value, pushed, auxiliary) if has_aux else (value, pushed)


@dataclass(frozen=True, eq=False)
class Places:
    """Where tangents of a call's arguments belong: the numbers among them, without their values."""

    signature: Signature
    call: CallStructure
    types: Mapping[int, TensorType]  # leaves of the arguments that are numbers -> their types

    def tangents(self, trees: Sequence[Any]) -> tuple[list[int], list[Value]]:
        """Which of the numbers have tangents, and the tangents, from one tree for each argument."""
        parts = flatten_up_to(self.call.positional, tuple(trees))
        names = self.call.names(self.signature)
        by, given = [], []
        for number, (leaf, type) in enumerate(self.types.items()):
            part = parts[leaf]
            if part is None or is_float0(part):
                continue
            if not type.dtype.is_inexact:
                raise user_error(
                    NonFloatArgumentError,
                    f"the tangent of {names[leaf]}, which is {type}, must be None: integers and bools do not change by "
                    f"small amounts. Got {part!r:.60}",
                )
            by.append(number)
            given.append(value_like(part, type, f"the tangent of {names[leaf]}: {type}"))
        return by, given


def _places(arguments: Arguments) -> Places:
    types = {leaf: arguments.leaves[leaf].type for leaf in arguments.inputs}
    return Places(arguments.signature, arguments.call, types)


@dataclass(frozen=True, eq=False)
class PushforwardRule:
    """A pushforward without the values that the function computed."""

    graph: Graph  # residuals and tangents -> tangents of the float results
    places: Places
    result: TreeDef
    types: tuple[TensorType, ...]  # of the leaves of the function's result
    weak: tuple[bool, ...]  # of the float leaves among these


@dataclass(frozen=True, eq=False)
class Pushforward:
    """Tangents of a function's arguments -> tangent of its result; may be called many times.

    Takes one tree per argument, as `jvp` does, and returns a tree of the result's structure. It keeps the values that
    the function computed, which are its children as a container: so it can be passed to compiled functions, and
    returned from them. Branches and loops run again with the tangents.
    """

    rule: PushforwardRule
    residuals: tuple[Value, ...]

    def __call__(self, *tangents: Any) -> Any:
        rule = self.rule
        by, found = rule.places.tangents(tangents)
        known = dict(zip(by, found, strict=True))
        given = [
            known[number] if number in known else constant(0.0, type)
            for number, type in enumerate(rule.places.types.values())
            if type.dtype.is_inexact
        ]
        outputs = apply_graph(rule.graph, [*self.residuals, *given], rule.weak)
        return _tangent_tree(rule.result, rule.types, outputs)


register_linear_function(Pushforward)


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(function(*primals), pushforward)`, and with `has_aux` the auxiliary result as a third.

    `pushforward` is a Pushforward: it takes tangents, one tree per argument, and returns the tangent of the result.
    """
    call = transformed_call(fun, primals, {}, "linearize", has_aux, floats)
    value_graph = simplify(call.graph)
    pushed = _with_tangents(value_graph, call, call.float_inputs)
    # A branch or loop carries its values and tangents together: the value comes from the ones without tangents.
    count = len(value_graph.outputs)
    graph = finished(graph_of(pushed.inputs, (*value_graph.outputs, *pushed.outputs[count:])))
    halves = split(graph, len(call.graph.inputs), len(call.graph.outputs))
    weak = [*call.traced.weak, *[False] * halves.residual_count]
    results = apply_graph(halves.first, call.values, weak)
    types = tuple(output.type for output in call.results)
    rule = PushforwardRule(halves.second, _places(call.arguments), call.structure, types, tuple(call.weak_floats))
    pushforward = Pushforward(rule, tuple(results[len(call.graph.outputs) :]))
    value, auxiliary = call.parts(results)
    return (value, pushforward, auxiliary) if has_aux else (value, pushforward)


def _with_tangents(value_graph: Graph, call: TransformedCall, by: Sequence[int]) -> Graph:
    """The call's graph, with the tangents of the value's float leaves as further outputs."""
    graph = differentiate_forwards(value_graph, by)
    count = sum(output.dtype.is_inexact for output in call.results)
    return graph_of(graph.inputs, graph.outputs[: len(call.graph.outputs) + count])


def _tangent_tree(structure: TreeDef, types: Iterable[TensorType], found: Sequence[Value]) -> Any:
    """The tangents as a tree of the result's structure, with None at leaves that are not float."""
    remaining = iter(found)
    return unflatten(structure, [next(remaining) if type.dtype.is_inexact else None for type in types])
