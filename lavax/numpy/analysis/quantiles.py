"""Order statistics."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from lavax.ir.types import TensorType, float32, float64, int32
from lavax.numpy._core.application import as_floating, real_numbers
from lavax.numpy._core.axes import Axis, rising_axes
from lavax.numpy._core.broadcasting import broadcast_to, fit, spread
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import cut, reshaped, transposed
from lavax.numpy._core.operands import ArrayLike, as_operand, cast
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy.analysis.weighted_quantiles import by_weights
from lavax.numpy.arrays.creation import zeros
from lavax.numpy.arrays.joining import stack
from lavax.numpy.arrays.manipulation import ravel
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, subtract
from lavax.numpy.elementwise.comparison import equal, greater_equal, isnan, less_equal, logical_and, where
from lavax.numpy.elementwise.extrema import clip, maximum, minimum
from lavax.numpy.elementwise.rounding import floor
from lavax.numpy.indexing.taking import take_along_axis
from lavax.numpy.reductions.reductions import max as max_over
from lavax.numpy.reductions.reductions import min as min_over
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer import bind, constant
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "ptp", "quantile"]

Method: TypeAlias = Literal["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"]
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@one_program("axis", "method", "keepdims")
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: Method = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Value:
    """The value below which the fraction `q` of the elements over `axis` (None: all axes) lies; NaN if one is.

    The axes of `q` come first in the result, which has the dtype of `a`; for integers and bools, that of their mean.
    `method` chooses the value between two elements. Fractions outside 0 to 1 give NaN.

    Raises DtypeError for complex numbers.

    `method` "inverted_cdf" gives the least element that, with all below it, has the fraction `q` of the `weights`: all
    equal, or of the shape of `a` or of `axis`. Weights below 0 and NaN give NaN. Raises ValueError for weights with
    another method, ShapeError for weights of another shape.
    """
    refuse_out("quantile", out)
    return _quantile("quantile", a, q, axis, method, keepdims, weights, skip_nan=False)


def _quantile(
    name: str,
    x: ArrayLike,
    q: ArrayLike,
    axis: Axis,
    method: Method,
    keepdims: bool,
    weights: ArrayLike | None,
    skip_nan: bool,
) -> Value:
    if method not in _METHODS:
        raise ValueError(f"{name}: method is one of {', '.join(_METHODS)}, got {method!r}")
    if weights is not None and method != "inverted_cdf":
        raise ValueError(f"{name}: weights need method='inverted_cdf', got {method!r}")
    rows, outer, kept = _rows(name, x, axis)
    count = rows.shape[-1]
    operand, dtype = real_numbers(name, q), rows.type.dtype
    # Positions count up to the number of elements, beyond the precision of 16-bit floats.
    places = dtype if dtype == float64 else float32
    rows, fractions = cast(rows, places), fit(operand, operand.type.with_dtype(places))
    if not count:
        return cast(broadcast_to(float("nan"), (*fractions.shape, *(kept if keepdims else outer))), dtype)
    if method == "inverted_cdf":
        given = None if weights is None else _rows(name, _like_elements(name, weights, x, axis), axis)[0]
        at_fraction = by_weights(rows, given, skip_nan)
    else:
        at_fraction = _by_places(rows, method, skip_nan)
    results = []
    for fraction in [reshaped(ravel(fractions)[k], ()) for k in range(fractions.size)]:
        within = logical_and(greater_equal(fraction, 0), less_equal(fraction, 1))
        found = where(within, at_fraction(clip(fraction, 0, 1)), float("nan"))
        results.append(reshaped(found, kept) if keepdims else found)
    shape = kept if keepdims else outer
    if not fractions.ndim:
        return cast(results[0], dtype)
    together = reshaped(stack(results), (*fractions.shape, *shape)) if results else zeros((*fractions.shape, *shape))
    return cast(together, dtype)


def _like_elements(name: str, weights: ArrayLike, x: ArrayLike, axis: Axis) -> Value:
    """The weights in the shape of `x`. Raises ShapeError if they have neither that shape nor that of the axes."""
    value, shape = real_numbers(name, weights), as_operand(x).type.shape
    if value.shape == shape:
        return value
    axes = rising_axes(name, axis, as_operand(x).type)
    along = tuple(shape[d] for d in axes)
    if value.shape != along:
        raise shape_error(f"{name}: weights {value.type} must have the shape of a {shape} or of its axes {along}")
    return broadcast_to(reshaped(value, tuple(n if d in axes else 1 for d, n in enumerate(shape))), shape)


def _by_places(rows: Value, method: Method, skip_nan: bool) -> Callable[[Value], Value]:
    """The function that gives each row's element at a fraction of its elements."""
    outer, count = rows.shape[:-1], rows.shape[-1]
    ordered = bind("sort", rows, axis=rows.ndim - 1)
    holds_nan = isnan(reshaped(cut(ordered, ordered.ndim - 1, count - 1, count), outer))
    if skip_nan:
        numbers = sum_over(cast(isnan(rows), int32), -1)
        last = maximum(cast(subtract(count - 1, numbers), rows.type.dtype), 0)
    else:
        last = constant(float(count - 1), TensorType(outer, rows.type.dtype))

    def at_fraction(fraction: Value) -> Value:
        found = _at_place(ordered, minimum(multiply(last, fraction), last), method)
        return found if skip_nan else where(holds_nan, float("nan"), found)

    return at_fraction


