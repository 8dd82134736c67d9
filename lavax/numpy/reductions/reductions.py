"""Reductions over axes."""
from __future__ import annotations

import math
from typing import Any

from lavax.ir.types import DType, int32
from lavax.numpy._core.application import as_truth
from lavax.numpy._core.axes import Axis, normal_axis, rising_axes
from lavax.numpy._core.broadcasting import common_shape, spread, spread_back
from lavax.numpy._core.dropped_parts import tell_dropped_parts
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import real_number
from lavax.numpy._core.operands import ArrayLike, as_positions, as_value, cast, own
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy._core.promotion import accumulating, averaging, floating, summed
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, subtract
from lavax.numpy.elementwise.comparison import where as choice
from lavax.numpy.elementwise.extrema import maximum, minimum
from lavax.numpy.elementwise.powers import sqrt
from lavax.tracer import bind, constant, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"]

_LAST_POSITION = 2**31 - 1  # int32 counts no more


def _kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


def fold(op: str, value: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The reduction `op` over `axes`, in rising order; with `keepdims` they stay, with extent 1. It is strong."""
    result = bind(op, value, axes=axes) if axes else with_weak(own(value), False)
    if keepdims and axes:
        result = bind("reshape", result, type=result.type.with_shape(_kept(value.shape, axes)))
    return result


def _accumulate(op: str, x: ArrayLike, axis: Axis, dtype: Any, keepdims: bool) -> Value:
    value = as_value(x)
    axes = rising_axes(op, axis, value.type)
    held = summed(value.type.dtype) if dtype is None else canonical_dtype(dtype)
    tell_dropped_parts(op, value.type.dtype, held)
    within = accumulating(held)
    if within != value.type.dtype:
        return cast(_fold_in(within, op, value, axes, keepdims), held)
    return cast(fold(op, value, axes, keepdims), held)


@one_program("dtype", "op", "axes", "keepdims")
def _fold_in(dtype: DType, op: str, value: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The reduction in another dtype, which does not store the converted array."""
    return fold(op, cast(value, dtype), axes, keepdims)


def _accumulated_dtype(x: ArrayLike, dtype: Any, promote_integers: bool) -> Any:
    return dtype if promote_integers or dtype is not None else as_value(x).dtype


def among(name: str, value: Value, where: ArrayLike | None, instead: ArrayLike) -> Value:
    """`value` where `where` is true, else `instead`. Raises ShapeError if `where` does not broadcast to `value`."""
    if where is None:
        return value
    return choice(_mask(name, value, where), value, cast(as_value(instead), value.type.dtype))


def _mask(name: str, value: Value, where: ArrayLike) -> Value:
    mask = as_truth(where)
    if mask.ndim > value.ndim or common_shape(name, [mask, value]) != value.shape:
        raise shape_error(f"{name}: where {mask.type} does not broadcast to {value.type}")
    return mask


def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Value:
    """The sum over `axis` (None: all axes), computed in `dtype`.

    `dtype` None is the dtype of `a`; with `promote_integers` 32 bits (within `lavax.enable_x64` 64) for narrower
    integers and truth values. The sum is over the elements where `where` is true, plus `initial`.
    """
    refuse_out("sum", out)
    dtype = _accumulated_dtype(a, dtype, promote_integers)
    total = _accumulate("sum", among("sum", as_value(a), where, 0), axis, dtype, keepdims)
    return total if initial is None else cast(add(total, initial), total.type.dtype)


def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Value:
    """The product over `axis` (None: all axes), computed in `dtype`, as in `sum`.

    The product is over the elements where `where` is true, times `initial`.
    """
    refuse_out("prod", out)
    dtype = _accumulated_dtype(a, dtype, promote_integers)
    product = _accumulate("prod", among("prod", as_value(a), where, 1), axis, dtype, keepdims)
    return product if initial is None else cast(multiply(product, initial), product.type.dtype)


def _extremum(
    op: str, x: ArrayLike, axis: Axis, keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None
) -> Value:
    value = as_value(x)
    axes = rising_axes(op, axis, value.type)
    over = _complex_extremum if value.type.dtype.is_complex else fold
    if initial is None:
        if where is not None:
            raise ValueError(f"{op}: with where, initial is needed too: the result where no element is chosen")
        return over(op, value, axes, keepdims)
    least = cast(as_value(initial), value.type.dtype)
    if least.shape:
        raise shape_error(f"{op}: initial must be one number, got {least.type}")
    if not _count(value, axes):
        kept = _kept(value.shape, axes)
        shape = kept if keepdims else tuple(extent for d, extent in enumerate(kept) if d not in axes)
        return spread(least, shape)
    found = over(op, among(op, value, where, least), axes, keepdims)
    return (maximum if op == "max" else minimum)(found, least)


@one_program("op", "axes", "keepdims")
def _complex_extremum(op: str, value: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """The element at the position of the extremum over `axes`, as lines along a last axis."""
    if not axes:
        return with_weak(own(value), False)
    others = [d for d in range(value.ndim) if d not in axes]
    shape = tuple(value.shape[d] for d in others)
    lines = bind("transpose", value, axes=(*others, *axes))
    lines = bind("reshape", lines, type=value.type.with_shape((*shape, _count(value, axes))))
    place = bind(f"arg{op}", lines, axis=len(shape))
    places = [bind("iota", type=place.type, axis=d) for d in range(len(shape))]
    found = bind("gather", lines, *places, place, axes=tuple(range(lines.ndim)))
    held = _kept(value.shape, axes) if keepdims else shape
    return bind("reshape", found, type=found.type.with_shape(held))


def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """The greatest element over `axis` (None: all axes); NaN if one is. Raises ShapeError over no elements.

    With `initial` the greatest of that and the elements where `where` is true, which may be none.
    """
    refuse_out("max", out)
    return _extremum("max", a, axis, keepdims, initial, where)


def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """The smallest element over `axis` (None: all axes); NaN if one is. Raises ShapeError over no elements.

    With `initial` the smallest of that and the elements where `where` is true, which may be none.
    """
    refuse_out("min", out)
    return _extremum("min", a, axis, keepdims, initial, where)


def _count(value: Value, axes: tuple[int, ...]) -> int:
    return math.prod(value.shape[axis] for axis in axes)


@one_program("op", "name", "axis", "keepdims", "of_nothing")
def _truth_over(
    op: str, name: str, x: ArrayLike, axis: Axis, keepdims: bool, where: ArrayLike | None, of_nothing: bool
) -> Value:
    given = as_value(x)
    axes = rising_axes(name, axis, given.type)
    value = among(name, as_truth(given), where, of_nothing)
    if _count(value, axes) == 0:
        kept = _kept(value.shape, axes)
        shape = kept if keepdims else tuple(extent for d, extent in enumerate(kept) if d not in axes)
        return constant(of_nothing, value.type.with_shape(shape))
    return fold(op, value, axes, keepdims)


def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Value:
    """Whether any element over `axis` (None: all axes) is true (not zero); of no elements: False.

    Only elements where `where` is true count.
    """
    refuse_out("any", out)
    return _truth_over("max", "any", a, axis, keepdims, where, of_nothing=False)


def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Value:
    """Whether all elements over `axis` (None: all axes) are true (not zero); of no elements: True.

    Only elements where `where` is true count.
    """
    refuse_out("all", out)
    return _truth_over("min", "all", a, axis, keepdims, where, of_nothing=True)


@one_program("axis", "keepdims")
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Value:
    """The number of elements over `axis` (None: all axes) that are not zero."""
    return sum(as_truth(a), axis, keepdims=keepdims)


def _real(name: str, x: ArrayLike, axis: Axis, dtype: Any) -> tuple[Value, tuple[int, ...], DType]:
    """`x` as floats to be averaged, the axes to reduce, and the dtype of the result."""
    given = as_value(x)
    axes = rising_axes(name, axis, given.type)
    held = floating(given.type.dtype if dtype is None else canonical_dtype(dtype))
    tell_dropped_parts(name, given.type.dtype, held)
    return cast(given, averaging(held)), axes, held


def _number(name: str, value: Value, axes: tuple[int, ...], where: ArrayLike | None) -> ArrayLike:
    """The number of elements reduced to each result, as a float, with the axes kept."""
    if where is None:
        return float(_count(value, axes))
    mask = spread(_mask(name, value, where), value.shape)
    return cast(fold("sum", cast(mask, int32), axes, keepdims=True), value.type.dtype.part)


def _mean(name: str, value: Value, axes: tuple[int, ...], where: ArrayLike | None) -> Value:
    """The mean, with the axes kept."""
    total = fold("sum", among(name, value, where, 0.0), axes, keepdims=True)
    return divide(total, _number(name, value, axes, where))


def _without(value: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """`value` without the reduced axes, of extent 1."""
    shape = tuple(extent for d, extent in enumerate(value.shape) if d not in axes)
    return value if keepdims or not axes else bind("reshape", value, type=value.type.with_shape(shape))


@one_program("axis", "dtype", "keepdims")
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Value:
    """The arithmetic mean over `axis` (None: all axes), as a float; of no elements: NaN.

    Only elements where `where` is true count. With an integer `dtype` the mean is truncated.
    """
    refuse_out("mean", out)
    value, axes, held = _real("mean", a, axis, dtype)
    if dtype is not None and canonical_dtype(dtype).is_integer:
        held = canonical_dtype(dtype)
    if where is None:
        return cast(divide(fold("sum", value, axes, keepdims), float(_count(value, axes))), held)
    return cast(_without(_mean("mean", value, axes, where), axes, keepdims), held)


def squared_length(value: Value) -> Value:
    """The square of each real element, |z|² of each complex one."""
    if not value.type.dtype.is_complex:
        return multiply(value, value)
    real, imaginary = bind("real", value), bind("imag", value)
    return add(multiply(real, real), multiply(imaginary, imaginary))


def _centre(value: Value, axes: tuple[int, ...], known: ArrayLike | None) -> ArrayLike:
    return spread_back(mean(value, axes), axes, value.shape) if known is None else known


@one_program("axis", "dtype", "ddof", "correction", "keepdims")
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Value:
    """The variance over `axis` (None: all axes), as a float: the mean of squared deviations from the mean.

    Of complex numbers the mean of |z - mean|², which is real.

    Only elements where `where` is true count. The divisor is their number less `ddof`, which the array API calls
    `correction`. `mean` is the mean if it is known, with the axes of extent 1 that `keepdims` keeps.
    """
    refuse_out("var", out)
    value, axes, held = _real("var", a, axis, dtype)
    held = held.part
    less_by = real_number("ddof", ddof if correction is None else correction)
    if where is None:
        centred = subtract(value, _centre(value, axes, mean))
        divisor = _count(value, axes) - less_by
        total = fold("sum", squared_length(centred), axes, keepdims)
        return cast(divide(total, float(divisor if divisor > 0 else 0)), held)
    centred = among("var", subtract(value, _mean("var", value, axes, where) if mean is None else mean), where, 0.0)
    count = maximum(subtract(_number("var", value, axes, where), less_by), 0.0)
    total = fold("sum", squared_length(centred), axes, keepdims=True)
    return cast(_without(divide(total, count), axes, keepdims), held)


@one_program("axis", "dtype", "ddof", "correction", "keepdims")
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Value:
    """The standard deviation over `axis`: the square root of `var` of the same arguments."""
    refuse_out("std", out)
    return sqrt(var(a, axis, dtype, ddof=ddof, correction=correction, keepdims=keepdims, where=where, mean=mean))


@one_program("op", "axis", "keepdims")
def _position(op: str, x: ArrayLike, axis: int | None, keepdims: bool) -> Value:
    value = as_value(x)
    searched = value.size if axis is None else value.shape[normal_axis(op, axis, value.type)]
    if searched > _LAST_POSITION:
        raise shape_error(
            f"{op}: {value.type} has {searched} elements to search, more than the {_LAST_POSITION} positions of int32. "
            "Search parts of it, and compare what they found"
        )
    if axis is None:
        flat = value.type.with_shape((value.size,))
        line = value if value.type == flat else bind("reshape", value, type=flat)
        result, kept = bind(op, line, axis=0), (1,) * value.ndim
    else:
        along = normal_axis(op, axis, value.type)
        result, kept = bind(op, value, axis=along), _kept(value.shape, (along,))
    return as_positions(bind("reshape", result, type=result.type.with_shape(kept)) if keepdims else result)


def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Value:
    """The position along `axis` (None: in the flattened array) of the first greatest element or NaN.

    Raises ShapeError over no elements, and over more than int32 counts.
    """
    refuse_out("argmax", out)
    return _position("argmax", a, axis, keepdims)


def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Value:
    """The position along `axis` (None: in the flattened array) of the first smallest element or NaN.

    Raises ShapeError over no elements, and over more than int32 counts.
    """
    refuse_out("argmin", out)
    return _position("argmin", a, axis, keepdims)
