"""Functions with derivatives of their own."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from lavax.errors import CustomRuleError, DtypeError, ShapeError, TreeMismatchError
from lavax.ir import Graph
from lavax.ir.graph import LaterGraph, graph_of
from lavax.ir.types import TensorType
from lavax.tracer.abstract import abstract
from lavax.tracer.arguments import Arguments, arguments_of
from lavax.tracer.convert import constant, value_like
from lavax.tracer.pytree import TreeDef, flatten, flatten_up_to, paths, unflatten
from lavax.tracer.regions import apply_region, with_common_captures
from lavax.tracer.signature import Signature, signature_of
from lavax.tracer.trace import active_trace
from lavax.tracer.tracing import Input, Traced, trace_function
from lavax.tracer.value import Value


@dataclass(frozen=True)
class _Call:
    """A call of such a function: the arguments that derivatives are by, and the others in their places."""

    arguments: Arguments  # less those of nondiff_argnums
    fixed: dict[int, Any]  # the arguments of nondiff_argnums by position

    @property
    def inputs(self) -> list[Input]:
        return self.arguments.as_inputs()

    @property
    def float_types(self) -> list[TensorType]:
        return [value.type for value in self.arguments.values if value.type.dtype.is_float]

    def call(self, function: Callable[..., Any], tracers: Sequence[Value]) -> Any:
        """`function` of all arguments, in their places."""
        args = list(self.arguments.with_values(tracers)[0])
        for position in sorted(self.fixed):
            args.insert(position, self.fixed[position])
        return function(*args)

    @property
    def fixed_first(self) -> list[Any]:
        return [self.fixed[position] for position in sorted(self.fixed)]

    def float_leaves(self, trees: Sequence[Any], what: str) -> list[Value]:
        """What stands in `trees`, one an argument, at the floats among the arguments; zeros for None."""
        call = self.arguments.call
        try:
            parts = flatten_up_to(call.positional, tuple(trees), allow_none=True)
        except TreeMismatchError as error:
            raise CustomRuleError(
                f"{what} must give one entry an argument, like the arguments, with None for zeros: {error}"
            ) from None
        names = call.names(self.arguments.signature)
        found = []
        for leaf in self.arguments.inputs:
            type = self.arguments.leaves[leaf].type
            if type.dtype.is_float:
                found.append(_like(parts[leaf], type, f"{what}: what it gives for {names[leaf]}: {type}"))
        return found

    def in_arguments(self, floats: Sequence[Value]) -> tuple[Any, ...]:
        """Trees like the arguments with these at the floats, and None elsewhere."""
        remaining = iter(floats)
        leaves: list[Any] = [None] * len(self.arguments.leaves)
        for leaf in self.arguments.inputs:
            if self.arguments.leaves[leaf].type.dtype.is_float:
                leaves[leaf] = next(remaining)
        return tuple(self.arguments.call.arguments(leaves)[0])


@dataclass(eq=False)
class _Recording:
    """A call whose rules are being traced: when they call the function themselves, their rules are these."""

    function: _CustomFunction
    call: _Call
    body: Traced
    rules: dict[str, Graph] = field(default_factory=dict)
    extra: int = 0  # how many values the rules meet outside that the function does not

    def is_for(self, function: _CustomFunction, call: _Call) -> bool:
        mine, other = self.call.arguments, call.arguments
        same = mine.call.positional is other.call.positional and mine.inputs == other.inputs
        kinds = [[value.type for value in arguments.values] for arguments in (mine, other)]
        return function is self.function and same and kinds[0] == kinds[1] and _same(self.call.fixed, call.fixed)

    def rule(self, name: str) -> LaterGraph:
        return LaterGraph(lambda: self._finished(name))

    def _finished(self, name: str) -> Graph:
        what = f"{type(self.function).__name__} of {self.call.arguments.signature.function}"
        if name not in self.rules:
            raise CustomRuleError(f"{what}: the rule differentiates the function that it is a rule for")
        if self.extra:
            raise CustomRuleError(
                f"{what}: its rules call the function itself and use values from outside that the function does not: "
                "call what the function does instead, or pass these values as arguments"
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
    """What both kinds have in common: where the arguments go, and how the function itself is called."""

    _operation: str
    _rule_names: tuple[str, ...]

    def __init__(self, function: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        if not callable(function):
            raise TypeError(f"{type(self).__name__} takes a function, got {function!r:.80}")
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._signature = signature_of(function)
        self._fixed = self._signature.positions(nondiff_argnums, "nondiff_argnums")

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        positional = self._by_position(args, kwargs)
        if active_trace() is None:
            return self._function(*positional)
        self._require_rules()
        fixed = {position: positional[position] for position in self._fixed if position < len(positional)}
        rest = [arg for position, arg in enumerate(positional) if position not in fixed]
        names = tuple(name for p, name in enumerate(self._signature.positional) if p not in self._fixed)
        signature = Signature(self._signature.function, names, self._signature.rest, frozenset(), False)
        call = _Call(arguments_of(signature, rest, {}), fixed)
        for recording in _recordings.get():
            if recording.is_for(self, call):
                return self._record_itself(call, recording)
        return self._record(call)

    def _record_itself(self, call: _Call, recording: _Recording) -> Any:
        """A call by one of the function's own rules."""
        body = recording.body
        results = apply_region(
            self._operation,
            [*call.arguments.values, *body.captured],
            [node.type for node in body.graph.outputs],
            body.weak,
            arguments=len(call.inputs),
            body=body.graph,
            **{name: recording.rule(name) for name in self._rule_names},
        )
        return unflatten(body.structure, results)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: the instance is the first argument."""
        return self if instance is None else functools.partial(self, instance)

    def _by_position(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
        try:
            bound = inspect.signature(self._function).bind(*args, **kwargs)
        except ValueError:
            return args
        bound.apply_defaults()
        if bound.kwargs:
            raise CustomRuleError(
                f"{self._signature.function} takes {', '.join(bound.kwargs)} by keyword only: a function with rules of "
                "its own takes all arguments by position"
            )
        return bound.args

    def _require_rules(self) -> None:
        raise NotImplementedError

    def _record(self, call: _Call) -> Any:
        raise NotImplementedError


class custom_vjp(_CustomFunction):  # noqa: N801  # a decorator, as it is known
    """A function whose reverse-mode derivative is given by two rules; a decorator.

    `f.defvjp(fwd, bwd)`: `fwd` takes the arguments of f and gives `(f's result, residuals)`; `bwd(residuals,
    cotangent)` gives a tuple with one entry an argument, like it, in which None stands for zeros. Cotangents of what
    is not float are None. `nondiff_argnums`: arguments that are settings: they come first in the calls of `bwd`, and
    have no entry in what it gives. Forward mode works too: it is the transpose of `bwd`.
    Raises CustomRuleError where the rules are missing or do not fit the function.
    """

    _operation = "custom_vjp"
    _rule_names = ("forward", "backward")
    _rules: tuple[Callable[..., Any], Callable[..., Any]] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Gives the rules."""
        self._rules = (fwd, bwd)

    def _require_rules(self) -> None:
        if self._rules is None:
            raise CustomRuleError(
                f"custom_vjp of {self._signature.function}: no rules are given yet; call {self._signature.function}."
                "defvjp(fwd, bwd) before it is used"
            )

    def _record(self, call: _Call) -> Any:
        assert self._rules is not None
        forward_rule, backward_rule = self._rules
        name = self._signature.function
        body = trace_function(lambda tracers: call.call(self._function, tracers), call.inputs, f"custom_vjp of {name}")
        recording = _Recording(self, call, body)
        with _recorded(recording):
            forward = trace_function(
                lambda tracers: _pair(call.call(forward_rule, tracers), name),
                call.inputs,
                f"the forward rule of {name}",
            )
            _require_same_result(forward, 0, body, f"custom_vjp of {name}: the forward rule")
            backward, kept = _trace_backward(call, backward_rule, body, forward, name)
        own = len(call.inputs)
        graphs, captured = with_common_captures([body, forward, backward], [own, own, kept + _float_count(body)])
        # What the rule for the way back met outside comes to it as further residuals.
        forward_graph = graph_of(graphs[1].inputs, (*graphs[1].outputs, *graphs[1].inputs[own:]))
        recording.extra = len(captured) - len(body.captured)
        recording.rules = {"forward": forward_graph, "backward": _with_inputs_last(graphs[2], kept, _float_count(body))}
        results = apply_region(
            "custom_vjp",
            [*call.arguments.values, *captured],
            [node.type for node in body.graph.outputs],
            body.weak,
            arguments=own,
            body=graphs[0],
            **recording.rules,
        )
        return unflatten(body.structure, results)


