"""The gamma function and functions of it in closed form."""
from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from lavax.ir.types import float64
from lavax.numpy._core.application import as_floating, real_function, together
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.arrays.creation import ones_like
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import equal, greater, greater_equal, less, logical_and, logical_or, where
from lavax.numpy.elementwise.exponential import expm1, log, log1p
from lavax.numpy.elementwise.powers import power
from lavax.numpy.elementwise.rounding import floor, remainder
from lavax.numpy.elementwise.rounding import round as nearest
from lavax.numpy.elementwise.signs import signbit
from lavax.numpy.elementwise.trigonometric import sin
from lavax.scipy.complex_gamma import gamma_of_complex
from lavax.scipy.gamma_quotients import gamma_of
from lavax.tracer import bind, with_weak
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.transforms.jvp import jvp
from lavax.tracer.values.value import Value

__all__ = [
    "bernoulli", "boxcox", "boxcox1p", "factorial", "gamma", "gammasgn", "multigammaln", "polygamma", "zeta",
]  # fmt: skip

_lgamma = real_function("lgamma", "The logarithm of the absolute value of the gamma function")
_digamma = real_function("digamma", "The derivative of `lgamma`")
# B(2k) / (2k)!, k from 1 on.
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600,
              -3617 / 10670622842880000, 43867 / 5109094217170944000)  # fmt: skip
_DIRECT = 10  # terms of a zeta series that are summed one by one


def _is_whole(x: Value) -> Value:
    return equal(floor(x), x)


@custom_jvp
def _gamma(x: Value) -> Value:
    if x.type.dtype != float64:
        return bind("gamma", x)
    size = abs(x)
    tiny = less(size, 2.0**-60)  # and gamma(x) = 1 / x
    above = gamma_of(where(tiny, 1.0, size))
    # Reflected, with no rounding of the argument: gamma(x) gamma(-x) = -pi / (x sin(pi x)).
    below = divide(-math.pi, multiply(multiply(above, _sine_of_half_turns(x)), x))
    pole = logical_and(less(x, 0), logical_or(_is_whole(x), equal(x, -math.inf)))
    return where(pole, math.nan, where(tiny, divide(1.0, x), where(less(x, 0), below, above)))


_gamma.defjvps(lambda tangent, result, x: multiply(tangent, multiply(result, _digamma(x))))


def _sine_of_half_turns(x: Value) -> Value:
    """sin(pi x), by the exact distance from the nearest whole number."""
    whole = nearest(x)
    value = sin(multiply(subtract(x, whole), math.pi))
    return where(equal(remainder(whole, 2.0), 0), value, negative(value))


def gamma(x: ArrayLike) -> Value:
    """The gamma function, elementwise: infinite at 0, NaN at negative whole numbers; of complex ones NaN at 0 too."""
    value = as_floating(x)
    return with_weak(gamma_of_complex(value) if value.type.dtype.is_complex else _gamma(value), value.weak)


def gammasgn(x: ArrayLike) -> Value:
    """The sign of the gamma function, -1 or 1, elementwise; NaN at negative whole numbers."""
    value = as_floating(x)
    odd = equal(remainder(floor(where(less(value, 0), value, 0.0)), 2.0), 1)
    signs = where(logical_or(odd, logical_and(equal(value, 0), signbit(value))), -1.0, 1.0)
    undefined = logical_or(logical_and(less(value, 0), _is_whole(value)), equal(value, -math.inf))
    result = where(undefined, math.nan, where(equal(value, value), signs, math.nan))
    return with_weak(cast(result, value.type.dtype), value.weak)


def factorial(n: ArrayLike, exact: bool = False) -> Value:
    """gamma(n + 1), elementwise, and 0 below 0. Raises ValueError for `exact`, because floats are not."""
    if exact:
        raise ValueError("factorial: floats do not hold exact factorials: use math.factorial")
    value = as_floating(n)
    return with_weak(_factorial(value), value.weak)


