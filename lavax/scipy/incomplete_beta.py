"""The incomplete beta function: a continued fraction.

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
from lavax.numpy._core.application import together
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.creation import ones_like
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    where,
)
from lavax.numpy.elementwise.exponential import exp, log
from lavax.numpy.elementwise.powers import sqrt
from lavax.numpy.reductions.reductions import any as any_of
from lavax.scipy.convergence import MAX_STEPS, not_zero, number_like, slope
from lavax.scipy.stirling import STIRLING_FROM, log_less, stirling_rest
from lavax.tracer import bind, with_weak
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

__all__ = ["betainc"]


def _beta_weight(a: Value, b: Value, x: Value) -> Value:
    """x^a (1 - x)^b / B(a, b) for positive parameters and 0 < x < 1."""
    from lavax.scipy.special import betaln, xlog1py  # late: it exports the functions of this module

    large = logical_and(greater_equal(a, STIRLING_FROM), greater_equal(b, STIRLING_FROM))
    p, q = where(large, a, STIRLING_FROM), where(large, b, STIRLING_FROM)
    total = add(p, q)
    # Measured from the point a / (a + b), at which the weight is greatest.
    ahead = subtract(multiply(x, q), multiply(subtract(1.0, x), p))
    below = multiply(p, log_less(divide(multiply(x, total), p), divide(ahead, p)))
    above = multiply(q, log_less(divide(multiply(subtract(1.0, x), total), q), divide(negative(ahead), q)))
    powers = add(below, above)
    rests = subtract(stirling_rest(total), add(stirling_rest(p), stirling_rest(q)))
    near = multiply(exp(add(powers, rests)), sqrt(divide(divide(multiply(p, q), total), 2 * math.pi)))
    r, s = where(large, 1.0, a), where(large, 1.0, b)
    plain = exp(subtract(add(multiply(r, log(x)), xlog1py(s, negative(x))), betaln(r, s)))
    return where(large, near, plain)


def _beta_fraction(a: Value, b: Value, x: Value, least: int) -> Value:
    """The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), as in `gamma_fraction`."""
    tiny = float(np.finfo(x.type.dtype.numpy).tiny) * 1e4
    eps = float(np.finfo(x.type.dtype.numpy).eps)

    def is_open(state: Any) -> Value:
        return logical_and(any_of(state[4]), less(state[3], float(MAX_STEPS)))

    def advanced(c: Value, d: Value, numerator: Value) -> tuple[Value, Value]:
        longer = divide(1.0, not_zero(add(multiply(numerator, d), 1.0), tiny))
        return not_zero(add(divide(numerator, c), 1.0), tiny), longer

    def step(state: Any) -> Any:
        c, d, h, m, is_coarse = state
        twice = add(a, multiply(m, 2.0))
        even = divide(multiply(multiply(m, subtract(b, m)), x), multiply(subtract(twice, 1.0), twice))
        c, d = advanced(c, d, even)
        h = where(is_coarse, multiply(h, multiply(c, d)), h)
        grown = multiply(add(a, m), add(add(a, b), m))
        odd = divide(multiply(negative(grown), x), multiply(twice, add(twice, 1.0)))
        c, d = advanced(c, d, odd)
        change = where(is_coarse, multiply(c, d), 1.0)  # a converged element would accumulate rounding errors
        goes_on = logical_or(greater(abs(subtract(change, 1.0)), eps), less(m, float(least)))
        return c, d, multiply(h, change), add(m, 1.0), goes_on

    first = divide(multiply(add(a, b), x), add(a, 1.0))
    start = divide(1.0, not_zero(subtract(1.0, first), tiny))
    state = (ones_like(start), start, start, number_like(x, 1.0), equal(x, x))
    found: Value = while_loop(is_open, step, state)[2]
    return found


def _beta_integral(a: Value, b: Value, x: Value, least: int = 0) -> Value:
    inside = logical_and(greater(x, 0), less(x, 1))
    positive = logical_and(greater(a, 0), greater(b, 0))
    usable = logical_and(inside, positive)
    p, q, limit = where(usable, a, 1.0), where(usable, b, 1.0), where(usable, x, 0.25)
    swapped = greater(limit, divide(add(p, 1.0), add(add(p, q), 2.0)))
    first, second = where(swapped, q, p), where(swapped, p, q)
    part = where(swapped, subtract(1.0, limit), limit)
    found = divide(multiply(_beta_weight(p, q, limit), _beta_fraction(first, second, part, least)), first)
    edge = where(logical_and(positive, equal(x, 0)), 0.0, where(logical_and(positive, equal(x, 1)), 1.0, math.nan))
    return where(usable, where(swapped, subtract(1.0, found), found), edge)


def _beta_density(a: Value, b: Value, x: Value) -> Value:
    inside = logical_and(logical_and(greater(x, 0), less(x, 1)), logical_and(greater(a, 0), greater(b, 0)))
    p, q, limit = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
    found = divide(_beta_weight(p, q, limit), multiply(limit, subtract(1.0, limit)))
    exponent = where(less_equal(x, 0), a, b)
    other = where(less_equal(x, 0), b, a)
    return where(inside, found, where(less(exponent, 1), math.inf, where(equal(exponent, 1), other, 0.0)))


@custom_jvp
def _betainc(a: Value, b: Value, x: Value) -> Value:
    return _beta_integral(a, b, x) if a.type.dtype == float64 else bind("betainc", a, b, x)


_betainc.defjvps(
    lambda tangent, _, a, b, x: multiply(tangent, slope(_beta_integral, 0, a, b, x)),
    lambda tangent, _, a, b, x: multiply(tangent, slope(_beta_integral, 1, a, b, x)),
    lambda tangent, _, a, b, x: multiply(tangent, _beta_density(a, b, x)),
)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
    """The regularized incomplete beta function, elementwise: from 0 at x = 0 to 1 at x = 1.

    NaN unless `a` and `b` are positive and `x` is from 0 to 1.
    """
    (first, second, limit), weak = together("betainc", a, b, x, real=True)
    return with_weak(_betainc(first, second, limit), weak)