class custom_jvp(_CustomFunction):  # noqa: N801  # a decorator, as it is known
    """A function whose forward-mode derivative is given by a rule; a decorator.

    `f.defjvp(rule)`: `rule(primals, tangents)` takes two tuples, one entry an argument, and gives `(f's result, its
    tangent)`, which is linear in the tangents. None stands for the tangent of what is not float, and for zeros in what
    the rule gives. `nondiff_argnums`: arguments that are settings: they come first in the calls of the rule. Reverse
    mode is the transpose of the rule. Raises CustomRuleError where the rule is missing or does not fit the function.
    """

    _operation = "custom_jvp"
    _rule_names = ("rule",)
    _rule: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the rule; may stand as a decorator."""
        self._rule = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """One rule an argument, `rule(tangent, result, *primals)`, whose values are summed; None for no change."""

        def rule(*given: Any) -> tuple[Any, Any]:
            *fixed, primals, tangents = given
            result = self(*fixed, *primals)
            terms = [
                each(tangent, result, *primals)
                for each, tangent in zip(jvps, tangents, strict=True)
                if each is not None and tangent is not None
            ]
            return result, functools.reduce(lambda total, term: total + term, terms) if terms else None

        self._rule = rule

    def _require_rules(self) -> None:
        if self._rule is None:
            raise CustomRuleError(
                f"custom_jvp of {self._signature.function}: no rule is given yet; call {self._signature.function}."
                "defjvp(rule) before it is used"
            )

    def _record(self, call: _Call) -> Any:
        assert self._rule is not None
        name = self._signature.function
        body = trace_function(lambda tracers: call.call(self._function, tracers), call.inputs, f"custom_jvp of {name}")
        recording = _Recording(self, call, body)
        with _recorded(recording):
            rule = _trace_tangent_rule(call, self._rule, body, name)
        own, tangents = len(call.inputs), len(call.float_types)
        (body_graph, rule_graph), captured = with_common_captures([body, rule], [own, own + tangents])
        recording.extra = len(captured) - len(body.captured)
        recording.rules = {"rule": _with_inputs_last(rule_graph, own, tangents)}
        results = apply_region(
            "custom_jvp",
            [*call.arguments.values, *captured],
            [node.type for node in body.graph.outputs],
            body.weak,
            arguments=own,
            body=body_graph,
            **recording.rules,
        )
        return unflatten(body.structure, results)


def _trace_backward(
    call: _Call, rule: Callable[..., Any], body: Traced, forward: Traced, name: str
) -> tuple[Traced, int]:
    """The backward rule, from residuals and cotangents to the floats' cotangents, and how many residuals there are."""
    result, residuals = forward.structure.children
    outputs = body.graph.outputs
    kept = [node.type for node in forward.graph.outputs[len(outputs) :]]
    weak = forward.weak[len(outputs) :]
    inputs = [Input(f"residual{k}", abstract(type, w)) for k, (type, w) in enumerate(zip(kept, weak, strict=True))]
    given = [node.type for node in outputs if node.dtype.is_float]
    inputs += [Input(f"cotangent{number}", abstract(type)) for number, type in enumerate(given)]
    what = f"custom_vjp of {name}: the backward rule"

    def run(tracers: list[Value]) -> list[Value]:
        remaining = iter(tracers[len(kept) :])
        leaves = [next(remaining) if node.dtype.is_float else None for node in outputs]
        found = rule(*call.fixed_first, unflatten(residuals, tracers[: len(kept)]), unflatten(result, leaves))
        if not isinstance(found, (tuple, list)):
            raise CustomRuleError(
                f"{what} must give a tuple with one entry an argument, got a {_type_name(found)}; for one argument "
                "return (gradient,)"
            )
        return call.float_leaves(found, what)

    return trace_function(run, inputs, f"the backward rule of {name}"), len(kept)