def _rows(name: str, x: ArrayLike, axis: Axis) -> tuple[Value, tuple[int, ...], tuple[int, ...]]:
    """`x` as floats, with the axes to reduce joined into a last one; the shape without them, and with extents of 1."""
    value = real_numbers(name, x)
    axes = rising_axes(name, axis, value.type)
    kept = [d for d in range(value.ndim) if d not in axes]
    outer = tuple(value.shape[d] for d in kept)
    rows = reshaped(transposed(value, [*kept, *axes]), (*outer, math.prod(value.shape[d] for d in axes)))
    return rows, outer, tuple(1 if d in axes else extent for d, extent in enumerate(value.shape))


def _at_place(ordered: Value, place: Value, method: Method) -> Value:
    """The elements of sorted rows at fractional positions, which broadcast with the rows' other axes."""
    below = floor(place)
    low = _taken(ordered, below)
    if method == "lower":
        return low
    high = _taken(ordered, add(below, minimum(_ceiled(place, below), 1)))
    if method == "higher":
        return high
    if method == "midpoint":
        return multiply(add(low, high), 0.5)
    share = subtract(place, below)
    if method == "nearest":
        odd = equal(subtract(below, multiply(floor(multiply(below, 0.5)), 2)), 1)
        goes_up = where(equal(share, 0.5), odd, greater_equal(share, 0.5))
        return where(goes_up, high, low)
    return where(equal(share, 0), low, add(low, multiply(subtract(high, low), share)))


def _ceiled(place: Value, below: Value) -> Value:
    return where(equal(place, below), 0.0, 1.0)


def _taken(ordered: Value, place: Value) -> Value:
    positions = reshaped(cast(place, int32), (*place.shape, 1))
    shape = (*ordered.shape[:-1], 1)
    return reshaped(take_along_axis(ordered, spread(positions, shape), -1), ordered.shape[:-1])


@one_program("axis", "method", "keepdims")
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: Method = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Value:
    """As `quantile`, with `q` in hundredths."""
    refuse_out("percentile", out)
    return quantile(a, _of_hundredths(q), axis, method=method, keepdims=keepdims, weights=weights)


def _of_hundredths(q: ArrayLike) -> ArrayLike:
    """`q` / 100; a Python number stays one, in the precision of the array."""
    return q / 100 if isinstance(q, (int, float)) else divide(as_floating(q), 100.0)


@one_program("axis", "keepdims")
def median(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Value:
    """The middle element over `axis` (None: all axes), or the mean of the two; NaN if one is."""
    refuse_out("median", out)
    return quantile(a, 0.5, axis, keepdims=keepdims)


@one_program("axis", "method", "keepdims")
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: Method = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Value:
    """As `quantile` of the elements that are not NaN; NaN where there are none."""
    refuse_out("nanquantile", out)
    return _quantile("nanquantile", a, q, axis, method, keepdims, weights, skip_nan=True)


@one_program("axis", "method", "keepdims")
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: Method = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Value:
    """As `percentile` of the elements that are not NaN; NaN where there are none."""
    refuse_out("nanpercentile", out)
    return nanquantile(a, _of_hundredths(q), axis, method=method, keepdims=keepdims, weights=weights)


@one_program("axis", "keepdims")
def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Value:
    """As `median` of the elements that are not NaN; NaN where there are none."""
    refuse_out("nanmedian", out)
    return nanquantile(a, 0.5, axis, keepdims=keepdims)


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Value:
    """The greatest less the smallest element over `axis` (None: all axes)."""
    refuse_out("ptp", out)
    return subtract(max_over(a, axis, keepdims=keepdims), min_over(a, axis, keepdims=keepdims))
