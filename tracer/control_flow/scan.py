"""Loops along an axis: scan and map. Names and arguments are JAX's."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.location import user_error
from lavax.tracer.calls.signature import require_function
from lavax.tracer.control_flow.bodies import flattened, output_types
from lavax.tracer.control_flow.captures import with_common_captures
from lavax.tracer.control_flow.carried import trace_loop_body
from lavax.tracer.control_flow.recording import apply_control_flow
from lavax.tracer.pytrees.pytree import flatten, unflatten
from lavax.tracer.tracing.bind import bind
from lavax.tracer.tracing.convert import lift
from lavax.tracer.tracing.effects import emit_for_each
from lavax.tracer.tracing.float0 import is_float0, with_float0_of_each, zeros
from lavax.tracer.values.abstract import abstract
from lavax.tracer.values.value import Value


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """Computes `carry, y = f(carry, x)` for each x along the leading axis of `xs`; returns the last carry and all ys.

    `xs` is a pytree of arrays with one leading extent, or None with `length` steps; the ys are stacked along a new
    leading axis. With `reverse` it goes from the last x to the first. `unroll` is the number of steps per iteration of
    the loop. The body is compiled once, whatever the length. Raises ControlFlowTypeError if the carry changes
    its structure, shapes or dtypes, ShapeError if the leading extents differ.
    """
    return named_scan("scan", f, init, xs, length, reverse, unroll)


def named_scan(
    name: str,
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
) -> tuple[Any, Any]:
    """`scan` for a function that messages call `name`."""
    carries, (carry_structure,) = flattened([init])
    sequences, (sequence_structure,) = flattened([xs])
    steps = _length(name, sequences, length)
    slices = [abstract(each.type.with_shape(each.shape[1:]), each.weak) for each in sequences]
    body, carries = trace_loop_body(name, f, [carry_structure, sequence_structure], carries, slices)
    if unroll > 1 and steps % unroll == 0 and steps:  # each step keeps the carry's types, as the body above does
        return _unrolled_scan(f, unflatten(carry_structure, carries), xs, steps, reverse, unroll)
    graphs, captured = with_common_captures([body], len(carries) + len(sequences))
    outputs = output_types(body)
    types = [*outputs[: len(carries)], *(type.with_shape((steps, *type.shape)) for type in outputs[len(carries) :])]
    results = apply_control_flow(
        "scan",
        [*carries, *sequences, *captured],
        types,
        body.weak,
        carries=len(carries),
        sequences=len(sequences),
        length=steps,
        reverse=bool(reverse),
        body=graphs[0],
    )
    last, stacked = body.structure.children
    count = body.structure.leaf_count
    emit_for_each(body.effects, results[count:], steps, -1 if reverse else 1)
    ys = with_float0_of_each(unflatten(stacked, results[len(carries) : count]), stacked, steps)
    return unflatten(last, results[: len(carries)]), ys


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """`f` of each element along the leading axis of `xs`, one after the other; the results stacked.

    Raises ShapeError if leading extents differ.
    """
    require_function(f, "map takes a function")
    return named_scan("map", lambda _, x: (None, f(x)), None, xs)[1]


def _length(name: str, sequences: Sequence[Value], length: int | None) -> int:
    if length is not None:
        length = _steps(name, length)
    if any(not sequence.shape for sequence in sequences):
        raise user_error(ShapeError, f"{name}: xs must have a leading axis to go along; a scalar has none")
    extents = {sequence.shape[0] for sequence in sequences} | ({length} if length is not None else set())
    if len(extents) != 1:
        given = ", ".join(str(extent) for extent in sorted(extents))
        raise user_error(
            ShapeError, f"{name}: leading extents and length must agree, got {given or 'neither xs nor length'}"
        )
    return extents.pop()


def _steps(name: str, length: Any) -> int:
    """A length that was asked for, as Python's integer; an array's number does, if it is known."""
    if not hasattr(length, "__index__"):
        raise user_error(DtypeError, f"{name}: length must be an integer, got {length!r:.40}")
    steps = operator.index(length)
    if steps < 0:
        raise user_error(ShapeError, f"{name}: length must not be negative, got {steps}")
    return steps


def _unrolled_scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, steps: int, reverse: bool, unroll: int
) -> tuple[Any, Any]:
    """A scan over groups of `unroll` elements; its body loops over a group in Python."""
    leaves, structure = flatten(xs)
    count = steps // unroll
    grouped = [_reshaped(lift(leaf), (count, unroll, *lift(leaf).shape[1:])) for leaf in leaves]

    def body(carry: Any, group: Any) -> tuple[Any, Any]:
        parts, _ = flatten(group)
        found: list[Any] = [None] * unroll
        for step in range(unroll)[:: -1 if reverse else 1]:
            carry, found[step] = f(carry, unflatten(structure, [_element(part, step) for part in parts]))
        columns, inner = zip(*(flatten(each) for each in found), strict=True)
        return carry, unflatten(inner[0], [_stacked(column) for column in zip(*columns, strict=True)])

    last, stacked = scan(body, init, unflatten(structure, grouped), count, reverse)
    parts, inner = flatten(stacked)
    return last, unflatten(inner, [_reshaped(part, (steps, *part.shape[2:])) for part in parts])


def _reshaped(value: Any, shape: tuple[int, ...]) -> Any:
    if is_float0(value):
        return zeros(shape)
    return bind("reshape", value, type=value.type.with_shape(shape))


def _element(value: Value, position: int) -> Value:
    start = (position, *(0 for _ in value.shape[1:]))
    limit = (position + 1, *value.shape[1:])
    part = bind("slice", value, start=start, limit=limit, stride=(1,) * len(value.shape))
    return bind("reshape", part, type=value.type.with_shape(value.shape[1:]))


def _stacked(parts: Sequence[Any]) -> Any:
    if is_float0(parts[0]):
        return zeros((len(parts), *parts[0].shape))
    values = [lift(part) for part in parts]
    return bind("concatenate", *(_reshaped(value, (1, *value.shape)) for value in values), axis=0)
