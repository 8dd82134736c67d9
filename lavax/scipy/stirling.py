"""Stirling's formula: parts of gamma functions that are accurate for large arguments."""
from __future__ import annotations

from lavax.ir.types import float64
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, square, subtract
from lavax.numpy.elementwise.comparison import greater, less, logical_and, where
from lavax.numpy.elementwise.exponential import log
from lavax.tracer.values.value import Value

# B(2k) / (2k (2k - 1)), k from 1 on: Abramowitz and Stegun 6.1.40.
_TERMS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
STIRLING_FROM = 10.0  # from here on the terms are exact in float64


def horner(coefficients: tuple[float, ...], x: Value) -> Value:
    """The polynomial with these coefficients, lowest power first."""
    total: ArrayLike = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = add(multiply(total, x), coefficient)
    return multiply(total, 1.0)


def stirling_rest(x: Value) -> Value:
    """lgamma(x) less (x - 1/2) log x - x + log(2 pi) / 2, from 10 upwards."""
    inverse = divide(1.0, x)
    return multiply(inverse, horner(_TERMS, square(inverse)))


def log_less(ratio: Value, excess: Value) -> Value:
    """log(ratio) - excess, where excess = ratio - 1 is given too, without the rounding of the other."""
    near = logical_and(greater(excess, -0.66), less(excess, 2.0))
    small = where(near, excess, 0.1)
    # With r = x / (2 + x), log(1 + x) = 2 (r + r^3/3 + r^5/5 + …), and x = 2 r + r x. |r| is 1/2 at most.
    r = divide(small, add(small, 2.0))
    r_squared = square(r)
    odd = horner(tuple(1 / (2 * k + 3) for k in range(24 if excess.type.dtype == float64 else 11)), r_squared)
    series = subtract(multiply(multiply(r, r_squared), multiply(odd, 2.0)), multiply(r, small))
    return where(near, series, subtract(log(where(near, 1.0, ratio)), excess))
