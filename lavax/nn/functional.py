"""Softmax and its relatives, log-sum-exp, standardization and one-hot vectors."""
from __future__ import annotations

import math
from typing import Any, Literal, overload

from lavax.ir.default_dtypes import default_float
from lavax.ir.types import TensorType, complex_of
from lavax.numpy._core.application import apply, as_floating
from lavax.numpy._core.axes import Axis, normal_axis, rising_axes
from lavax.numpy._core.broadcasting import broadcast_arrays, spread_back
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy._core.promotion import averaging
from lavax.numpy.arrays.complex_parts import imag, iscomplexobj, real
from lavax.numpy.arrays.creation import iota
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import equal, greater_equal, isfinite, less
from lavax.numpy.elementwise.comparison import where as choice
from lavax.numpy.elementwise.exponential import exp, expm1, log, log1p
from lavax.numpy.elementwise.extrema import maximum
from lavax.numpy.elementwise.powers import sqrt
from lavax.numpy.indexing.advanced_indexing import as_wide_positions
from lavax.numpy.reductions.reductions import among, fold, var
from lavax.numpy.reductions.reductions import mean as average
from lavax.tracer import bind, constant
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = [
    "log1mexp",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "one_hot",
    "softmax",
    "softmin",
    "standardize",
]


def _widened(value: Value) -> Value:
    """The value in the dtype that its exponentials are added in."""
    return cast(value, averaging(value.type.dtype))


def _peak(value: Value, axes: tuple[int, ...]) -> Value:
    """The greatest elements over `axes`, as constants for gradients: the shift by them cancels. Of real parts only."""
    return bind("stop_gradient", fold("max", real(value), axes, keepdims=False))


def _chosen(name: str, x: ArrayLike, where: ArrayLike | None) -> Value:
    """`x` as floats, -inf where `where` is false."""
    return among(name, as_floating(x), where, -math.inf)


@one_program("axis")
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Value:
    """exp(x) over its sum along `axis` (None: all axes): positive, of sum 1. NaN if all of a row is -inf.

    Over the elements where `where`, which broadcasts to `x`, is true; 0 for the others. 16-bit floats are computed in
    float32, and the result is rounded once.
    """
    if where is not None:
        return choice(where, softmax(_chosen("softmax", x, where), axis), 0.0)
    value = as_floating(x)
    axes = rising_axes("softmax", axis, value.type)
    if not value.size:
        return own(value)
    wide = _widened(value)
    grown = exp(subtract(wide, spread_back(_peak(wide, axes), axes, value.shape)))
    total = fold("sum", grown, axes, keepdims=False)
    return cast(divide(grown, spread_back(total, axes, value.shape)), value.type.dtype)


@one_program("axis")
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Value:
    """The logarithm of `softmax(x, axis, where)`, exact for small probabilities too: -inf where `where` is false.

    16-bit floats are computed in float32, and the result is rounded once.
    """
    if where is not None:
        return choice(where, log_softmax(_chosen("log_softmax", x, where), axis), -math.inf)
    value = as_floating(x)
    axes = rising_axes("log_softmax", axis, value.type)
    if not value.size:
        return own(value)
    wide = _widened(value)
    shifted = subtract(wide, spread_back(_peak(wide, axes), axes, value.shape))
    total = log(fold("sum", exp(shifted), axes, keepdims=False))
    return cast(subtract(shifted, spread_back(total, axes, value.shape)), value.type.dtype)


@one_program("axis")
def softmin(x: ArrayLike, axis: Axis = -1) -> Value:
    """`softmax` of -x."""
    return softmax(negative(as_floating(x)), axis)


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Value: ...


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: bool,
    where: ArrayLike | None = None,
) -> Value | tuple[Value, Value]: ...


def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Value | tuple[Value, Value]:
    """log(sum(b * exp(a))) over `axis` (None: all axes), without overflow; `b` None is 1.

    Over the elements where `where`, which broadcasts to `a`, is true. The result is -inf if all elements are -inf or
    there are none. 16-bit floats are computed in float32, and the result is rounded once. If the sum is negative the
    result is NaN; with `return_sign` it is the logarithm of the sum's absolute value, followed by the sum's sign (-1, 0
    or 1; for complex `a` or `b` a number of length 1).
    """
    if not return_sign:
        return _logarithm_of_sum(a, axis, b, keepdims, where)
    if iscomplexobj(a) or (b is not None and iscomplexobj(b)):
        found = _logarithm_of_sum(a, axis, b, keepdims, where)
        return real(found), exp(multiply(1j, imag(found)))
    factor = as_floating(1.0 if b is None else b)
    gain = _logarithm_of_sum(a, axis, maximum(factor, 0.0), keepdims, where)
    loss = _logarithm_of_sum(a, axis, maximum(negative(factor), 0.0), keepdims, where)
    return _difference_of_exponentials(gain, loss)


