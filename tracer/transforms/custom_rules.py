"""Functions with custom derivatives."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from typing import Any

from lavax.base.errors import CustomRuleError, LavaxError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir import Graph
from lavax.ir.graph import LaterGraph, further_inputs, graph_of
from lavax.ir.location import user_error
from lavax.tracer.calls.call import chosen_arguments
from lavax.tracer.calls.signature import Signature, signature_of
from lavax.tracer.compiled.executable import apply_graph
from lavax.tracer.control_flow.captures import with_common_captures
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.pytrees.pytree import unflatten
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.effects import emit_again
from lavax.tracer.tracing.trace import active_trace
from lavax.tracer.tracing.tracer import identity
from lavax.tracer.tracing.tracing import Traced, trace_function, without_effects
from lavax.tracer.transforms.arguments import arguments_of
from lavax.tracer.transforms.custom_calls import (
    Absent,
    CustomCall,
    none_of,
    trace_backward,
    trace_forward,
    trace_tangent_rule,
)
from lavax.tracer.transforms.symbolic_zeros import with_primals, zero_of
from lavax.tracer.values.value import Value


@dataclass(eq=False)
class _Recording:
    """A call whose rules are being traced. If they call the function itself, that call has the same rules.

    If they call it for other arguments, as with the next number of a derivative, that call has a recording `on_demand`:
    its rules are traced when a derivative needs them, so a function may have infinitely many.
    """

    function: _CustomFunction
    call: CustomCall
    body: Traced
    rules: dict[str, Graph] = field(default_factory=dict)
    extra: int = 0  # the number of values that the rules capture and the function does not
    on_demand: bool = False
    calls_itself: bool = False

    def is_for(self, function: _CustomFunction, call: CustomCall) -> bool:
        mine, other = self.call.arguments, call.arguments
        same = mine.call.positional is other.call.positional and mine.inputs == other.inputs
        kinds = [[value.type for value in arguments.values] for arguments in (mine, other)]
        return function is self.function and same and kinds[0] == kinds[1] and _same(self.call.fixed, call.fixed)

    def rule(self, name: str) -> LaterGraph:
        stands_in_its_rule = self is _recordings.get()[-1]
        text = LaterGraph.ITSELF if stands_in_its_rule else LaterGraph.LATER
        return LaterGraph(lambda: self._finished(name), text)

    def _finished(self, name: str) -> Graph:
        what = f"{type(self.function).__name__} of {self.call.arguments.signature.function}"
        if self.on_demand:
            self.on_demand = False
            self.function.trace_rules(self)
        if name not in self.rules:
            raise user_error(CustomRuleError, f"{what}: the rule differentiates the function that it is a rule for")
        if self.extra:
            raise user_error(
                CustomRuleError,
                f"{what}: its rules call the function itself for other arguments, and use values from outside that the "
                "function does not: pass these values as arguments",
            )
        return self.rules[name]


def _same(mine: dict[int, Any], other: dict[int, Any]) -> bool:
    return mine.keys() == other.keys() and all(mine[p] is other[p] or bool(mine[p] == other[p]) for p in mine)


_recordings: ContextVar[tuple[_Recording, ...]] = ContextVar("lavax_custom_rules", default=())


@contextmanager
def _recorded(recording: _Recording) -> Iterator[None]:
    token = _recordings.set((*_recordings.get(), recording))
    try:
        yield
    finally:
        _recordings.reset(token)


class _CustomFunction:
    """The common part of custom_vjp and custom_jvp: arguments, and calls of the function itself."""

    _operation: str
    _rule_names: tuple[str, ...]
    _absent: Absent = staticmethod(none_of)

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        self._signature = signature_of(fun, type(self).__name__)
        functools.update_wrapper(self, fun, updated=())
        self._function = fun
        self._fixed = sorted(chosen_arguments(self._signature, nondiff_argnums, nondiff_argnames, "nondiff").positions)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        positional = self._by_position(args, kwargs)
        if active_trace() is None:
            return self._function(*positional)
        self._require_rules()
        fixed = {position: positional[position] for position in self._fixed if position < len(positional)}
        rest = [arg for position, arg in enumerate(positional) if position not in fixed]
        names = tuple(name for p, name in enumerate(self._signature.positional) if p not in self._fixed)
        signature = Signature(self._signature.function, names, self._signature.rest, frozenset(), False)
        call = CustomCall(arguments_of(signature, rest, {}), fixed)
        for recording in _recordings.get():
            if recording.is_for(self, call):
                recording.calls_itself = True
                return self._record_itself(call, recording)
        recording = _Recording(self, call, self._traced_body(call))
        outer = next((each for each in reversed(_recordings.get()) if each.function is self), None)
        if outer is not None:
            outer.calls_itself = True
            recording.body = _with_captured(recording.body, outer.body.captured)
            recording.call = call.of_kinds()
            recording.on_demand = True
            return self._record_itself(call, recording)
        try:
            graph, captured = self.trace_rules(recording)
        except LavaxError:
            raise
        except Exception as error:  # such as that of a rule that refuses derivatives: it is for who asks for one
            refusal = LaterGraph(functools.partial(_raise, error), LaterGraph.LATER)
            refused = dict.fromkeys(self._rule_names, refusal)
            return self._applied(call, recording.body, recording.body.graph, recording.body.captured, refused)
        if recording.calls_itself and recording.extra:  # then those calls take what the rules capture
            recording.body = _with_captured(recording.body, captured)
            graph, captured = self.trace_rules(recording)
        return self._applied(call, recording.body, graph, captured, recording.rules)

    def _record_itself(self, call: CustomCall, recording: _Recording) -> Any:
        """Records a call of the function by one of its own rules."""
        (graph,), captured = with_common_captures([recording.body], len(call.inputs))
        rules = {name: recording.rule(name) for name in self._rule_names}
        return self._applied(call, recording.body, graph, captured, rules)

    def _applied(
        self,
        call: CustomCall,
        body: Traced,
        graph: Graph,
        captured: Sequence[Value],
        rules: Mapping[str, Graph | LaterGraph],
    ) -> Any:
        results = apply_control_flow(
            self._operation,
            [*call.arguments.values, *captured],
            [node.type for node in body.graph.outputs],
            body.weak,
            arguments=len(call.inputs),
            body=graph,
            **rules,
        )
        return unflatten(body.structure, results)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument."""
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        """The setters of rules of a function inside that has rules of another kind."""
        if name in ("def_vmap", "defjvp", "defjvps", "defvjp") and "_function" in self.__dict__:
            return getattr(self._function, name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def _by_position(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
        try:
            bound = inspect.signature(self._function).bind(*args, **kwargs)
        except ValueError:
            return args
        bound.apply_defaults()
        if bound.kwargs:
            raise user_error(
                CustomRuleError,
                f"{self._signature.function} takes {', '.join(bound.kwargs)} by keyword only: a function with rules of "
                "its own takes all arguments by position",
            )
        return bound.args

    def _traced_body(self, call: CustomCall) -> Traced:
        """The traced function. Its effects go to the enclosing trace, with values computed there.

        Derivatives leave these effects unchanged.
        """
        what = f"{self._operation} of {self._signature.function}"
        body = trace_function(lambda tracers: call.call(self._function, tracers), call.inputs, what, keep_effects=True)
        if body.effects:
            count = body.structure.leaf_count
            graph = graph_of(body.graph.inputs, body.graph.outputs[count:])
            operands = [_fixed(value) for value in (*call.arguments.values, *body.captured)]
            emit_again(body.effects, apply_graph(graph, operands, body.weak[count:]))
        return without_effects(body)

    def _require_rules(self) -> None:
        raise NotImplementedError

    def trace_rules(self, recording: _Recording) -> tuple[Graph, list[Value]]:
        """Traces the rules into `recording`; the function's graph and the values that it and the rules capture."""
        raise NotImplementedError


class custom_vjp(_CustomFunction):  # noqa: N801  # a decorator, as it is known
    """A function whose reverse-mode derivative is given by two rules; a decorator.

    `f.defvjp(fwd, bwd)`: `fwd` takes the arguments of f and returns `(f's result, residuals)`; `bwd(residuals,
    cotangent)` returns a tuple with one entry per argument, of its structure, in which None stands for zeros.
    Cotangents of anything but floats are None. `nondiff_argnums`, `nondiff_argnames`: arguments that are settings, by
    number or name: they come first in calls of `bwd`, in order, and have no entry in its result. Forward mode works
    too: it is the transpose of `bwd`. Raises CustomRuleError if the rules are missing or do not fit the function.
    """

    _operation = "custom_vjp"
    _rule_names = ("forward", "backward")
    _rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Sets the rules.

        With `symbolic_zeros` `fwd` gets a CustomVJPPrimal for each argument, whose floats all count as `perturbed`, and
        `bwd` gets a SymbolicZero for the cotangent of anything but floats; a rule may give SymbolicZero for zeros.
        `optimize_remat` changes nothing: what a checkpoint does not use is left out as it is.
        """
        self._rules = (with_primals(fwd, self._fixed) if symbolic_zeros else fwd, bwd)
        self._absent = zero_of if symbolic_zeros else none_of

    def _require_rules(self) -> None:
        if self._rules is None:
            raise user_error(
                CustomRuleError,
                f"custom_vjp of {self._signature.function}: no rules are given yet; call {self._signature.function}."
                "defvjp(fwd, bwd) before it is used",
            )

    def trace_rules(self, recording: _Recording) -> tuple[Graph, list[Value]]:
        assert self._rules is not None
        forward_rule, backward_rule = self._rules
        name, call, body = self._signature.function, recording.call, recording.body
        with _recorded(recording):
            forward, residuals = trace_forward(call, forward_rule, body, name)
            backward, kept = trace_backward(call, backward_rule, body, forward, residuals, name, self._absent)
        own = len(call.inputs)
        graphs, captured = with_common_captures([body, forward, backward], [own, own, kept + _float_count(body)])
        # Values that the backward rule captures are passed to it as further residuals.
        forward_graph = graph_of(graphs[1].inputs, (*graphs[1].outputs, *graphs[1].inputs[own:]))
        recording.extra = len(captured) - len(body.captured)
        recording.rules = {"forward": forward_graph, "backward": _with_inputs_last(graphs[2], kept, _float_count(body))}
        return graphs[0], captured


class custom_jvp(_CustomFunction):  # noqa: N801  # a decorator, as it is known
    """A function whose forward-mode derivative is given by a rule; a decorator.

    `f.defjvp(rule)`: `rule(primals, tangents)` takes two tuples with one entry per argument, and returns `(f's result,
    its tangent)`, which is linear in the tangents. None stands for the tangent of anything but floats, and for zeros in
    the rule's result. `nondiff_argnums`, `nondiff_argnames`: arguments that are settings, by number or name: they come
    first in calls of the rule, in order. Reverse mode is the transpose of the rule. Raises CustomRuleError if the rule
    is missing or does not fit the function.
    """

    _operation = "custom_jvp"
    _rule_names = ("rule",)
    _rule: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule; also a decorator.

        With `symbolic_zeros` the tangent of anything but floats is a SymbolicZero; the rule may give one for zeros.
        """
        self._rule = jvp
        self._absent = zero_of if symbolic_zeros else none_of
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets one rule per argument, `rule(tangent, result, *primals)`; their values are summed. None: no change."""

        def rule(*given: Any) -> tuple[Any, Any]:
            *fixed, primals, tangents = given
            result = self(*fixed, *primals)
            terms = [
                each(tangent, result, *primals)
                for each, tangent in zip(jvps, tangents, strict=True)
                if each is not None and tangent is not None
            ]
            return result, functools.reduce(lambda total, term: total + term, terms) if terms else None

        self.defjvp(rule)

    def _require_rules(self) -> None:
        if self._rule is None:
            raise user_error(
                CustomRuleError,
                f"custom_jvp of {self._signature.function}: no rule is given yet; call {self._signature.function}."
                "defjvp(rule) before it is used",
            )

    def trace_rules(self, recording: _Recording) -> tuple[Graph, list[Value]]:
        assert self._rule is not None
        name, call, body = self._signature.function, recording.call, recording.body
        with _recorded(recording):
            rule = trace_tangent_rule(call, self._rule, body, name, self._absent)
        own, tangents = len(call.inputs), len(call.float_types)
        (body_graph, rule_graph), captured = with_common_captures([body, rule], [own, own + tangents])
        recording.extra = len(captured) - len(body.captured)
        recording.rules = {"rule": _with_inputs_last(rule_graph, own, tangents)}
        return body_graph, captured


def _raise(error: Exception) -> Graph:
    raise error


def _fixed(value: Value) -> Value:
    """The value as a constant for derivatives."""
    return bind("stop_gradient", value) if value.type.dtype.is_inexact else value


def _with_captured(traced: Traced, captured: Sequence[Value]) -> Traced:
    """The traced function with inputs for all these values, of which it uses those that it captures itself."""
    known = set(map(identity, traced.captured))
    more = [value for value in captured if identity(value) not in known]
    inputs = [*traced.graph.inputs, *further_inputs("kept", [value.type for value in more], traced.graph.inputs)]
    return replace(traced, graph=graph_of(inputs, traced.graph.outputs), captured=(*traced.captured, *more))


def _with_inputs_last(graph: Graph, own: int, count: int) -> Graph:
    """The graph with the `count` inputs that follow the first `own` moved to the end."""
    inputs = graph.inputs
    order = (*inputs[:own], *inputs[own + count :], *inputs[own : own + count])
    return graph_of(order, graph.outputs)


def _float_count(traced: Traced) -> int:
    return sum(node.dtype.is_inexact for node in traced.graph.outputs)
