"""Incomplete gamma and beta functions, and exponential integrals: series and continued fractions.

In float32 and below, values are operations of their own (shaders_glsl). In float64, and for derivatives by parameters,
they are loops here, which run until every element has converged. Derivatives by the upper limit are closed forms, of
every order; those by parameters follow the steps of the loops in forward mode, and have no second derivative in
reverse mode.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lavax.ir.types import float64
from lavax.numpy._core.application import as_floating, real_function, together
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.creation import ones_like, zeros_like
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
    where,
)
from lavax.numpy.elementwise.exponential import exp, log
from lavax.numpy.elementwise.extrema import maximum
from lavax.numpy.elementwise.powers import sqrt
from lavax.numpy.elementwise.rounding import floor
from lavax.numpy.reductions.reductions import any as any_of
from lavax.scipy.stirling import STIRLING_FROM, log_less, stirling_rest
from lavax.tracer import bind, with_weak
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.transforms.jvp import jvp
from lavax.tracer.values.value import Value

__all__ = ["betainc", "exp1", "expi", "expn", "gammainc", "gammaincc"]

_MOST_STEPS = 2000
_LEAST_STEPS = 64  # for derivatives by parameters
_LARGE_EXPI = 40.0  # from here on the asymptotic series of expi is exact in float64
_lgamma = real_function("lgamma", "The logarithm of the absolute value of the gamma function")
_digamma = real_function("digamma", "The derivative of `lgamma`")


def _summed(first: Value, ratio: Callable[[Value], Value]) -> Value:
    """first (1 + r(1) + r(1) r(2) + …), with r(k) the ratio of neighbouring terms, until nothing changes."""

    def is_open(state: Any) -> Value:
        return logical_and(any_of(state[3]), less(state[2], float(_MOST_STEPS)))

    def step(state: Any) -> Any:
        total, term, number, _ = state
        term = multiply(term, ratio(number))
        longer = add(total, term)
        return longer, term, add(number, 1.0), not_equal(longer, total)

    one = _number_like(first, 1.0)
    total: Value = while_loop(is_open, step, (first, first, one, not_equal(first, 0.0)))[0]
    return total


def _number_like(x: Value, number: float) -> Value:
    """One number in the dtype of `x`."""
    found: Value = ones_like(x, shape=()) if number == 1.0 else multiply(ones_like(x, shape=()), number)
    return found


def _fraction(a: Value, x: Value, least: int = 0) -> Value:
    """Gamma(a, x) e^x x^-a for x >= 1 by Legendre's continued fraction, in a minimum number of Lentz's steps.

    For whole `a` the fraction ends, but its derivative by `a` does not, and needs the further steps.
    """
    tiny = float(np.finfo(x.type.dtype.numpy).tiny) * 1e4
    eps = float(np.finfo(x.type.dtype.numpy).eps)

    def is_open(state: Any) -> Value:
        return logical_and(any_of(state[5]), less(state[4], float(_MOST_STEPS)))

    def step(state: Any) -> Any:
        b, c, d, h, number, is_coarse = state
        numerator = multiply(negative(number), subtract(number, a))
        b = add(b, 2.0)
        d = divide(1.0, _not_zero(add(multiply(numerator, d), b), tiny))
        c = _not_zero(add(b, divide(numerator, c)), tiny)
        change = where(is_coarse, multiply(c, d), 1.0)  # a converged element would accumulate rounding errors
        goes_on = logical_or(greater(abs(subtract(change, 1.0)), eps), less(number, float(least)))
        return b, c, d, multiply(h, change), add(number, 1.0), goes_on

    b = _not_zero(subtract(add(x, 1.0), a), tiny)
    start = divide(1.0, b)
    state = (b, multiply(ones_like(b), 1 / tiny), start, start, _number_like(x, 1.0), equal(x, x))
    found: Value = while_loop(is_open, step, state)[3]
    return found


def _not_zero(x: Value, tiny: float) -> Value:
    return where(less(abs(x), tiny), tiny, x)


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
    series = _summed(ones_like(inner), lambda k: divide(inner, add(parameter, k)))
    outer = where(by_series, add(maximum(parameter, 1.0), 30.0), limit)  # an argument for which the loop ends soon
    fraction = _fraction(parameter, outer, least)
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
    inside = logical_and(greater(x, 0), greater(a, 0))
    parameter, limit = where(inside, a, 1.0), where(inside, x, 1.0)
    at_zero = where(less(a, 1), math.inf, where(equal(a, 1), 1.0, 0.0))
    return where(inside, divide(multiply(_gamma_weight(parameter, limit), parameter), limit), at_zero)


def _slope(function: Callable[..., Value], place: int, *arguments: Value) -> Value:
    """The derivative of an elementwise function by one of its arguments, in forward mode."""

    def of_one(x: Value) -> Value:
        return function(*arguments[:place], x, *arguments[place + 1 :], _LEAST_STEPS)

    found: Value = jvp(of_one, (arguments[place],), (ones_like(arguments[place]),))[1]
    return found


@custom_jvp
def _gammainc(a: Value, x: Value) -> Value:
    return _lower(a, x) if a.type.dtype == float64 else bind("gammainc", a, x)


@custom_jvp
def _gammaincc(a: Value, x: Value) -> Value:
    return _upper(a, x) if a.type.dtype == float64 else bind("gammaincc", a, x)


_gammainc.defjvps(
    lambda tangent, _, a, x: multiply(tangent, _slope(_lower, 0, a, x)),
    lambda tangent, _, a, x: multiply(tangent, _gamma_density(a, x)),
)
_gammaincc.defjvps(
    lambda tangent, _, a, x: multiply(tangent, _slope(_upper, 0, a, x)),
    lambda tangent, _, a, x: negative(multiply(tangent, _gamma_density(a, x))),
)


def gamma_quantile_slope(a: Value, x: Value) -> Value:
    """The derivative by `a` of the quantile `x` > 0 of the gamma distribution of parameter `a`, at fixed probability.

    Relative to `x`. Near 0 by the first term of the series, in which nothing underflows.
    """
    near = less(x, 1e-6)
    number = where(near, 1.0, x)
    far = divide(negative(_slope(_lower, 0, a, number)), multiply(_gamma_density(a, number), number))
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
    """The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), as in `_fraction`."""
    tiny = float(np.finfo(x.type.dtype.numpy).tiny) * 1e4
    eps = float(np.finfo(x.type.dtype.numpy).eps)

    def is_open(state: Any) -> Value:
        return logical_and(any_of(state[4]), less(state[3], float(_MOST_STEPS)))

    def advanced(c: Value, d: Value, numerator: Value) -> tuple[Value, Value]:
        longer = divide(1.0, _not_zero(add(multiply(numerator, d), 1.0), tiny))
        return _not_zero(add(divide(numerator, c), 1.0), tiny), longer

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
    start = divide(1.0, _not_zero(subtract(1.0, first), tiny))
    state = (ones_like(start), start, start, _number_like(x, 1.0), equal(x, x))
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
    lambda tangent, _, a, b, x: multiply(tangent, _slope(_beta_integral, 0, a, b, x)),
    lambda tangent, _, a, b, x: multiply(tangent, _slope(_beta_integral, 1, a, b, x)),
    lambda tangent, _, a, b, x: multiply(tangent, _beta_density(a, b, x)),
)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
    """The regularized incomplete beta function, elementwise: from 0 at x = 0 to 1 at x = 1.

    NaN unless `a` and `b` are positive and `x` is from 0 to 1.
    """
    (first, second, limit), weak = together("betainc", a, b, x, real=True)
    return with_weak(_betainc(first, second, limit), weak)


def _exponential_integral(n: Value, x: Value) -> Value:
    near = less_equal(x, 1.0)
    order = where(greater(n, 0), n, 1.0)
    small = where(logical_and(near, greater(x, 0)), x, 0.5)
    large = where(near, 30.0, where(equal(x, math.inf), 30.0, x))
    far = multiply(_fraction(subtract(1.0, order), large), exp(negative(x)))
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
    series = _summed(growing, lambda k: divide(multiply(growing, k), multiply(add(k, 1.0), add(k, 1.0))))
    shrinking = where(large, divide(1.0, where(large, x, 1.0)), 0.0)
    asymptotic = _summed(ones_like(x), lambda k: multiply(shrinking, k))
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
