"""Numbers of twice the digits: unevaluated sums of two floats, a rounded number and its rounding error.

Sums are Knuth's and products Dekker's (Dekker 1971): they only require that sums and products round correctly.
"""
from __future__ import annotations

import math
from typing import NamedTuple

from lavax.ir.types import float64
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, square, subtract
from lavax.numpy.elementwise.comparison import where
from lavax.numpy.elementwise.float_parts import frexp
from lavax.scipy.stirling import horner
from lavax.tracer.values.value import Value


class Double(NamedTuple):
    """high + low."""

    high: Value
    low: ArrayLike = 0.0


def sum_of(x: Value, y: ArrayLike) -> Double:
    """x + y, exactly."""
    total = add(x, y)
    of_y = subtract(total, x)
    return Double(total, add(subtract(x, subtract(total, of_y)), subtract(y, of_y)))


def product_of(x: Value, y: Value) -> Double:
    """x y, exactly, unless an error is too small for a float."""
    total = multiply(x, y)
    (a, b), (c, d) = _halves(x), _halves(y)
    rest = add(add(subtract(multiply(a, c), total), multiply(a, d)), multiply(b, c))
    return Double(total, add(rest, multiply(b, d)))


def _halves(x: Value) -> tuple[Value, Value]:
    """Two floats of half the digits each."""
    digits = 27 if x.type.dtype is float64 else 12
    large = multiply(x, 2.0**digits + 1)
    high = subtract(large, subtract(large, x))
    return high, subtract(x, high)


def plus(x: Double, y: Double) -> Double:
    high = sum_of(x.high, y.high)
    return _settled(high.high, add(high.low, add(x.low, y.low)))


def plus_float(x: Double, y: ArrayLike) -> Double:
    high = sum_of(x.high, y)
    return _settled(high.high, add(high.low, x.low))


def less(x: Double, y: Double) -> Double:
    return plus(x, Double(multiply(y.high, -1.0), multiply(y.low, -1.0)))


def times(x: Double, y: Double) -> Double:
    high = product_of(x.high, y.high)
    return _settled(high.high, add(high.low, add(multiply(x.high, y.low), multiply(x.low, y.high))))


def over(x: Double, y: Double) -> Double:
    quotient = divide(x.high, y.high)
    back = product_of(quotient, y.high)
    rest = subtract(add(subtract(subtract(x.high, back.high), back.low), x.low), multiply(quotient, y.low))
    return _settled(quotient, divide(rest, y.high))


def chosen(condition: Value, x: Double, y: Double) -> Double:
    return Double(where(condition, x.high, y.high), where(condition, x.low, y.low))


def _settled(high: Value, low: Value) -> Double:
    total = add(high, low)
    return Double(total, subtract(low, subtract(total, high)))


# 1 / (2k + 3): atanh(x) = x + x^3 (1/3 + x^2/5 + …).
_ATANH = tuple(1 / (2 * k + 3) for k in range(11))


def logarithm(x: Double) -> Double:
    """log(x) of positive normal numbers, to some thousandths of a unit in the last place of 1."""
    mantissa, exponent = frexp(x.high)
    small = mantissa < math.sqrt(0.5)
    mantissa = where(small, multiply(mantissa, 2.0), mantissa)
    whole = cast(subtract(exponent, where(small, 1, 0)), mantissa.type.dtype)
    ratio = over(Double(subtract(mantissa, 1.0)), sum_of(mantissa, 1.0))
    squared = square(ratio.high)
    series = multiply(multiply(ratio.high, squared), multiply(horner(_ATANH, squared), 2.0))
    of_mantissa = plus(Double(multiply(ratio.high, 2.0), multiply(ratio.low, 2.0)), Double(series))
    upper, lower = _LOG_2[mantissa.type.dtype is float64]
    of_exponent = sum_of(multiply(whole, upper), multiply(whole, lower))
    return plus_float(plus(of_exponent, of_mantissa), divide(x.low, x.high))


# log(2) as a number of 15 bits, or 40, whose product with an exponent is exact, and the rest.
_LOG_2 = {False: (22713 / 2**15, 1.4286068203094173e-06), True: (762123384785 / 2**40, 7.371002565167799e-13)}
