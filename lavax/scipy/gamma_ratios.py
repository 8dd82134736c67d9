"""The beta function, binomial coefficients and Pochhammer's symbol, as quotients of gamma functions."""
from __future__ import annotations

import math

from lavax.ir.types import float32, float64
from lavax.numpy._core.application import real_function, real_numbers, together
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy.elementwise.arithmetic import abs, add, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import equal, greater, greater_equal, less_equal, logical_and, where
from lavax.numpy.elementwise.comparison import less as is_less
from lavax.numpy.elementwise.exponential import exp
from lavax.numpy.elementwise.extrema import maximum, minimum
from lavax.numpy.elementwise.rounding import floor
from lavax.numpy.elementwise.rounding import round as nearest
from lavax.scipy.double_length import Double, chosen, plus_float, sum_of
from lavax.scipy.gamma_functions import gammasgn
from lavax.scipy.gamma_quotients import LARGEST, GammaQuotient, over_gamma, ratio_of
from lavax.tracer import bind, with_weak
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

__all__ = ["beta", "comb", "poch"]

_lgamma = real_function("lgamma", "The logarithm of the absolute value of the gamma function")
_digamma = real_function("digamma", "The derivative of `lgamma`")
def _beta(first: Value, second: Value) -> GammaQuotient:
    """The inverse of the beta function of positive numbers: gamma(large + small) / gamma(large) / gamma(small)."""
    small, large = minimum(minimum(first, second), LARGEST), maximum(first, second)
    return over_gamma(ratio_of(Double(large), Double(small)), Double(small))


def _wide(*values: Value) -> list[Value]:
    """Floats of 16 bits as float32."""
    return [value if value.type.dtype in (float32, float64) else cast(value, float32) for value in values]


def _positive(x: Value) -> Value:
    return logical_and(greater(x, 0), is_less(x, math.inf))


@custom_jvp
def _beta_function(a: Value, b: Value) -> Value:
    if a.type.dtype != float64:
        return bind("beta", a, b)
    inside = logical_and(_positive(a), _positive(b))
    found = _beta(where(inside, a, 1.0), where(inside, b, 1.0)).inverse().value()
    total = add(a, b)
    signs = multiply(multiply(gammasgn(a), gammasgn(b)), gammasgn(total))
    outside = exp(subtract(add(_lgamma(a), _lgamma(b)), _lgamma(total)))
    return where(inside, found, multiply(signs, outside))


_beta_function.defjvps(
    lambda tangent, result, a, b: multiply(tangent, multiply(result, subtract(_digamma(a), _digamma(add(a, b))))),
    lambda tangent, result, a, b: multiply(tangent, multiply(result, subtract(_digamma(b), _digamma(add(a, b))))),
)


def beta(a: ArrayLike, b: ArrayLike) -> Value:
    """gamma(a) gamma(b) / gamma(a + b), elementwise; NaN where one of them has a pole.

    Raises DtypeError for complex numbers.
    """
    (first, second), weak = together("beta", a, b, real=True)
    real_numbers("beta", first)
    return with_weak(cast(_beta_function(*_wide(first, second)), first.type.dtype), weak)


@custom_jvp
def _combinations(things: Value, chosen_: Value) -> Value:
    """gamma(things + 1) / gamma(things - few + 1) / gamma(few + 1), of the chosen and the rest with the fewer."""
    rest, picked = sum_of(things, negative(chosen_)), Double(chosen_)
    above = greater(picked.high, rest.high)
    few, many = chosen(above, rest, picked), chosen(above, picked, rest)
    vast = greater(few.high, LARGEST)
    few = chosen(vast, Double(where(vast, LARGEST, 1.0)), few)
    ways = over_gamma(ratio_of(plus_float(many, 1.0), few), plus_float(few, 1.0)).value()
    return _exact_if_whole(ways, things, chosen_)


def _of_things(tangent: Value, result: Value, things: Value, chosen_: Value) -> Value:
    rest = add(subtract(things, chosen_), 1.0)
    return multiply(tangent, multiply(result, subtract(_digamma(add(things, 1.0)), _digamma(rest))))


def _of_chosen(tangent: Value, result: Value, things: Value, chosen_: Value) -> Value:
    rest = add(subtract(things, chosen_), 1.0)
    return multiply(tangent, multiply(result, subtract(_digamma(rest), _digamma(add(chosen_, 1.0)))))


_combinations.defjvps(_of_things, _of_chosen)


def _exact_if_whole(found: Value, *arguments: Value) -> Value:
    """Rounded if it is a whole number: if the arguments are whole, and the error is too small to hide it."""
    digits = 49 if found.type.dtype is float64 else 20
    whole = is_less(abs(found), 2.0**digits)
    for argument in arguments:
        whole = logical_and(whole, equal(floor(argument), argument))
    return where(whole, nearest(found), found)


def comb(N: ArrayLike, k: ArrayLike, exact: bool = False, repetition: bool = False) -> Value:
    """The number of ways to choose `k` of `N` things, elementwise, as floats; 0 unless 0 <= k <= N.

    With `repetition` each may be chosen several times. Raises ValueError for `exact`, because floats are not,
    and DtypeError for complex numbers.
    """
    if exact:
        raise ValueError("comb: floats do not hold exact numbers: use math.comb")
    if repetition:
        return comb(subtract(add(N, k), 1), k)
    (things, picked), weak = together("comb", N, k, real=True)
    real_numbers("comb", things)
    valid = logical_and(greater_equal(picked, 0), less_equal(picked, things))
    n, m = _wide(where(valid, things, 1.0), where(valid, picked, 0.0))
    return with_weak(where(valid, cast(_combinations(n, m), things.type.dtype), 0.0), weak)


@custom_jvp
def _rising(base: Value, step: Value) -> Value:
    if base.type.dtype != float64:
        return where(greater(step, 0), _exact_if_whole(bind("poch", base, step), base, step), bind("poch", base, step))
    end = sum_of(base, step)
    inside = logical_and(_positive(base), _positive(end.high))
    forward = greater_equal(step, 0)
    low = chosen(logical_and(inside, forward), Double(where(inside, base, 1.0)), end)
    low = chosen(inside, low, Double(where(inside, base, 1.0)))
    size = minimum(where(inside, abs(step), 1.0), LARGEST)
    quotient = ratio_of(low, Double(size))
    found = where(forward, quotient.value(), quotient.inverse().value())
    found = where(greater(step, 0), _exact_if_whole(found, base, step), found)
    signs = multiply(gammasgn(end.high), gammasgn(base))
    outside = exp(subtract(_lgamma(end.high), _lgamma(base)))
    return where(equal(step, 0), 1.0, where(inside, found, multiply(signs, outside)))


def _of_base(tangent: Value, result: Value, base: Value, step: Value) -> Value:
    return multiply(tangent, multiply(result, subtract(_digamma(add(base, step)), _digamma(base))))


def _of_step(tangent: Value, result: Value, base: Value, step: Value) -> Value:
    return multiply(tangent, multiply(result, _digamma(add(base, step))))


_rising.defjvps(_of_base, _of_step)


def poch(z: ArrayLike, m: ArrayLike) -> Value:
    """gamma(z + m) / gamma(z), elementwise; 1 for m = 0. NaN where the gamma function of one has a pole."""
    (base, step), weak = together("poch", z, m, real=True)
    real_numbers("poch", base)
    return with_weak(cast(_rising(*_wide(base, step)), base.type.dtype), weak)
