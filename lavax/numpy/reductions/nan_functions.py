"""Reductions that ignore NaN."""
from __future__ import annotations

from typing import Any

from lavax.ir.types import DType, int32
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import Axis, rising_axes
from lavax.numpy._core.broadcasting import spread
from lavax.numpy._core.number_arguments import real_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy._core.promotion import averaging
from lavax.numpy.arrays.creation import astype
from lavax.numpy.elementwise.arithmetic import divide, subtract
from lavax.numpy.elementwise.comparison import greater, isnan, logical_not
from lavax.numpy.elementwise.comparison import where as choice
from lavax.numpy.elementwise.powers import sqrt
from lavax.numpy.reductions.reductions import all as all_over
from lavax.numpy.reductions.reductions import among, argmax, argmin, fold, prod, squared_length, sum
from lavax.numpy.reductions.reductions import max as max_over
from lavax.numpy.reductions.reductions import min as min_over
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar"]


def _with(x: ArrayLike, instead: float) -> Value:
    """`x` with NaN replaced."""
    value = as_value(x)
    return choice(isnan(value), instead, value) if value.type.dtype.is_inexact else own(value)


@one_program("axis", "dtype", "keepdims")
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """As `sum`, with NaN counted as 0."""
    refuse_out("nansum", out)
    return sum(_with(a, 0.0), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@one_program("axis", "dtype", "keepdims")
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """As `prod`, with NaN counted as 1."""
    refuse_out("nanprod", out)
    return prod(_with(a, 1.0), axis, dtype, keepdims=keepdims, initial=initial, where=where)


def _extremum(
    x: ArrayLike, axis: Axis, keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None, greatest: bool
) -> Value:
    value = as_value(x)
    over = max_over if greatest else min_over
    if not value.type.dtype.is_inexact:
        return over(value, axis, keepdims=keepdims, initial=initial, where=where)
    numbers = _with(value, float("-inf") if greatest else float("inf"))
    found = over(numbers, axis, keepdims=keepdims, initial=initial, where=where)
    if initial is not None:
        return found
    return choice(all_over(isnan(value), axis, keepdims=keepdims), float("nan"), found)


@one_program("axis", "keepdims")
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """As `max` of the elements that are not NaN; NaN where there are none and no `initial`."""
    refuse_out("nanmax", out)
    return _extremum(a, axis, keepdims, initial, where, True)


@one_program("axis", "keepdims")
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Value:
    """As `min` of the elements that are not NaN; NaN where there are none and no `initial`."""
    refuse_out("nanmin", out)
    return _extremum(a, axis, keepdims, initial, where, False)


@one_program("axis", "keepdims")
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Value:
    """As `argmax` of the elements that are not NaN; -1 where there are none."""
    refuse_out("nanargmax", out)
    return _position(argmax(_with(a, float("-inf")), axis, keepdims=keepdims), a, axis, keepdims)


@one_program("axis", "keepdims")
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False) -> Value:
    """As `argmin` of the elements that are not NaN; -1 where there are none."""
    refuse_out("nanargmin", out)
    return _position(argmin(_with(a, float("inf")), axis, keepdims=keepdims), a, axis, keepdims)


def _position(found: Value, x: ArrayLike, axis: int | None, keepdims: bool) -> Value:
    value = as_value(x)
    if not value.type.dtype.is_inexact:
        return found
    return choice(all_over(isnan(value), axis, keepdims=keepdims), -1, found)


def _count(value: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """How many elements are not NaN, in the dtype of the value or of its parts."""
    return cast(fold("sum", cast(logical_not(isnan(value)), int32), axes, keepdims), value.type.dtype.part)


def _averaged(name: str, x: ArrayLike, dtype: Any, where: ArrayLike | None) -> tuple[Value, DType]:
    """`x` as floats to be averaged, NaN where `where` is false, and the dtype of the result."""
    value = as_floating(x if dtype is None else astype(x, dtype))
    return cast(among(name, value, where, float("nan")), averaging(value.type.dtype)), value.type.dtype


@one_program("axis", "dtype", "keepdims")
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Value:
    """As `mean` of the elements that are not NaN, and where `where` is true; NaN where there are none."""
    refuse_out("nanmean", out)
    value, held = _averaged("nanmean", a, dtype, where)
    axes = rising_axes("nanmean", axis, value.type)
    return cast(divide(nansum(value, axes, keepdims=keepdims), _count(value, axes, keepdims)), held)


@one_program("axis", "dtype", "ddof", "correction", "keepdims")
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    *,
    correction: float | None = None,
) -> Value:
    """As `var` of the elements that are not NaN, and where `where` is true; NaN where there are no more than `ddof`.

    `mean` is as in `var`.
    """
    refuse_out("nanvar", out)
    value, held = _averaged("nanvar", a, dtype, where)
    axes = rising_axes("nanvar", axis, value.type)
    centre = spread(nanmean(value, axes, keepdims=True), value.shape) if mean is None else mean
    deviations = subtract(value, centre)
    centred = choice(isnan(value), 0.0, deviations)  # before the square, whose slope at NaN is NaN
    divisor = subtract(_count(value, axes, keepdims), real_number("ddof", ddof if correction is None else correction))
    total = fold("sum", squared_length(centred), axes, keepdims)
    usable = greater(divisor, 0)
    return cast(choice(usable, divide(total, choice(usable, divisor, 1)), float("nan")), held.part)


@one_program("axis", "dtype", "ddof", "correction", "keepdims")
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    *,
    correction: float | None = None,
) -> Value:
    """The square root of `nanvar` of the same arguments."""
    refuse_out("nanstd", out)
    return sqrt(nanvar(a, axis, dtype, ddof=ddof, correction=correction, keepdims=keepdims, where=where, mean=mean))
