"""Runs a function once on tracers, and records its operations as a graph."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from lavax.base.errors import DtypeError, SideEffectError
from lavax.base.logs import TRACES
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import graph_of
from lavax.ir.location import user_error, user_location
from lavax.tracer.calls.call import CallStructure
from lavax.tracer.calls.signature import Signature
from lavax.tracer.pytrees.pytree import TreeDef, paths
from lavax.tracer.tracing.automatic_checks import emit_automatic_checks, unchecked
from lavax.tracer.tracing.convert import is_numeric, lift
from lavax.tracer.tracing.effects import Effect, emit_again, take_effects
from lavax.tracer.tracing.float0 import flatten_result
from lavax.tracer.tracing.trace import Trace, active_trace
from lavax.tracer.tracing.tracer import Tracer, node_in
from lavax.tracer.values.abstract import Abstract
from lavax.tracer.values.value import Value

_Held = TypeVar("_Held", bound=Value)


@dataclass(frozen=True, eq=False)
class Traced:
    """A traced function: the inputs of `graph` are its own, followed by those for the values that it captured."""

    graph: Graph
    captured: tuple[Value, ...]
    structure: TreeDef  # of the result, whose leaves are the graph's outputs
    weak: tuple[bool, ...]  # one per output
    effects: tuple[Effect, ...] = ()  # effects, which take the outputs that follow the result's leaves


@dataclass(frozen=True, eq=False)
class Input:
    """An input to be made; with `value` the number behind it is known, and the user's code may ask for it."""

    name: str
    abstract: Abstract
    value: Value | None = None
    differentiated: bool | None = None  # whether a derivative is taken by it; None: as for the value behind it


def trace_function(
    call: Callable[[list[Value]], Any], inputs: Sequence[Input], purpose: str, keep_effects: bool = False
) -> Traced:
    """Traces `call`, which takes one tracer per input and returns a pytree of values and numbers.

    `purpose` names the trace in messages ("compile of step"). With `keep_effects`, effects on the host are part of the
    result, and their values are further outputs of the graph. Raises DtypeError if a leaf of the result cannot be a
    value, SideEffectError if there are effects that are not kept.
    """
    if active_trace() is None and TRACES.is_heard:
        _log_trace(purpose)
    with Trace(purpose) as trace:
        tracers: list[Value] = [
            Tracer(trace, trace.add_input(i.name, i.abstract.type, i.value, i.differentiated), i.abstract.weak)
            for i in inputs
        ]
        with nullcontext() if keep_effects else unchecked():
            leaves, structure = flatten_result(call(tracers))
        values = [_result(leaf, position, structure, purpose) for position, leaf in enumerate(leaves)]
        if keep_effects:
            emit_automatic_checks(values)
        effects, shown = take_effects() if keep_effects else ((), [])
        values += shown
        if trace.effects:
            raise user_error(
                SideEffectError,
                f"{purpose}: debug.print and debug.callback cannot be used in rules for derivatives, which "
                "run as often as derivatives need them. Use them in the function itself, or print the "
                "derivative outside",
            )
        outputs = [node_in(trace, value) for value in values]
        captured = list(trace.captures.values())
    graph = graph_of([*trace.inputs, *(node for node, _ in captured)], outputs)
    weak = tuple(value.weak for value in values)
    return Traced(graph, tuple(value for _, value in captured), structure, weak, effects)


def _log_trace(purpose: str) -> None:
    """Logs a trace that is part of no other one. Compiled functions say more about theirs."""
    if not purpose.startswith("compile of "):
        location = user_location()
        at = f", called at {location}," if location else ""
        TRACES.say("%s%s is traced, as at every call outside compile", purpose, at)


def _result(leaf: Any, position: int, structure: TreeDef, purpose: str) -> Value:
    if not is_numeric(leaf):
        place = paths(structure)[position]
        raise user_error(
            DtypeError,
            f"{purpose}: the result{f' at {place}' if place else ''} is {leaf!r:.80} of type {type(leaf).__name__}, "
            "but results are arrays, numbers, and tuples, lists, dicts or registered classes of them",
        )
    return lift(leaf)


def trace_call(
    function: Callable[..., Any], signature: Signature, call: CallStructure, kinds: Sequence[Abstract], purpose: str
) -> Traced:
    """Traces `function` for arguments of which only the kinds are known, one per leaf."""

    def run(leaves: list[Value]) -> Any:
        args, kwargs = call.arguments(leaves)
        return function(*args, **kwargs)

    inputs = [Input(name, kind) for name, kind in zip(call.names(signature), kinds, strict=True)]
    return trace_function(run, inputs, f"{purpose} of {signature.function}", keep_effects=True)


def without_effects(traced: Traced) -> Traced:
    """The traced function without its effects: the graph returns the leaves of the result only."""
    count = traced.structure.leaf_count
    graph = graph_of(traced.graph.inputs, traced.graph.outputs[:count])
    return Traced(graph, traced.captured, traced.structure, traced.weak[:count])


def performed(traced: Traced, results: list[_Held]) -> list[_Held]:
    """The leaves of the result, from the outputs of a run; performs the effects."""
    if not traced.effects:
        return results
    count = traced.structure.leaf_count
    emit_again(traced.effects, results[count:])
    return results[:count]
