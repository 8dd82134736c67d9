"""Functions that fold axes away."""
from __future__ import annotations

import math
from typing import Any

from lavax.ir.types import bool_
from lavax.numpy.application import as_truth
from lavax.numpy.axes import Axis, normal_axis, rising_axes
from lavax.numpy.broadcasting import spread_back
from lavax.numpy.comparison import equal
from lavax.numpy.dtypes import canonical_dtype
from lavax.numpy.elementwise import divide, multiply, sqrt, subtract
from lavax.numpy.operands import ArrayLike, as_value, cast
from lavax.numpy.promotion import accumulating, floating
from lavax.tracer import bind, constant, with_weak
from lavax.tracer.value import Value

__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"]


def _kept(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))


def fold(op: str, value: Value, axes: tuple[int, ...], keepdims: bool, weak: bool = False) -> Value:
    """The reduction `op` over `axes`, which are in rising order; with `keepdims` they stay, with extent 1."""
    result = bind(op, value, axes=axes) if axes else value
    if keepdims and axes:
        result = bind("reshape", result, type=result.type.with_shape(_kept(value.shape, axes)))
    return with_weak(result, True) if weak else result


def _accumulate(op: str, x: ArrayLike, axis: Axis, dtype: Any, keepdims: bool) -> Value:
    value = as_value(x)
    axes = rising_axes(op, axis, value.type)
    held = accumulating(value.type.dtype) if dtype is None else canonical_dtype(dtype)
    within = accumulating(held)
    result = fold(op, cast(value, within), axes, keepdims, weak=value.weak and within == value.type.dtype)
    return cast(result, held)


def sum(x: ArrayLike, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Value:
    """The sum over `axis` (None: all axes), computed in `dtype`: that of `x` if None, int32 for truth values."""
    return _accumulate("sum", x, axis, dtype, keepdims)


def prod(x: ArrayLike, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Value:
    """The product over `axis` (None: all axes), in `dtype`: that of `x` if None, int32 for truth values."""
    return _accumulate("prod", x, axis, dtype, keepdims)


def max(x: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Value:
    """The greatest element over `axis` (None: all axes); NaN if one is. Raises ShapeError over no elements."""
    value = as_value(x)
    return fold("max", value, rising_axes("max", axis, value.type), keepdims, value.weak)


def min(x: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Value:
    """The smallest element over `axis` (None: all axes); NaN if one is. Raises ShapeError over no elements."""
    value = as_value(x)
    return fold("min", value, rising_axes("min", axis, value.type), keepdims, value.weak)


def _count(value: Value, axes: tuple[int, ...]) -> int:
    return math.prod(value.shape[axis] for axis in axes)


def _truth_over(op: str, name: str, x: ArrayLike, axis: Axis, keepdims: bool, of_nothing: bool) -> Value:
    given = as_value(x)
    axes = rising_axes(name, axis, given.type)
    value = as_truth(given)
    if _count(value, axes) == 0:
        kept = _kept(value.shape, axes)
        shape = kept if keepdims else tuple(extent for d, extent in enumerate(kept) if d not in axes)
        return constant(of_nothing, value.type.with_shape(shape))
    return fold(op, value, axes, keepdims)


def any(x: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Value:
    """Whether any element over `axis` (None: all axes) is true (not zero); of no elements: False."""
    return _truth_over("max", "any", x, axis, keepdims, of_nothing=False)


def all(x: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Value:
    """Whether all elements over `axis` (None: all axes) are true (not zero); of no elements: True."""
    return _truth_over("min", "all", x, axis, keepdims, of_nothing=True)


def count_nonzero(x: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Value:
    """How many elements over `axis` (None: all axes) are not zero, as int32."""
    return sum(as_truth(x), axis, keepdims=keepdims)


def _real(name: str, x: ArrayLike, axis: Axis, dtype: Any) -> tuple[Value, tuple[int, ...]]:
    """`x` as floats of `dtype`, and the axes to fold."""
    given = as_value(x)
    axes = rising_axes(name, axis, given.type)
    return cast(given, floating(given.type.dtype if dtype is None else canonical_dtype(dtype))), axes


def mean(x: ArrayLike, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Value:
    """The arithmetic mean over `axis` (None: all axes), as a float; of no elements: NaN."""
    value, axes = _real("mean", x, axis, dtype)
    return divide(fold("sum", value, axes, keepdims), float(_count(value, axes)))


def var(
    x: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
) -> Value:
    """The variance over `axis` (None: all axes), as a float: the mean of squared deviations from the mean.

    The divisor is the number of elements less `ddof`, which the array API calls `correction`.
    """
    value, axes = _real("var", x, axis, dtype)
    centred = subtract(value, spread_back(mean(value, axes), axes, value.shape))
    divisor = _count(value, axes) - (ddof if correction is None else correction)
    return divide(fold("sum", multiply(centred, centred), axes, keepdims), float(divisor if divisor > 0 else 0))


def std(
    x: ArrayLike,
    axis: Axis = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    correction: float | None = None,
    keepdims: bool = False,
) -> Value:
    """The standard deviation over `axis`: the square root of `var` of the same arguments."""
    return sqrt(var(x, axis, dtype, ddof=ddof, correction=correction, keepdims=keepdims))


def _position(op: str, x: ArrayLike, axis: int | None, keepdims: bool) -> Value:
    value = as_value(x)
    if axis is None:
        flat = value.type.with_shape((value.size,))
        line = value if value.type == flat else bind("reshape", value, type=flat)
        result, kept = bind(op, line, axis=0), (1,) * value.ndim
    else:
        along = normal_axis(op, axis, value.type)
        result, kept = bind(op, value, axis=along), _kept(value.shape, (along,))
    return bind("reshape", result, type=result.type.with_shape(kept)) if keepdims else result


def argmax(x: ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The int32 position along `axis` (None: in the flattened array) of the first greatest element or NaN.

    Raises ShapeError over no elements.
    """
    return _position("argmax", x, axis, keepdims)


def argmin(x: ArrayLike, axis: int | None = None, *, keepdims: bool = False) -> Value:
    """The int32 position along `axis` (None: in the flattened array) of the first smallest element or NaN.

    Raises ShapeError over no elements.
    """
    return _position("argmin", x, axis, keepdims)


def array_equal(x: ArrayLike, y: ArrayLike) -> Value:
    """Whether `x` and `y` have the same shape and elements, as a bool of rank 0."""
    first, second = as_value(x), as_value(y)
    if first.shape != second.shape:
        return constant(False, first.type.with_shape(()).with_dtype(bool_))
    return all(equal(first, second))
