"""Powers, roots and lengths."""
from __future__ import annotations

import math
from collections.abc import Callable

from lavax.ir.types import DType, TensorType, float64, int32
from lavax.numpy._core.application import real_function, together
from lavax.numpy._core.broadcasting import common_shape, fit
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, Scalar, Splat, as_operand, as_value, cast, own
from lavax.numpy._core.promotion import averaging, floating, promote
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply
from lavax.numpy.elementwise.comparison import equal, greater, isinf, less, logical_or, where
from lavax.numpy.elementwise.extrema import maximum
from lavax.tracer import bind, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["cbrt", "float_power", "hypot", "power", "rsqrt", "sqrt"]

sqrt = real_function("sqrt", "The square root; NaN below 0")
rsqrt = real_function("rsqrt", "1 / sqrt(x)")
cbrt = real_function("cbrt", "The cube root; real for negative numbers too")

# Between these exponents repeated multiplication stays within four units in the last place.
_SMALLEST_PRODUCT, _LARGEST_PRODUCT = -2, 6
_ROOTS: dict[Scalar, Callable[[ArrayLike], Value]] = {0.5: sqrt, -0.5: rsqrt}


def power(x: ArrayLike, y: ArrayLike) -> Value:
    """x to the power y, elementwise.

    A scalar exponent known while tracing becomes multiplications if it is a small integer, and a root if it is
    a half. Integers wrap; those with a negative exponent in an array give the exact result, truncated.
    Raises DtypeError for integers to a negative scalar exponent.
    """
    base, exponent = as_operand(x), as_operand(y)
    dtype, weak = promote([base, exponent])
    dtype = int32 if dtype.kind == "bool" else dtype
    result: Value | None = None
    if isinstance(exponent, Splat) and isinstance(base, Value):
        result = _static_power(base, exponent.value, dtype)
        result = own(base) if result is base else result
    if result is None:
        type = TensorType(common_shape("power", [base, exponent]), dtype)
        result = bind("power", fit(base, type), fit(exponent, type))
    return with_weak(result, True) if weak else result


def _static_power(base: Value, exponent: Scalar, dtype: DType) -> Value | None:
    """The power by multiplications or roots, or None if neither applies."""
    if isinstance(exponent, complex):
        return None
    if dtype.is_integer and exponent < 0:
        raise dtype_error(f"power: {base.type} cannot be raised to {exponent}; make it a float first, by astype")
    if dtype.is_inexact and exponent in _ROOTS:
        return _ROOTS[exponent](cast(base, dtype))
    if not _SMALLEST_PRODUCT <= exponent <= _LARGEST_PRODUCT or exponent != int(exponent):
        return None
    factor = cast(base, dtype)
    # The reciprocal first: it is 0 or infinite only where the result is, too.
    return _repeated_product(divide(1.0, factor) if exponent < 0 else factor, int(math.fabs(exponent)))


def _repeated_product(base: Value, exponent: int) -> Value:
    """The power by squaring: at most 2 log2(exponent) multiplications."""
    if exponent == 0:
        return fit(as_operand(1), TensorType(base.shape, base.type.dtype))
    product: Value | None = None
    while True:
        if exponent & 1:
            product = base if product is None else multiply(product, base)
        exponent >>= 1
        if not exponent:
            assert product is not None
            return product
        base = multiply(base, base)


def float_power(x: ArrayLike, y: ArrayLike) -> Value:
    """x to the power y as a float, elementwise, for integers too."""
    dtype = promote([as_operand(x), as_operand(y)])[0]
    return power(x if dtype.is_inexact else cast(as_value(x), floating(dtype)), y)


# By whether numbers have 64 bits, exponents of two: below the first, numbers are multiplied by the second, above the
# third by the fourth. Between them, squares and their sums are normal, but for those that are too small to count.
_SCALES = ((-50, 76, 62, -70), (-400, 560, 500, -600))


@one_program()
def hypot(x: ArrayLike, y: ArrayLike) -> Value:
    """sqrt(x^2 + y^2), elementwise, without overflow or underflow; infinite where either is, even beside NaN.

    At the origin both derivatives are 0.
    """
    given, weak = together("hypot", x, y, real=True)
    dtype = given[0].type.dtype
    if dtype.is_complex:
        raise dtype_error(f"hypot is not defined for {given[0].type}: take the absolute values first")
    first, second = (cast(value, averaging(dtype)) for value in given)  # the powers of two of 16 bits do not suffice
    up, down = _scales(maximum(abs(first), abs(second)))
    first_part, second_part = multiply(first, up), multiply(second, up)
    square = add(multiply(first_part, first_part), multiply(second_part, second_part))
    # The root of 0 has no derivative.
    is_zero = equal(square, 0.0)
    length = where(is_zero, 0.0, multiply(sqrt(where(is_zero, 1.0, square)), down))
    infinite = logical_or(isinf(first), isinf(second))
    return with_weak(cast(where(infinite, float("inf"), length), dtype), weak)


def _scales(value: Value) -> tuple[Value, Value]:
    """A power of two that takes the positive `value` to where squares are normal, and its inverse.

    Both are constants for derivatives, because results are scaled and scaled back.
    """
    small, raised, large, lowered = _SCALES[value.type.dtype == float64]
    is_small, is_large = less(value, 2.0**small), greater(value, 2.0**large)

    def chosen(of_small: int, of_large: int) -> Value:
        """Numbers of the value's own dtype: Python's are float32 by themselves."""
        first, second, third = (fit(as_operand(2.0**exponent), value.type) for exponent in (of_small, of_large, 0))
        return where(is_small, first, where(is_large, second, third))

    return chosen(raised, lowered), chosen(-raised, -lowered)
