"""Exponential integrals: series and continued fractions.

In float32 and below, values are operations of their own (shaders_glsl); in float64 they are loops, which run until
every element has converged (lavax/scipy/convergence.py). Derivatives by the limit are closed forms, of every order.
"""
from __future__ import annotations

import math

import numpy as np

from lavax.ir.types import float64
from lavax.numpy._core.application import as_floating, real_function, together
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.creation import ones_like, zeros_like
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    isnan,
    less,
    less_equal,
    logical_and,
    where,
)
from lavax.numpy.elementwise.exponential import exp, log
from lavax.numpy.elementwise.rounding import floor
from lavax.scipy.convergence import summed
from lavax.scipy.incomplete_gamma import gamma_fraction
from lavax.tracer import bind, with_weak
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

__all__ = ["exp1", "expi", "expn"]

_digamma = real_function("digamma", "The derivative of `lgamma`")
_LARGE_EXPI = 40.0  # from here on the asymptotic series of expi is exact in float64


def _exponential_integral(n: Value, x: Value) -> Value:
    near = less_equal(x, 1.0)
    order = where(greater(n, 0), n, 1.0)
    small = where(logical_and(near, greater(x, 0)), x, 0.5)
    large = where(near, 30.0, where(equal(x, math.inf), 30.0, x))
    far = multiply(gamma_fraction(subtract(1.0, order), large), exp(negative(x)))
    found = where(near, _integral_near_zero(order, small), where(equal(x, math.inf), 0.0, far))
    at_zero = where(greater(n, 1), divide(1.0, where(greater(n, 1), subtract(n, 1.0), 1.0)), math.inf)
    of_zero = divide(exp(negative(x)), x)
    valid = logical_and(greater_equal(x, 0), logical_and(greater_equal(n, 0), equal(floor(n), n)))
    result = where(equal(n, 0), of_zero, where(equal(x, 0), at_zero, found))
    return where(valid, result, math.nan)


def _integral_near_zero(n: Value, x: Value) -> Value:
    """E_n for 0 < x <= 1 by its power series, in which one term has a logarithm; 25 terms are exact in float64."""
    total, product = zeros_like(x), ones_like(x)
    singular = subtract(_digamma(n), log(x))
    for number in range(25):
        distance = subtract(float(number + 1), n)
        is_singular = equal(distance, 0)
        plain = divide(-1.0, where(is_singular, 1.0, distance))
        total = add(total, multiply(product, where(is_singular, singular, plain)))
        product = multiply(product, multiply(x, -1 / (number + 1)))
    return total


@custom_jvp
def _expn(n: Value, x: Value) -> Value:
    return _exponential_integral(n, x) if x.type.dtype == float64 else bind("expn", n, x)


def _expn_slope(tangent: Value, _: Value, n: Value, x: Value) -> Value:
    of_zero = negative(divide(multiply(exp(negative(x)), add(1.0, divide(1.0, x))), x))
    lower = _expn(where(greater(n, 0), subtract(n, 1.0), 0.0), x)
    return multiply(tangent, where(equal(n, 0), of_zero, negative(lower)))


_expn.defjvps(None, _expn_slope)


def expn(n: ArrayLike, x: ArrayLike) -> Value:
    """The exponential integral E_n(x), the integral of e^(-x t) / t^n over t from 1 on, for whole n >= 0.

    NaN for n < 0 or not whole, and for x < 0. No gradient passes to `n`.
    """
    (order, value), weak = together("expn", n, x, real=True)
    return with_weak(_expn(order, value), weak)


def exp1(x: ArrayLike) -> Value:
    """The exponential integral E_1(x), elementwise: infinite at 0, NaN below."""
    value = as_floating(x)
    return with_weak(_expn(ones_like(value), value), value.weak)


def _positive_expi(x: Value) -> Value:
    """A power series, and from 40 on the asymptotic series, which ends at its least term."""
    large = greater(x, _LARGE_EXPI)
    growing = where(large, 0.0, x)
    # x^k / (k k!): the ratio of neighbours is x k / (k + 1)^2.
    series = summed(growing, lambda k: divide(multiply(growing, k), multiply(add(k, 1.0), add(k, 1.0))))
    shrinking = where(large, divide(1.0, where(large, x, 1.0)), 0.0)
    asymptotic = summed(ones_like(x), lambda k: multiply(shrinking, k))
    plain = add(add(log(where(large, 1.0, x)), series), float(np.euler_gamma))
    return where(large, multiply(exp(x), multiply(shrinking, asymptotic)), plain)


@custom_jvp
def _expi(x: Value) -> Value:
    if x.type.dtype != float64:
        return bind("expi", x)
    above = greater(x, 0)
    finite = less(x, math.inf)
    inside = _positive_expi(where(logical_and(above, finite), x, 1.0))
    below = negative(_exponential_integral(ones_like(x), where(less(x, 0), negative(x), 1.0)))
    result = where(above, where(finite, inside, math.inf), where(equal(x, 0), -math.inf, below))
    return where(isnan(x), x, result)


_expi.defjvps(lambda tangent, _, x: multiply(tangent, divide(exp(x), x)))


def expi(x: ArrayLike) -> Value:
    """The exponential integral Ei(x), the principal value of the integral of e^t / t up to `x`: -inf at 0."""
    value = as_floating(x)
    return with_weak(_expi(value), value.weak)
