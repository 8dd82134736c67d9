"""A call of a function with custom derivatives, and its rules traced for the arguments."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lavax.base.errors import CustomRuleError, DtypeError, ShapeError, TreeMismatchError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import user_error
from lavax.ir.types import TensorType
from lavax.tracer.pytrees.pytree import TreeDef, flatten, flatten_up_to, paths, unflatten
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.convert import constant, lift, value_like
from lavax.tracer.tracing.known_float import KnownFloat
from lavax.tracer.tracing.tracing import Input, Traced, trace_function
from lavax.tracer.transforms.arguments import Arguments
from lavax.tracer.transforms.symbolic_zeros import SymbolicZero
from lavax.tracer.values.abstract import abstract
from lavax.tracer.values.value import Value

Absent = Callable[[TensorType], Any]  # what stands for the derivative of a value that is not of floats


def none_of(type: TensorType) -> None:
    """None, whatever the type."""


@dataclass(frozen=True)
class CustomCall:
    """A call of such a function: its differentiable arguments, and the others at their positions."""

    arguments: Arguments  # less those of nondiff_argnums
    fixed: dict[int, Any]  # the arguments of nondiff_argnums by position
    known: bool = True  # whether the rules may ask for the numbers of the arguments

    def of_kinds(self) -> CustomCall:
        """The same call, for rules that are traced when the trace of its arguments has ended."""
        return replace(self, known=False)

    @property
    def inputs(self) -> list[Input]:
        """Inputs of the function and its rules; none is differentiated, because the rules give the derivatives."""
        inputs = self.arguments.as_inputs(dict.fromkeys(range(len(self.arguments.inputs)), False))
        return inputs if self.known else [replace(each, value=None) for each in inputs]

    @property
    def float_types(self) -> list[TensorType]:
        return [value.type for value in self.arguments.values if value.type.dtype.is_inexact]

    def call(self, function: Callable[..., Any], tracers: Sequence[Value]) -> Any:
        """`function` of all arguments, each at its position."""
        args = list(self.arguments.with_values(tracers)[0])
        for position in sorted(self.fixed):
            args.insert(position, self.fixed[position])
        return function(*args)

    @property
    def fixed_first(self) -> list[Any]:
        return [self.fixed[position] for position in sorted(self.fixed)]

    def float_leaves(self, trees: Sequence[Any], what: str) -> list[Value]:
        """The leaves of `trees`, one tree per argument, at the floats among the arguments; zeros for None."""
        call = self.arguments.call
        try:
            parts = flatten_up_to(call.positional, tuple(trees), allow_none=True)
        except TreeMismatchError as error:
            raise user_error(
                CustomRuleError,
                f"{what} must give one entry per argument, like the arguments, with None for zeros: {error}"
            ) from None
        names = call.names(self.arguments.signature)
        found = []
        for leaf in self.arguments.inputs:
            type = self.arguments.leaves[leaf].type
            if type.dtype.is_inexact:
                found.append(_like(parts[leaf], type, f"{what}: its cotangent for {names[leaf]}: {type}"))
        return found

    def in_arguments(self, floats: Sequence[Value], absent: Absent) -> tuple[Any, ...]:
        """Trees of the arguments' structures, with these leaves at the floats and `absent` at other values."""
        remaining = iter(floats)
        leaves: list[Any] = [None] * len(self.arguments.leaves)
        for leaf in self.arguments.inputs:
            type = self.arguments.leaves[leaf].type
            leaves[leaf] = next(remaining) if type.dtype.is_inexact else absent(type)
        return tuple(self.arguments.call.arguments(leaves)[0])


@dataclass(frozen=True)
class Residuals:
    """What a forward rule keeps, as a tree whose values pass through graphs.

    Its other leaves, such as the extents of a shape, stay what they are.
    """

    structure: TreeDef
    leaves: list[Any]

    @property
    def values(self) -> list[Value]:
        """The values among the leaves."""
        return [leaf for leaf in self.leaves if isinstance(leaf, Value)]

    def with_values(self, values: Sequence[Value]) -> Any:
        """The tree with these values in place of its own."""
        remaining = iter(values)
        return unflatten(
            self.structure, [next(remaining) if isinstance(leaf, Value) else leaf for leaf in self.leaves]
        )


def trace_forward(
    call: CustomCall, rule: Callable[..., Any], body: Traced, name: str
) -> tuple[Traced, Residuals]:
    """The forward rule, from the arguments to results and the values among the residuals, and the residuals.

    Raises CustomRuleError if the rule does not fit.
    """
    kept: list[Residuals] = []

    def run(tracers: list[Value]) -> tuple[Any, Any]:
        found = call.call(rule, tracers)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise user_error(
                CustomRuleError,
                f"custom_vjp of {name}: the forward rule must give (result, residuals), got a {_type_name(found)}",
            )
        leaves, structure = flatten(found[1])
        kept.append(Residuals(structure, [float(leaf) if isinstance(leaf, KnownFloat) else leaf for leaf in leaves]))
        return found[0], kept[0].values

    traced = trace_function(run, call.inputs, f"the forward rule of {name}")
    _require_same_result(traced, body, f"custom_vjp of {name}: the forward rule")
    return traced, kept[0]