def _trace_tangent_rule(call: _Call, rule: Callable[..., Any], body: Traced, name: str) -> Traced:
    """The rule as a graph: from the arguments and the floats' tangents to results and their floats' tangents."""
    own = call.inputs
    inputs = [*own, *(Input(f"tangent{k}", abstract(type)) for k, type in enumerate(call.float_types))]
    what = f"custom_jvp of {name}: the rule"

    def run(tracers: list[Value]) -> tuple[Any, Any]:
        primals = tuple(call.arguments.with_values(tracers[: len(own)])[0])
        found = rule(*call.fixed_first, primals, call.in_arguments(tracers[len(own) :]))
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise CustomRuleError(f"{what} must give (result, tangent), got a {_type_name(found)}")
        value, tangent = found
        _, structure = flatten(value)
        if structure is not body.structure:
            raise CustomRuleError(f"{what}: its result is {structure!r}, but the function's is {body.structure!r}")
        parts = flatten_up_to(structure, tangent, allow_none=True)
        places = paths(structure)
        pushed = [
            _like(part, node.type, f"{what}: the tangent{f' at {place}' if place else ''} of a result {node.type}")
            for part, node, place in zip(parts, body.graph.outputs, places, strict=True)
            if node.dtype.is_float
        ]
        return value, pushed

    traced = trace_function(run, inputs, f"the rule of {name}")
    _require_same_result(traced, 0, body, what)
    return traced


