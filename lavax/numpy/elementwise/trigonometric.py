"""Angles: trigonometric functions and their inverses."""
from __future__ import annotations

import math

from lavax.numpy._core.application import apply, as_floating, real_function, together
from lavax.numpy._core.operands import ArrayLike, as_operand
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import equal, less, where
from lavax.tracer import with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["acos", "asin", "atan", "atan2", "cos", "degrees", "radians", "sin", "sinc", "tan"]

sin = real_function("sin", "The sine of `x` in radians")
cos = real_function("cos", "The cosine of `x` in radians")
tan = real_function("tan", "The tangent of `x` in radians")
asin = real_function("asin", "The angle in [-π/2, π/2] whose sine is `x`; NaN outside [-1, 1]")
acos = real_function("acos", "The angle in [0, π] whose cosine is `x`; NaN outside [-1, 1]")
atan = real_function("atan", "The angle in [-π/2, π/2] whose tangent is `x`")

# sin(πx)/(πx) for |x| <= 1/4: the Taylor series in x², so that derivatives of every order are as exact as the value.
_NEAR_ZERO = 0.25
_SERIES = [(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(8)]


def atan2(x: ArrayLike, y: ArrayLike) -> Value:
    """The angle in [-π, π] of the point with ordinate `x` and abscissa `y`, elementwise.

    Signed zeros and infinities are as in NumPy. At the origin both derivatives are 0. Of complex numbers it is the
    angle w with sin w = x / r and cos w = y / r for r² = x² + y².
    """
    if as_operand(x).type.dtype.is_complex or as_operand(y).type.dtype.is_complex:
        return _angle_of_complex(x, y)
    return apply("atan2", x, y, real=True)


@one_program()
def _angle_of_complex(x: ArrayLike, y: ArrayLike) -> Value:
    """-i·log((y + ix) / √(x² + y²))."""
    (ordinate, abscissa), weak = together("atan2", x, y)
    radius = apply("sqrt", add(multiply(ordinate, ordinate), multiply(abscissa, abscissa)))
    direction = divide(add(abscissa, multiply(ordinate, 1j)), radius)
    return with_weak(multiply(apply("log", direction), -1j), weak)


def radians(x: ArrayLike) -> Value:
    """Degrees to radians, elementwise."""
    return multiply(as_floating(x), math.pi / 180)


def degrees(x: ArrayLike) -> Value:
    """Radians to degrees, elementwise."""
    return multiply(as_floating(x), 180 / math.pi)


@one_program()
def sinc(x: ArrayLike) -> Value:
    """sin(πx) / (πx), elementwise; 1 at 0, and exact at its zeros: no digits of x are lost in πx."""
    value = as_floating(x)
    if value.type.dtype.is_complex:
        turned = multiply(value, math.pi)
        is_zero = equal(value, 0)
        return with_weak(where(is_zero, 1, divide(sin(turned), where(is_zero, 1, turned))), value.weak)
    small = less(abs(value), _NEAR_ZERO)
    inside = where(small, value, 0.0)
    square = multiply(inside, inside)
    series: Value | float = _SERIES[-1]
    for coefficient in reversed(_SERIES[:-1]):
        series = add(multiply(square, series), coefficient)
    # sin(πx) = ±sin(π(x - n)) with the nearest whole number n, and + where n is even.
    outside = where(small, 1.0, value)
    nearest = apply("round", outside)
    sine = sin(multiply(subtract(outside, nearest), math.pi))
    is_even = equal(apply("remainder", nearest, 2.0), 0.0)
    far = divide(where(is_even, sine, negative(sine)), multiply(outside, math.pi))
    return with_weak(where(small, series, far), value.weak)
