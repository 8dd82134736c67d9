"""Polynomials as one-axis arrays of their coefficients, highest power first."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lavax.ir.types import TensorType, complex_of, float32
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy._core.promotion import averaging
from lavax.numpy.analysis.convolution import convolve
from lavax.numpy.arrays.creation import eye, iota, ones, zeros
from lavax.numpy.arrays.joining import concatenate, stack
from lavax.numpy.arrays.manipulation import ravel, transpose
from lavax.numpy.arrays.matrices import vander
from lavax.numpy.editing.editing import trim_zeros
from lavax.numpy.editing.padding import pad
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, negative, square, subtract
from lavax.numpy.elementwise.powers import sqrt
from lavax.numpy.products.linear_algebra import matmul, outer, trace
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer.values.value import Value

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots",
]  # fmt: skip


def _coefficients(name: str, p: ArrayLike) -> Value:
    value = as_value(p)
    value = value if value.ndim else reshaped(value, (1,))
    if value.ndim != 1:
        raise shape_error(f"{name}: the coefficients must have one axis, got {value.type}")
    return value


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Value:
    """The polynomial with coefficients `p` along axis 0, highest power first, at `x`: Horner's scheme.

    `unroll` changes nothing: all steps are written out. Raises ShapeError for coefficients that do not have one axis.
    """
    coefficients = as_value(p)
    if coefficients.ndim != 1:
        raise shape_error(f"polyval: the coefficients must have one axis, got {coefficients.type}")
    factors, points = common_dtype([coefficients, as_value(x)])
    held = points.type.dtype
    factors, points = (cast(value, averaging(held)) for value in (factors, points))
    result = multiply(points, 0)
    for row in range(coefficients.shape[0]):
        result = add(multiply(result, points), factors[row])
    return cast(result, held)


def _in_common_length(name: str, first: ArrayLike, second: ArrayLike) -> tuple[Value, Value]:
    left, right = (_coefficients(name, p) for p in (first, second))
    count = max(left.size, right.size)
    longer = [pad(value, ((count - value.size, 0),)) for value in common_dtype([left, right])]
    return longer[0], longer[1]


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Value:
    """The sum of two polynomials, with as many coefficients as the longer one."""
    return add(*_in_common_length("polyadd", a1, a2))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Value:
    """The difference of two polynomials, with as many coefficients as the longer one."""
    return subtract(*_in_common_length("polysub", a1, a2))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Value:
    """The product of two polynomials.

    With `trim_leading_zeros` leading zeros of the factors are dropped first, as in NumPy: outside `compile` only.
    """
    first, second = (_coefficients("polymul", p) for p in (a1, a2))
    if trim_leading_zeros:
        first, second = (_without_leading_zeros(p) for p in (first, second))
    return convolve(first, second)


def _without_leading_zeros(p: Value) -> Value:
    kept = trim_zeros(p, "f")
    return kept if kept.size else p[:1]


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Value, Value]:
    """The quotient and the remainder of two polynomials, as floats: u = quotient * v + remainder.

    The first coefficient of `v` must not be 0. The remainder has as many coefficients as `u`, the first of them 0;
    with `trim_leading_zeros` they are dropped: outside `compile` only.
    """
    dividend, divisor = map(as_floating, common_dtype([_coefficients("polydiv", p) for p in (u, v)]))
    steps = dividend.size - divisor.size + 1
    if steps < 1:
        return zeros(1, dividend.type.dtype), dividend
    rest, quotient = dividend, []
    for _ in range(steps):  # each step removes the first coefficient
        factor = divide(rest[0], divisor[0])
        quotient.append(factor)
        head = subtract(rest[1 : divisor.size], multiply(factor, divisor[1:]))
        rest = concatenate([head, rest[divisor.size :]])
    remainder = pad(rest, ((dividend.size - rest.size, 0),))
    return stack(quotient), _without_leading_zeros(remainder) if trim_leading_zeros else remainder


def _times(name: str, m: int) -> int:
    times = whole_number("m", m)
    if times < 0:
        raise ValueError(f"{name}: {name} is taken m times, got m={m}")
    return times


def _falling(first: int, last: int) -> Value:
    """first, first - 1, … down to last, as a column of one axis."""
    return subtract(first, iota(TensorType((first - last + 1,), float32), 0))


def polyder(p: ArrayLike, m: int = 1) -> Value:
    """The `m`-th derivative of a polynomial, as floats; that of a constant has no coefficients."""
    value = as_floating(_coefficients("polyder", p))
    for _ in range(_times("polyder", m)):
        degree = value.size - 1
        if degree < 1:
            return value[:0]
        value = multiply(value[:-1], cast(_falling(degree, 1), value.type.dtype))
    return own(value)


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Value:
    """The `m`-th integral of a polynomial, as floats; `k` are the constants of integration, one or `m`, 0 if None.

    Raises ShapeError for another number of constants.
    """
    value, times = as_floating(_coefficients("polyint", p)), _times("polyint", m)
    constants = zeros(1) if k is None else ravel(k)
    if constants.size not in (1, times):
        raise shape_error(f"polyint: {times} integrations take one constant or {times}, got {constants.size}")
    for number in range(times):
        last = constants[number % constants.size]
        if value.size:
            value = divide(value, cast(_falling(value.size, 1), value.type.dtype))
        value = concatenate([value, cast(reshaped(last, (1,)), value.type.dtype)])
    return own(value)


def poly(seq_of_zeros: ArrayLike) -> Value:
    """The polynomial with these zeros and a first coefficient of 1; of a square matrix: its characteristic polynomial.

    That is computed without the eigenvalues (Faddeev and Leverrier), by one matrix product per row.
    Raises ShapeError for other ranks.
    """
    zeros_of = as_floating(seq_of_zeros)
    if zeros_of.ndim == 2 and zeros_of.shape[0] == zeros_of.shape[1]:
        return _characteristic(zeros_of)
    if zeros_of.ndim > 1:
        raise shape_error(f"poly: zeros along one axis or a square matrix, got {zeros_of.type}")
    line, lower = ravel(zeros_of), zeros(0, zeros_of.type.dtype)
    first = ones(1, zeros_of.type.dtype)
    for number in range(line.size):  # the first coefficient stays 1 whatever the zeros are
        above = concatenate([first, lower])
        lower = subtract(concatenate([lower, zeros(1, zeros_of.type.dtype)]), multiply(above, line[number]))
    return concatenate([first, lower]) if line.size else reshaped(first, ())


def _characteristic(matrix: Value) -> Value:
    identity = eye(matrix.shape[0], dtype=matrix.type.dtype)
    coefficients = [ones((), matrix.type.dtype)]
    product = multiply(matrix, 0.0)
    for number in range(1, matrix.shape[0] + 1):
        product = matmul(matrix, add(product, multiply(identity, coefficients[-1])))
        coefficients.append(negative(divide(trace(product), float(number))))
    return stack(coefficients)


class PolynomialFit(NamedTuple):
    """The result of `polyfit` with `full`."""

    coefficients: Value
    residuals: Value
    rank: Value
    singular_values: Value
    rcond: float


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of degree `deg` that fits `y` [n] or [n, k] at `x` [n] by least squares.

    `w` weights the distances; `rcond`: singular values below this share of the largest count as 0. With `full` also
    the sums of squares, the rank, the singular values and `rcond`; with `cov` also the covariance of the
    coefficients, scaled by the distances unless it is "unscaled". 16-bit floats are computed in float32. Raises
    ShapeError if the shapes do not fit.
    """
    from lavax.linalg.inverses import lstsq, pinv  # late: it uses lavax.numpy

    places, values = _fitted(x), _fitted(y)
    degree = whole_number("deg", deg)
    if degree < 0 or places.ndim != 1 or not places.size:
        raise shape_error(f"polyfit: needs a degree from 0 and points along one axis, got {deg} and {places.type}")
    if values.ndim not in (1, 2) or values.shape[0] != places.size:
        raise shape_error(f"polyfit: {values.type} are not the values at {places.type}")
    limit = places.size * float(np.finfo(places.type.dtype.part.numpy).eps) if rcond is None else rcond
    matrix = vander(places, degree + 1)
    if w is not None:
        matrix, values = _weighed(matrix, values, _fitted(w))
    scale = sqrt(sum_over(square(matrix), 0))
    found, residuals, rank, singular = lstsq(divide(matrix, scale), values, limit)
    coefficients = divide(found, scale if values.ndim == 1 else reshaped(scale, (degree + 1, 1)))
    if full:
        return PolynomialFit(coefficients, residuals, rank, singular, limit)
    if not cov:
        return coefficients
    scaled = divide(matrix, scale)
    inverse = divide(pinv(matmul(transpose(scaled), scaled)), outer(scale, scale))
    if cov == "unscaled":
        return coefficients, inverse
    if places.size <= degree + 1:
        raise shape_error(f"polyfit: the covariance needs more than {degree + 1} points, got {places.size}")
    distances = subtract(values, matmul(matrix, coefficients))
    spread = divide(sum_over(square(distances), 0), float(places.size - degree - 1))
    if values.ndim == 1:
        return coefficients, multiply(inverse, spread)
    return coefficients, multiply(reshaped(inverse, (*inverse.shape, 1)), spread)