def _pair(result: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise CustomRuleError(
            f"custom_vjp of {name}: the forward rule must give (result, residuals), got a {_type_name(result)}"
        )
    return result[0], result[1]


def _require_same_result(rule: Traced, position: int, body: Traced, what: str) -> None:
    """The result that a rule gives is like the function's own."""
    structure = rule.structure.children[position]
    if structure is not body.structure:
        raise CustomRuleError(f"{what}: its result is {structure!r}, but the function's is {body.structure!r}")
    for place, mine, own in zip(paths(structure), rule.graph.outputs, body.graph.outputs, strict=False):
        if mine.type != own.type:
            where = f" at {place}" if place else ""
            raise CustomRuleError(f"{what}: its result{where} is {mine.type}, but the function's is {own.type}")


def _like(part: Any, type: TensorType, what: str) -> Value:
    if part is None:
        return constant(0.0, type)
    try:
        return value_like(part, type, what)
    except (ShapeError, DtypeError) as error:
        raise CustomRuleError(str(error)) from None


def _type_name(value: Any) -> str:
    return type(value).__name__


def _with_inputs_last(graph: Graph, own: int, count: int) -> Graph:
    """The `count` inputs behind the first `own` moved behind all others."""
    inputs = graph.inputs
    order = (*inputs[:own], *inputs[own + count :], *inputs[own : own + count])
    return graph_of(order, graph.outputs)


def _float_count(traced: Traced) -> int:
    return sum(node.dtype.is_float for node in traced.graph.outputs)