def trace_backward(
    call: CustomCall,
    rule: Callable[..., Any],
    body: Traced,
    forward: Traced,
    residuals: Residuals,
    name: str,
    absent: Absent = none_of,
) -> tuple[Traced, int]:
    """The backward rule, from residuals and cotangents to cotangents of the floats, and how many values are residuals.

    Raises CustomRuleError if the rule does not fit.
    """
    result = forward.structure.children[0]
    outputs = body.graph.outputs
    kept = [node.type for node in forward.graph.outputs[len(outputs) :]]
    weak = forward.weak[len(outputs) :]
    inputs = [Input(f"residual{k}", abstract(type, w)) for k, (type, w) in enumerate(zip(kept, weak, strict=True))]
    given = [node.type for node in outputs if node.dtype.is_inexact]
    inputs += [Input(f"cotangent{number}", abstract(type)) for number, type in enumerate(given)]
    what = f"custom_vjp of {name}: the backward rule"

    def run(tracers: list[Value]) -> list[Value]:
        remaining = iter(tracers[len(kept) :])
        leaves = [next(remaining) if node.dtype.is_inexact else absent(node.type) for node in outputs]
        found = rule(*call.fixed_first, residuals.with_values(tracers[: len(kept)]), unflatten(result, leaves))
        if not isinstance(found, (tuple, list)):
            raise user_error(
                CustomRuleError,
                f"{what} must give a tuple with one entry per argument, got a {_type_name(found)}; for one argument "
                "return (gradient,)",
            )
        return call.float_leaves(found, what)

    return trace_function(run, inputs, f"the backward rule of {name}"), len(kept)


def trace_tangent_rule(
    call: CustomCall, rule: Callable[..., Any], body: Traced, name: str, absent: Absent = none_of
) -> Traced:
    """The rule as a graph, from the arguments and the tangents of floats to results and the tangents of their floats.

    Raises CustomRuleError if the rule does not fit.
    """
    own = call.inputs
    inputs = [*own, *(Input(f"tangent{k}", abstract(type)) for k, type in enumerate(call.float_types))]
    what = f"custom_jvp of {name}: the rule"

    def run(tracers: list[Value]) -> tuple[Any, Any]:
        primals = tuple(call.arguments.with_values(tracers[: len(own)])[0])
        found = rule(*call.fixed_first, primals, call.in_arguments(tracers[len(own) :], absent))
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise user_error(CustomRuleError, f"{what} must give (result, tangent), got a {_type_name(found)}")
        value, tangent = found
        _, structure = flatten(value)
        if structure is not body.structure:
            raise user_error(
                CustomRuleError, f"{what}: its result is {structure!r}, but the function's is {body.structure!r}"
            )
        parts = flatten_up_to(structure, tangent, allow_none=True)
        places = paths(structure)
        pushed = [
            _like(part, node.type, f"{what}: the tangent{f' at {place}' if place else ''} of a result {node.type}")
            for part, node, place in zip(parts, body.graph.outputs, places, strict=True)
            if node.dtype.is_inexact
        ]
        return value, pushed

    traced = trace_function(run, inputs, f"the rule of {name}")
    _require_same_result(traced, body, what)
    return traced


def _require_same_result(rule: Traced, body: Traced, what: str) -> None:
    """Raises CustomRuleError if a rule's result differs from the function's in structure or types."""
    structure = rule.structure.children[0]
    if structure is not body.structure:
        raise user_error(
            CustomRuleError, f"{what}: its result is {structure!r}, but the function's is {body.structure!r}"
        )
    for place, mine, own in zip(paths(structure), rule.graph.outputs, body.graph.outputs, strict=False):
        if mine.type != own.type:
            where = f" at {place}" if place else ""
            raise user_error(
                CustomRuleError, f"{what}: its result{where} is {mine.type}, but the function's is {own.type}"
            )


def _like(part: Any, type: TensorType, what: str) -> Value:
    if part is None or isinstance(part, SymbolicZero):
        return constant(0.0, type)
    if type.dtype.is_complex and (of_reals := _complex_of_reals(part, type)) is not None:
        return of_reals
    try:
        return value_like(part, type, what)
    except (ShapeError, DtypeError) as error:
        raise user_error(CustomRuleError, str(error)) from None


def _complex_of_reals(part: Any, type: TensorType) -> Value | None:
    """Real floats as complex numbers of the type; None for anything else."""
    if not isinstance(part, (Value, np.ndarray, np.generic)):
        return None
    value = lift(part)
    if value.shape != type.shape or not value.type.dtype.is_float:
        return None
    return bind("cast", value, type=type)


def _type_name(value: Any) -> str:
    return type(value).__name__
