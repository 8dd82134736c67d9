"""Kummer's and Gauss's hypergeometric functions of real numbers, by power series after linear transformations.

Formulas: NIST Digital Library of Mathematical Functions, 13.2, 13.7 and 15.2 to 15.8.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lavax.numpy._core.application import real_function, together
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.creation import ones_like
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
from lavax.numpy.elementwise.exponential import exp, log, log1p
from lavax.numpy.elementwise.extrema import maximum, minimum
from lavax.numpy.elementwise.rounding import floor
from lavax.numpy.reductions.reductions import any as any_of
from lavax.scipy.convergence import number_like, slope
from lavax.scipy.gamma_functions import gamma, gammasgn
from lavax.tracer import with_weak
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

__all__ = ["hyp1f1", "hyp2f1"]

_lgamma = real_function("lgamma", "The logarithm of the absolute value of the gamma function")

_MOST = 20_000  # terms of a power series: its argument may be up to 0.998
_FAR = 50.0  # from here on Kummer's function follows from its asymptotic series, unless parameters are large
_FAR_TERMS = {32: 16, 64: 40}  # by the bits of a float


def _power_series(ratio: Callable[[Value], Value], first: Value, least: Value) -> Value:
    """1 + r(0) + r(0) r(1) + …, with r(k) the ratio of terms: until nothing changes, but of `least` terms or more."""

    def is_open(state: Any) -> Value:
        return logical_and(any_of(state[3]), less(state[2], float(_MOST)))

    def step(state: Any) -> Any:
        total, term, number, _ = state
        term = multiply(term, ratio(number))
        longer = add(total, term)
        goes_on = logical_or(not_equal(longer, total), logical_and(less(number, least), not_equal(term, 0.0)))
        return longer, term, add(number, 1.0), goes_on

    one = ones_like(first)
    total: Value = while_loop(is_open, step, (one, one, number_like(first, 0.0), equal(one, one)))[0]
    return total


def _ends(parameter: Value) -> Value:
    """Whether a series with this parameter in its numerators ends: at 0 and negative whole numbers."""
    return logical_and(less_equal(parameter, 0), equal(floor(parameter), parameter))


def _denominator(c: Value, numerator: Value, k: Value) -> Value:
    """(c + k)(k + 1), and 1 where the series has ended: c + k may be 0 there."""
    ended = logical_and(_ends(numerator), greater(k, negative(numerator)))
    return where(ended, 1.0, multiply(add(c, k), add(k, 1.0)))


def _kummer(a: Value, b: Value, x: Value, least: int = 0) -> Value:
    """M(a, b, x); for negative x as exp(x) M(b - a, b, -x), whose terms have one sign more often."""
    turned = logical_and(less(x, 0), logical_not(_ends(a)))
    parameter, size = where(turned, subtract(b, a), a), where(turned, negative(x), x)
    reach = multiply(add(abs(subtract(b, parameter)), 1.0), add(abs(subtract(1.0, parameter)), 1.0))
    far = logical_and(greater(size, maximum(_FAR, reach)), logical_not(_ends(parameter)))
    near_size = where(far, 1.0, size)
    near = _power_series(
        lambda k: divide(multiply(add(parameter, k), near_size), _denominator(b, parameter, k)),
        x,
        maximum(minimum(abs(near_size), 1000.0), float(least)),
    )
    near = where(turned, multiply(exp(negative(near_size)), near), near)
    return where(far, _kummer_far(where(far, parameter, 1.0), b, where(far, size, _FAR), turned), near)


def _kummer_far(a: Value, b: Value, size: Value, turned: Value) -> Value:
    """gamma(b) / gamma(a) exp(x) x^(a - b) Σ (b - a)_k (1 - a)_k / (k! x^k), without exp(x) if `turned`."""
    total = term = ones_like(size)
    for k in range(_FAR_TERMS[64 if size.type.dtype.bits == 64 else 32]):
        numerator = multiply(add(subtract(b, a), float(k)), add(subtract(1.0, a), float(k)))
        following = multiply(term, divide(numerator, multiply(size, k + 1.0)))
        term = where(less(abs(following), abs(term)), following, 0.0)  # up to the least one
        total = add(total, term)
    powers = multiply(subtract(a, b), log(size))
    exponent = add(subtract(_lgamma(b), _lgamma(a)), add(powers, where(turned, 0.0, size)))
    return multiply(multiply(gammasgn(a), gammasgn(b)), multiply(exp(exponent), total))


@custom_jvp
def _hyp1f1(a: Value, b: Value, x: Value) -> Value:
    return _whole_kummer(a, b, x)


def _whole_kummer(a: Value, b: Value, x: Value, least: int = 0) -> Value:
    """Also at the poles, where b is 0 or a negative whole number and the series does not end before."""
    pole = logical_and(_ends(b), logical_not(logical_and(_ends(a), greater_equal(a, b))))
    finite = less(abs(x), math.inf)
    inside = logical_and(finite, logical_not(pole))
    found = _kummer(where(inside, a, 1.0), where(inside, b, 2.0), where(inside, x, 0.5), least)
    at_ends = where(equal(x, math.inf), multiply(gammasgn(a), math.inf), math.nan)
    found = where(inside, found, where(finite, where(isnan(add(a, b)), math.nan, math.inf), at_ends))
    return where(logical_and(equal(a, 0), equal(b, b)), 1.0, found)


_hyp1f1.defjvps(
    lambda tangent, _, a, b, x: multiply(tangent, slope(_whole_kummer, 0, a, b, x)),
    lambda tangent, _, a, b, x: multiply(tangent, slope(_whole_kummer, 1, a, b, x)),
    lambda tangent, _, a, b, x: multiply(tangent, multiply(divide(a, b), _hyp1f1(add(a, 1.0), add(b, 1.0), x))),
)


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Value:
    """Kummer's function M(a, b, x), the sum of (a)_k x^k / ((b)_k k!) over k from 0 on, elementwise.

    Infinite where `b` is 0 or a negative whole number, unless the sum ends before. Digits are lost where terms of both
    signs cancel: if `a` < 0, or `b` < `a` and `x` < 0, for large `x`.
    """
    (first, second, argument), weak = together("hyp1f1", a, b, x, real=True)
    return with_weak(_hyp1f1(first, second, argument), weak)


def _gauss(a: Value, b: Value, c: Value, x: Value, least: int = 0) -> Value:
    """F(a, b; c; x) for x < 1, and beyond if the series ends.

    By Pfaff's transformation for negative x, by Euler's if terms would grow.
    """
    # The lesser numerator first, or the one that ends the series: then terms of Pfaff's series fall the faster.
    swapped = logical_and(logical_not(_ends(a)), logical_or(_ends(b), less(b, a)))
    a, b = where(swapped, b, a), where(swapped, a, b)
    excess = subtract(c, add(a, b))
    below = less(x, 0)
    by_euler = logical_and(logical_not(below), logical_and(less(excess, 0), logical_not(_ends(a))))
    first = where(by_euler, subtract(c, a), a)
    second = where(logical_or(by_euler, below), subtract(c, b), b)
    size = where(below, divide(x, subtract(x, 1.0)), x)
    total = _power_series(
        lambda k: divide(multiply(multiply(add(first, k), add(second, k)), size), _denominator(c, first, k)),
        x,
        number_like(x, float(max(least, 8))),
    )
    power = where(below, negative(a), excess)
    as_it_is = logical_not(logical_or(below, by_euler))
    return where(as_it_is, total, multiply(exp(multiply(power, log1p(negative(where(as_it_is, 0.0, x))))), total))


def _whole_gauss(a: Value, b: Value, c: Value, x: Value, least: int = 0) -> Value:
    """Also at 1 by Gauss's sum, beyond 1 where the series ends, and at the poles."""
    ends = logical_or(_ends(a), _ends(b))
    last = where(_ends(a), a, where(_ends(b), b, negative(math.inf)))
    pole = logical_and(_ends(c), logical_not(logical_and(ends, greater_equal(last, c))))
    reached = logical_or(less(x, 1), logical_and(ends, less(x, math.inf)))
    usable = logical_and(logical_and(reached, greater(x, -math.inf)), logical_not(pole))
    first, second = where(usable, a, 1.0), where(usable, b, 1.0)
    found = _gauss(first, second, where(usable, c, 2.0), where(usable, x, 0.5), least)
    excess = subtract(c, add(a, b))
    sums = logical_and(equal(x, 1), greater(excess, 0))
    d, e, f = (where(sums, each, 1.0) for each in (excess, subtract(c, a), subtract(c, b)))
    at_one = divide(multiply(gamma(where(sums, c, 1.0)), gamma(d)), multiply(gamma(e), gamma(f)))
    outside = where(isnan(add(add(a, b), add(c, x))), math.nan, where(equal(x, -math.inf), math.nan, math.inf))
    return where(usable, found, where(logical_and(sums, logical_not(pole)), at_one, outside))