@custom_jvp
def _factorial(x: Value) -> Value:
    if x.type.dtype != float64:
        return bind("factorial", x)
    negative_one = less(x, 0)
    return where(negative_one, 0.0, _gamma(add(where(negative_one, 0.0, x), 1.0)))


def _factorial_slope(tangent: Value, result: Value, x: Value) -> Value:
    below = less(x, 0)
    slope = multiply(result, _digamma(add(where(below, 0.0, x), 1.0)))
    return multiply(tangent, where(below, 0.0, slope))


_factorial.defjvps(_factorial_slope)


def multigammaln(a: ArrayLike, d: int) -> Value:
    """The logarithm of the multivariate gamma function of dimension `d`; NaN for a <= (d - 1) / 2.

    Raises ValueError for a dimension below 1.
    """
    dimension = whole_number("d", d)
    if dimension < 1:
        raise ValueError(f"multigammaln: the dimension is at least 1, got {d}")
    value = as_floating(a)
    fits = greater(value, (dimension - 1) / 2)
    held = where(fits, value, float(dimension))
    total = _lgamma(held)
    for number in range(1, dimension):
        total = add(total, _lgamma(subtract(held, number / 2)))
    constant = dimension * (dimension - 1) / 4 * math.log(math.pi)
    return with_weak(where(fits, add(total, constant), math.nan), value.weak)


def zeta(x: ArrayLike, q: ArrayLike = 1.0) -> Value:
    """Hurwitz's zeta function, the sum of (k + q)^-x over k from 0 on; of Riemann with q = 1.

    Infinite at x = 1 and where `q` is 0 or a negative whole number; NaN for x < 1 and for other negative `q`.
    """
    (exponent, start), weak = together("zeta", x, q, real=True)
    return with_weak(_zeta(exponent, start), weak)


@custom_jvp
def _zeta(s: Value, q: Value) -> Value:
    return _zeta_sum(s, q) if q.type.dtype == float64 else bind("zeta", s, q)


def _zeta_by_exponent(tangent: Value, _: Value, s: Value, q: Value) -> Value:
    """For exponents above 1 only: elsewhere the value is infinite or NaN."""
    return multiply(tangent, jvp(lambda exponent: _zeta_sum(exponent, q), (s,), (ones_like(s),))[1])


_zeta.defjvps(
    _zeta_by_exponent,
    lambda tangent, _, s, q: multiply(tangent, multiply(negative(s), _zeta(add(s, 1.0), q))),
)


def _zeta_sum(exponent: Value, start: Value) -> Value:
    """By Euler and Maclaurin's formula after ten terms."""
    valid = logical_and(greater(exponent, 1), greater(start, 0))
    s, first = where(valid, exponent, 2.0), where(valid, start, 1.0)
    total = power(first, negative(s))
    for number in range(1, _DIRECT):
        total = add(total, power(add(first, float(number)), negative(s)))
    total = add(total, _zeta_tail(s, add(first, float(_DIRECT))))
    pole = logical_or(equal(exponent, 1), logical_and(less(start, 0.5), _is_whole(start)))
    total = where(equal(start, math.inf), 0.0, total)
    return where(valid, total, where(logical_and(pole, greater_equal(exponent, 1)), math.inf, math.nan))


def _zeta_tail(s: Value, w: Value) -> Value:
    """The sum of (k + w)^-s, for w from 10 on; each term is made from the previous one, so none overflows."""
    last = power(w, negative(s))
    vanished = equal(last, 0)
    held = where(vanished, 2.0, s)
    total = add(divide(multiply(w, last), subtract(s, 1.0)), multiply(last, 0.5))
    factor = multiply(last, divide(held, w))
    for number, coefficient in enumerate(_BERNOULLI):
        total = add(total, multiply(factor, coefficient))
        step = multiply(add(held, 2.0 * number + 1), add(held, 2.0 * number + 2))
        factor = multiply(factor, divide(divide(step, w), w))
    return total


