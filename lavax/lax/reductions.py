"""Reductions along axes, by sums and extremes or by any associative function; cumulative ones."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.ir.monoids import BY_JOIN, MONOIDS
from lavax.lax.elementwise import joins
from lavax.lax.operands import ANALYTIC, ANY, BITS, FIELDS, accepted
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import axis_error, dtype_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.parallel_scan import associative_scan
from lavax.tracer.pytrees import pytree
from lavax.tracer.tracing.abstract_evaluation import ShapeDtype, trace
from lavax.tracer.values.value import Value

JOINS: dict[str, Callable[..., Value]] = {
    monoid.reduction: getattr(lnp, join) for join, monoid in BY_JOIN.items()
}


def kind_of(computation: Callable[..., Any], dtype: Any) -> str | None:
    """The name of a reduction that joins as `computation` does: "sum", "prod", "max" or "min"; None for others."""
    try:
        known = joins().get(computation)
    except TypeError:  # not hashable
        known = None
    if known is not None:
        return known
    scalar = ShapeDtype((), dtype)
    graph = trace(computation)(scalar, scalar)
    if len(graph.outputs) != 1 or set(graph.outputs[0].operands) != set(graph.inputs) or len(graph.inputs) != 2:
        return None
    monoid = BY_JOIN.get(graph.outputs[0].op)
    return None if monoid is None else monoid.reduction


def _axes(name: str, value: Value, axes: Sequence[int]) -> tuple[int, ...]:
    if len(set(axes)) != len(axes) or any(not 0 <= axis < value.ndim for axis in axes):
        raise axis_error(f"lax.{name}: axes {tuple(axes)} are not different axes of {value.type}")
    return tuple(axes)


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[..., Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """All elements along `dimensions` joined by an associative `computation`, and with `init_values`.

    `operands` and `init_values` are trees of one structure: `computation` takes two trees of arrays and gives one.
    Sums, products and extremes are recognised; others take about log2(n) steps.
    """
    leaves, structure = pytree.flatten(operands)
    values, starts = [as_value(leaf) for leaf in leaves], [as_value(leaf) for leaf in pytree.leaves(init_values)]
    axes = _axes("reduce", values[0], dimensions)

    def of_leaves(*pair: Value) -> Any:
        return computation(*(pytree.unflatten(structure, [value]) for value in pair))

    if len(values) == 1:
        kind = kind_of(computation if structure.node_data() is None else of_leaves, values[0].dtype)
        if kind is not None:
            value, start = values[0], starts[0]
            made = JOINS[kind](start, _reduced(kind, value, axes))
            return pytree.unflatten(structure, [lnp.astype(made, value.dtype)])
    kept = [axis for axis in range(values[0].ndim) if axis not in axes]
    count = math.prod(values[0].shape[axis] for axis in axes)
    lines = [
        lnp.reshape(lnp.transpose(value, (*axes, *kept)), (count, *(value.shape[axis] for axis in kept)))
        for value in values
    ]

    def joined(first: Sequence[Value], second: Sequence[Value]) -> list[Value]:
        both = computation(pytree.unflatten(structure, list(first)), pytree.unflatten(structure, list(second)))
        return [lnp.astype(leaf, value.dtype) for leaf, value in zip(pytree.leaves(both), values, strict=True)]

    while count > 1:  # neighbours are joined, so that the order of elements stays
        even = count - count % 2
        met = joined([line[:even:2] for line in lines], [line[1:even:2] for line in lines])
        rest = [line[even:] for line in lines]
        lines = [lnp.concatenate(pair) for pair in zip(met, rest, strict=True)] if count % 2 else met
        count -= even // 2
    starting = [
        lnp.broadcast_to(lnp.astype(start, value.dtype), line.shape[1:])
        for start, value, line in zip(starts, values, lines, strict=True)
    ]
    return pytree.unflatten(structure, joined(starting, [line[0] for line in lines]) if count else starting)


def _reduced(kind: str, value: Value, axes: tuple[int, ...]) -> Value:
    """Without elements, an extreme is the number that never is one."""
    empty = kind in ("max", "min") and any(not value.shape[axis] for axis in axes)
    if not empty:
        found: Value = getattr(lnp, kind)(value, axis=axes)
        return found
    shape = tuple(extent for axis, extent in enumerate(value.shape) if axis not in axes)
    return lnp.full(shape, MONOIDS[kind].identity(value.type.dtype), value.dtype)


def _of_axes(name: str, function: Callable[..., Any], kinds: tuple[str, ...]) -> Callable[..., Value]:
    def reduced(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Value:
        (value,) = accepted(name, kinds, operand)
        found: Value = function(value, _axes(name, value, axes))
        return found

    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = f"`{name}` of the elements along axes, in the dtype of the operand."
    return reduced


def _bits(join: Callable[..., Any], start: int) -> Callable[..., Any]:
    def reduced(value: Value, axes: tuple[int, ...]) -> Any:
        first = start == -1 if value.type.dtype.kind == "bool" else lnp.astype(lnp.asarray(start), value.dtype)
        return reduce(value, first, join, axes)

    return reduced


reduce_sum = _of_axes("reduce_sum", lambda value, axes: lnp.sum(value, axis=axes, dtype=value.dtype), FIELDS)
reduce_prod = _of_axes("reduce_prod", lambda value, axes: lnp.prod(value, axis=axes, dtype=value.dtype), FIELDS)
reduce_max = _of_axes("reduce_max", lambda value, axes: _reduced("max", value, axes), ANY)
reduce_min = _of_axes("reduce_min", lambda value, axes: _reduced("min", value, axes), ANY)
reduce_and = _of_axes("reduce_and", _bits(lnp.bitwise_and, -1), BITS)
reduce_or = _of_axes("reduce_or", _bits(lnp.bitwise_or, 0), BITS)
reduce_xor = _of_axes("reduce_xor", _bits(lnp.bitwise_xor, 0), BITS)


def argmax(operand: ArrayLike, axis: int, index_dtype: Any) -> Value:
    """The first position of the greatest element along an axis, in `index_dtype`."""
    return lnp.astype(lnp.argmax(operand, axis=axis), _index_dtype("argmax", index_dtype))


def argmin(operand: ArrayLike, axis: int, index_dtype: Any) -> Value:
    """The first position of the least element along an axis, in `index_dtype`."""
    return lnp.astype(lnp.argmin(operand, axis=axis), _index_dtype("argmin", index_dtype))


def _index_dtype(name: str, dtype: Any) -> Any:
    if not canonical_dtype(dtype).is_integer:
        raise dtype_error(f"lax.{name}: index_dtype is an integer dtype, got {dtype!r:.40}")
    return dtype


def _cumulative(name: str, function: Callable[..., Value], kinds: tuple[str, ...] = FIELDS) -> Callable[..., Value]:
    def cumulative(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Value:
        (value,) = accepted(name, kinds, operand)
        along = normal_axis(f"lax.{name}", axis, value.type)
        given = lnp.flip(value, along) if reverse else value
        made = lnp.astype(function(given, axis=along), value.dtype)
        return lnp.flip(made, along) if reverse else made

    cumulative.__name__ = cumulative.__qualname__ = name
    cumulative.__doc__ = f"`{name}` of the elements up to each one along an axis; with `reverse`, from each one on."
    return cumulative


def _joined(function: Callable[..., Value], join: Callable[[Value, Value], Value]) -> Callable[..., Value]:
    """`function`, and for complex numbers, of which it has no routine, pairs that are joined."""

    def cumulative(value: Value, axis: int) -> Value:
        if value.type.dtype.is_complex:
            found: Value = associative_scan(join, value, axis=axis)
            return found
        return function(value, axis=axis)

    return cumulative


cumsum = _cumulative("cumsum", lnp.cumsum)
cumprod = _cumulative("cumprod", lnp.cumprod)
cummax = _cumulative("cummax", _joined(lnp.cummax, lnp.maximum))
cummin = _cumulative("cummin", _joined(lnp.cummin, lnp.minimum))
cumlogsumexp = _cumulative("cumlogsumexp", _joined(lnp.cumlogsumexp, lnp.logaddexp), ANALYTIC)