def _fitted(x: ArrayLike) -> Value:
    """Floats of a dtype that linear algebra takes."""
    value = as_floating(x)
    return cast(value, averaging(value.type.dtype))


def _weighed(matrix: Value, values: Value, weights: Value) -> tuple[Value, Value]:
    if weights.shape != values.shape[:1]:
        raise shape_error(f"polyfit: weights {weights.type} for values {values.type}")
    column = reshaped(weights, (weights.size, 1))
    return multiply(matrix, column), multiply(values, weights if values.ndim == 1 else column)


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Value:
    """The complex roots [n] of the polynomial of degree n with coefficients `p`, highest power first.

    They are the eigenvalues of its companion matrix, which the host computes, as in `lavax.linalg.eigvals`. Leading
    zeros lower the degree: their number is data, so inside `compile` give `strip_zeros=False`, with which a leading
    zero makes all roots NaN. Raises ShapeError for coefficients that do not have one axis.
    """
    from lavax.linalg.eigenvalues import eigvals  # late: it uses lavax.numpy

    given = _coefficients("roots", p)
    coefficients = as_floating(trim_zeros(given, "f") if strip_zeros else given)
    if coefficients.size < 2:
        return zeros(0, complex_of(coefficients.type.dtype.part))
    size = coefficients.size - 1
    first_row = reshaped(negative(divide(coefficients[1:], coefficients[0])), (1, size))
    shifted = eye(size - 1, size, dtype=coefficients.dtype)
    return eigvals(concatenate([first_row, shifted]))