def bernoulli(n: int) -> Value:
    """The Bernoulli numbers B(0) to B(n), of which B(1) is -1/2, as float32. Raises ValueError for n < 0."""
    last = whole_number("n", n)
    if last < 0:
        raise ValueError(f"bernoulli: n is at least 0, got {n}")
    numbers = [Fraction(1)]
    for m in range(1, last + 1):  # the sum of C(m + 1, k) B(k) over k up to m is 0
        known = sum((math.comb(m + 1, k) * number for k, number in enumerate(numbers)), Fraction(0))
        numbers.append(-known / (m + 1))
    return as_value(np.array([float(number) for number in numbers], np.float32))


def polygamma(n: ArrayLike, x: ArrayLike) -> Value:
    """The `n`-th derivative of `digamma` at `x`, elementwise, for whole n >= 0; NaN below 0 unless n is 0.

    No gradient passes to `n`.
    """
    (order, value), weak = together("polygamma", n, x, real=True)
    return with_weak(_polygamma(bind("stop_gradient", order), value), weak)


@custom_jvp
def _polygamma(order: Value, value: Value) -> Value:
    if value.type.dtype != float64:
        return bind("polygamma", order, value)
    higher = greater(order, 0)
    s = add(where(higher, order, 1.0), 1.0)
    sign = where(equal(remainder(s, 2.0), 0), 1.0, -1.0)
    derivative = multiply(multiply(sign, _gamma(s)), zeta(s, where(higher, value, 1.0)))
    found = where(higher, derivative, _digamma(where(higher, 1.0, value)))
    return where(logical_and(greater_equal(order, 0), _is_whole(order)), found, math.nan)


_polygamma.defjvps(None, lambda tangent, _, n, x: multiply(tangent, _polygamma(add(n, 1.0), x)))


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Value:
    """(x^lmbda - 1) / lmbda, elementwise; log(x) for lmbda = 0."""
    (value, exponent), weak = together("boxcox", x, lmbda, real=True)
    return with_weak(_boxcox(value, exponent), weak)


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Value:
    """((1 + x)^lmbda - 1) / lmbda, elementwise; log(1 + x) for lmbda = 0."""
    (value, exponent), weak = together("boxcox1p", x, lmbda, real=True)
    return with_weak(_boxcox1p(value, exponent), weak)


@custom_jvp
def _boxcox(x: Value, exponent: Value) -> Value:
    return _power_less_one(log, x, exponent) if _is_composed(x) else bind("boxcox", x, exponent)


@custom_jvp
def _boxcox1p(x: Value, exponent: Value) -> Value:
    return _power_less_one(log1p, x, exponent) if _is_composed(x) else bind("boxcox1p", x, exponent)


def _is_composed(x: Value) -> bool:
    """Whether there is no operation for the dtype of `x`."""
    return x.type.dtype == float64 or x.type.dtype.is_complex


def _by_the_exponent(logarithm: Any) -> Any:
    def slope(tangent: Value, _: Value, x: Value, exponent: Value) -> Value:
        function = partial(_power_less_one, logarithm, x)
        return multiply(tangent, jvp(function, (exponent,), (ones_like(exponent),))[1])

    return slope


_boxcox.defjvps(
    lambda tangent, _, x, exponent: multiply(tangent, power(x, subtract(exponent, 1.0))), _by_the_exponent(log)
)
_boxcox1p.defjvps(
    lambda tangent, _, x, exponent: multiply(tangent, power(add(x, 1.0), subtract(exponent, 1.0))),
    _by_the_exponent(log1p),
)


def _power_less_one(logarithm: Any, value: Value, exponent: Value) -> Value:
    grown = logarithm(value)
    # If the product is tiny, the quotient is the logarithm itself, up to rounding.
    flat = less(abs(exponent), float(np.finfo(np.float32).tiny))
    safe = where(flat, 1.0, exponent)
    return where(flat, grown, divide(expm1(multiply(safe, grown)), safe))