def _difference_of_exponentials(gain: Value, loss: Value) -> tuple[Value, Value]:
    """log|exp(gain) - exp(loss)|, and the difference's sign."""
    above = greater_equal(gain, loss)
    larger, smaller = choice(above, gain, loss), choice(above, loss, gain)
    is_empty = equal(larger, -math.inf)
    gap = choice(is_empty, 0.0, subtract(smaller, larger))
    result = choice(is_empty, larger, add(larger, log(negative(expm1(gap)))))
    signs = choice(equal(gain, loss), 0.0, choice(above, 1.0, choice(less(gain, loss), -1.0, result)))
    return choice(equal(gain, loss), -math.inf, result), signs


@one_program("axis", "keepdims")
def _logarithm_of_sum(
    a: ArrayLike, axis: Axis, b: ArrayLike | None, keepdims: bool, where: ArrayLike | None
) -> Value:
    value, factor = _chosen("logsumexp", a, where), None if b is None else as_floating(b)
    if factor is not None:
        value, factor = broadcast_arrays(value, factor)
        if factor.type.dtype.is_complex and not value.type.dtype.is_complex:
            value = cast(value, complex_of(value.type.dtype))
        factor = _widened(factor)
    axes = rising_axes("logsumexp", axis, value.type)
    kept = tuple(1 if d in axes else extent for d, extent in enumerate(value.shape))
    folded = tuple(extent for d, extent in enumerate(value.shape) if d not in axes)
    if math.prod(value.shape[d] for d in axes) == 0:
        return constant(-math.inf, value.type.with_shape(kept if keepdims else folded))
    wide = _widened(value)
    peak = _peak(real(wide), axes)
    peak = choice(isfinite(peak), peak, 0.0)
    grown = exp(subtract(wide, spread_back(peak, axes, value.shape)))
    if factor is not None:
        grown = multiply(grown, factor)
    result = cast(add(log(fold("sum", grown, axes, keepdims=False)), peak), value.type.dtype)
    return reshaped(result, kept) if keepdims else result


@one_program("axis", "keepdims")
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Value:
    """log(mean(exp(x))) over `axis` (None: all axes), without overflow; over the elements where `where` is true."""
    value = as_floating(x)
    total = logsumexp(value, axis, keepdims=keepdims, where=where)
    return subtract(total, logsumexp(constant(0.0, value.type), axis, keepdims=keepdims, where=where))


def log1mexp(x: ArrayLike) -> Value:
    """log(1 - exp(-x)) of x > 0, accurate near 0 and far from it. Mächler, "Accurately computing" (2012), eq. 7."""
    value = as_floating(x)
    is_small = less(value, math.log(2))
    near = log(negative(expm1(negative(choice(is_small, value, 1.0)))))
    return choice(is_small, near, log1p(negative(exp(negative(choice(is_small, 1.0, value))))))


@one_program("axis")
def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: float = 1e-5,
    where: ArrayLike | None = None,
) -> Value:
    """(x - mean) / sqrt(variance + epsilon) along `axis` (None: all axes), in the dtype of `x`, or as float32.

    `mean` and `variance` broadcast to `x`; by default they are those of `x` itself, over the elements where `where`,
    which broadcasts to `x`, is true. 16-bit floats are computed in float32.
    """
    value = as_floating(x)
    wide = cast(value, averaging(value.type.dtype))
    middle = average(wide, axis, keepdims=True, where=where) if mean is None else as_value(mean)
    spread = var(wide, axis, keepdims=True, where=where) if variance is None else as_value(variance)
    return cast(divide(subtract(wide, middle), sqrt(add(spread, epsilon))), value.type.dtype)


@one_program("num_classes", "dtype", "axis")
def one_hot(x: ArrayLike, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Value:
    """1 at the position that each number of `x` names along the new axis `axis`, else 0; floats by default.

    A number outside 0 … num_classes - 1, or with a fraction, gives zeros. Raises DtypeError for truth values and
    complex numbers.
    """
    given = as_value(x)
    if not (given.type.dtype.is_integer or given.type.dtype.is_float):
        raise dtype_error(f"one_hot: the classes must be numbers, got {given.type}")
    value = as_wide_positions(cast(given, averaging(given.type.dtype)))  # in which all classes have numbers
    num_classes = whole_number("num_classes", num_classes)
    if num_classes < 0:
        raise shape_error(f"one_hot: {num_classes} is not a number of classes")
    rank = value.ndim + 1
    place = normal_axis("one_hot", axis, value.type, rank)
    kind = TensorType((*value.shape[:place], num_classes, *value.shape[place:]), value.type.dtype)
    others = tuple(d for d in range(rank) if d != place)
    chosen = apply("equal", bind("broadcast", value, type=kind, axes=others), iota(kind, place))
    return cast(chosen, default_float() if dtype is None else canonical_dtype(dtype))
