"""Incomplete gamma functions: series and continued fractions.

In float32 and below, values are operations of their own (shaders_glsl). In float64, and for derivatives by parameters,
they are loops, which run until every element has converged (lavax/scipy/convergence.py). Derivatives by the upper limit
are closed forms, of every order; those by parameters follow the steps of the loops in forward mode, and have no second
derivative in reverse mode.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from lavax.ir.types import float64
from lavax.numpy._core.application import real_function, together
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.creation import ones_like
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    logical_and,
    logical_or,
    where,
)
from lavax.numpy.elementwise.exponential import exp, log
from lavax.numpy.elementwise.extrema import maximum
from lavax.numpy.elementwise.powers import sqrt
from lavax.numpy.reductions.reductions import any as any_of
from lavax.scipy.convergence import MAX_STEPS, not_zero, number_like, slope, summed
from lavax.scipy.stirling import STIRLING_FROM, log_less, stirling_rest
from lavax.tracer import bind, with_weak
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

__all__ = ["gammainc", "gammaincc"]

_lgamma = real_function("lgamma", "The logarithm of the absolute value of the gamma function")
_digamma = real_function("digamma", "The derivative of `lgamma`")


def gamma_fraction(a: Value, x: Value, least: int = 0) -> Value:
    """Gamma(a, x) e^x x^-a for x >= 1 by Legendre's continued fraction, in a minimum number of Lentz's steps.

    For whole `a` the fraction ends, but its derivative by `a` does not, and needs the further steps.
    """
    tiny = float(np.finfo(x.type.dtype.numpy).tiny) * 1e4
    eps = float(np.finfo(x.type.dtype.numpy).eps)

    def is_open(state: Any) -> Value:
        return logical_and(any_of(state[5]), less(state[4], float(MAX_STEPS)))

    def step(state: Any) -> Any:
        b, c, d, h, number, is_coarse = state
        numerator = multiply(negative(number), subtract(number, a))
        b = add(b, 2.0)
        d = divide(1.0, not_zero(add(multiply(numerator, d), b), tiny))
        c = not_zero(add(b, divide(numerator, c)), tiny)
        change = where(is_coarse, multiply(c, d), 1.0)  # a converged element would accumulate rounding errors
        goes_on = logical_or(greater(abs(subtract(change, 1.0)), eps), less(number, float(least)))
        return b, c, d, multiply(h, change), add(number, 1.0), goes_on

    b = not_zero(subtract(add(x, 1.0), a), tiny)
    start = divide(1.0, b)
    state = (b, multiply(ones_like(b), 1 / tiny), start, start, number_like(x, 1.0), equal(x, x))
    found: Value = while_loop(is_open, step, state)[3]
    return found


def _gamma_weight(a: Value, x: Value) -> Value:
    """x^a e^-x / gamma(a + 1) for positive `a` and `x`, without the loss of digits for large ones."""
    large = greater_equal(a, STIRLING_FROM)
    many = where(large, a, STIRLING_FROM)
    powers = multiply(many, log_less(divide(x, many), divide(subtract(x, many), many)))
    near = exp(subtract(powers, stirling_rest(many)))
    few = where(large, 1.0, a)
    plain = exp(subtract(subtract(multiply(few, log(x)), x), _lgamma(add(few, 1.0))))
    return where(large, divide(near, sqrt(multiply(many, 2 * math.pi))), plain)


def _lower_part(a: Value, x: Value, least: int) -> tuple[Value, Value, Value]:
    """The smaller of both integrals, whether it is the lower one, and whether the arguments are usable."""
    usable = logical_and(logical_and(greater(a, 0), greater(x, 0)), logical_and(less(a, math.inf), less(x, math.inf)))
    parameter, limit = where(usable, a, 1.0), where(usable, x, 1.0)
    by_series = less(limit, maximum(parameter, 1.0))
    weight = _gamma_weight(parameter, limit)
    inner = where(by_series, limit, 0.0)
    series = summed(ones_like(inner), lambda k: divide(inner, add(parameter, k)))
    outer = where(by_series, add(maximum(parameter, 1.0), 30.0), limit)  # an argument for which the loop ends soon
    fraction = gamma_fraction(parameter, outer, least)
    return multiply(weight, where(by_series, series, multiply(parameter, fraction))), by_series, usable


def _at_ends(a: Value, x: Value, usable: Value, inside: Value, at_zero: float) -> Value:
    """The integral at 0 and infinity: 0 or 1, and NaN where it does not exist."""
    empty = logical_or(logical_and(equal(x, 0), greater(a, 0)), logical_and(equal(a, math.inf), less(x, math.inf)))
    full = logical_or(logical_and(equal(a, 0), greater(x, 0)), logical_and(equal(x, math.inf), less(a, math.inf)))
    edge = where(empty, at_zero, where(logical_and(full, greater_equal(a, 0)), 1.0 - at_zero, math.nan))
    return where(usable, inside, edge)


def _lower(a: Value, x: Value, least: int = 0) -> Value:
    part, is_lower, usable = _lower_part(a, x, least)
    return _at_ends(a, x, usable, where(is_lower, part, subtract(1.0, part)), 0.0)


def _upper(a: Value, x: Value, least: int = 0) -> Value:
    part, is_lower, usable = _lower_part(a, x, least)
    return _at_ends(a, x, usable, where(is_lower, subtract(1.0, part), part), 1.0)


def _gamma_density(a: Value, x: Value) -> Value:
    """x^(a - 1) e^-x / gamma(a), the derivative by `x` of the lower integral."""
    inside = logical_and(logical_and(greater(x, 0), greater(a, 0)), less(x, math.inf))
    parameter, limit = where(inside, a, 1.0), where(inside, x, 1.0)
    at_zero = where(less(a, 1), math.inf, where(equal(a, 1), 1.0, 0.0))
    exists = logical_and(greater_equal(x, 0), greater_equal(a, 0))
    at_ends = where(exists, where(equal(x, 0), at_zero, 0.0), math.nan)
    return where(inside, divide(multiply(_gamma_weight(parameter, limit), parameter), limit), at_ends)


@custom_jvp
def _gammainc(a: Value, x: Value) -> Value:
    return _lower(a, x) if a.type.dtype == float64 else bind("gammainc", a, x)


@custom_jvp
def _gammaincc(a: Value, x: Value) -> Value:
    return _upper(a, x) if a.type.dtype == float64 else bind("gammaincc", a, x)


_gammainc.defjvps(
    lambda tangent, _, a, x: multiply(tangent, slope(_lower, 0, a, x)),
    lambda tangent, _, a, x: multiply(tangent, _gamma_density(a, x)),
)
_gammaincc.defjvps(
    lambda tangent, _, a, x: multiply(tangent, slope(_upper, 0, a, x)),
    lambda tangent, _, a, x: negative(multiply(tangent, _gamma_density(a, x))),
)


def gamma_quantile_slope(a: Value, x: Value) -> Value:
    """The derivative by `a` of the quantile `x` > 0 of the gamma distribution of parameter `a`, at fixed probability.

    Relative to `x`. Near 0 by the first term of the series, in which nothing underflows.
    """
    near = less(x, 1e-6)
    number = where(near, 1.0, x)
    far = divide(negative(slope(_lower, 0, a, number)), multiply(_gamma_density(a, number), number))
    tiny = maximum(x, float(np.finfo(x.type.dtype.numpy).tiny))
    return where(near, divide(subtract(_digamma(add(a, 1.0)), log(tiny)), a), far)


def gammainc(a: ArrayLike, x: ArrayLike) -> Value:
    """The regularized lower incomplete gamma function, elementwise: from 0 at x = 0 to 1. NaN for a < 0 or x < 0."""
    (parameter, limit), weak = together("gammainc", a, x, real=True)
    return with_weak(_gammainc(parameter, limit), weak)


def gammaincc(a: ArrayLike, x: ArrayLike) -> Value:
    """1 - gammainc(a, x), elementwise; accurate where it is small."""
    (parameter, limit), weak = together("gammaincc", a, x, real=True)
    return with_weak(_gammaincc(parameter, limit), weak)