@custom_jvp
def _hyp2f1(a: Value, b: Value, c: Value, x: Value) -> Value:
    return _whole_gauss(a, b, c, x)


def _gauss_by_argument(tangent: Value, _: Value, a: Value, b: Value, c: Value, x: Value) -> Value:
    following = _hyp2f1(add(a, 1.0), add(b, 1.0), add(c, 1.0), x)
    return multiply(tangent, multiply(divide(multiply(a, b), c), following))


_hyp2f1.defjvps(
    lambda tangent, _, a, b, c, x: multiply(tangent, slope(_whole_gauss, 0, a, b, c, x)),
    lambda tangent, _, a, b, c, x: multiply(tangent, slope(_whole_gauss, 1, a, b, c, x)),
    lambda tangent, _, a, b, c, x: multiply(tangent, slope(_whole_gauss, 2, a, b, c, x)),
    _gauss_by_argument,
)


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Value:
    """Gauss's function F(a, b; c; x), the sum of (a)_k (b)_k x^k / ((c)_k k!) over k from 0 on, elementwise.

    For `x` up to 1; infinite beyond, and where `c` is 0 or a negative whole number, unless the sum ends. The sum has at
    most 20,000 terms, which suffices from -500 to 0.998.
    """
    (first, second, third, argument), weak = together("hyp2f1", a, b, c, x, real=True)
    return with_weak(_hyp2f1(first, second, third, argument), weak)
