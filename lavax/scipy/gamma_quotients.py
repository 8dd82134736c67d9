"""Quotients of gamma functions of positive numbers, within a few units in the last place.

Their logarithms are small differences of large numbers, so they are computed with twice the digits, by Stirling's
formula: log gamma(x) = (x - 1/2) log(x) - x + log(2 pi) / 2 + a rest. Arguments too small for it are raised by
gamma(x + 1) = x gamma(x). Arguments have twice the digits too, because a sum of two would be rounded.
"""
from __future__ import annotations

import math
from typing import NamedTuple

from lavax.ir.types import float64
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import greater, where
from lavax.numpy.elementwise.comparison import less as is_less
from lavax.numpy.elementwise.exponential import exp
from lavax.scipy.double_length import Double, chosen, less, logarithm, plus, plus_float, times
from lavax.scipy.stirling import horner, stirling_rest
from lavax.tracer.values.value import Value

# As a float of the dtype, and the rest.
_HALF_LOG_TWO_PI = {
    False: (0.9189385175704956, 1.563417713631158e-08),
    True: (0.9189385332046728, -3.8782941580672414e-17),
}
LARGEST = 1e3  # beyond, results are 0 or infinite, unless the other argument is small
# (log(1 + r) - r) / -r = r (1/2 - r/3 + …), for r up to 1/16.
_FAR = 1 / 16
_LOG_LESS = tuple((-1) ** k / (k + 2) for k in range(14))


# Exponents beyond these, in float32 and float64, are reduced by a power of two, because factors may bring an
# overflow back into range.
_FAR_EXPONENT, _POWER_OF_TWO = {False: 60.0, True: 500.0}, {False: 64, True: 512}


class GammaQuotient(NamedTuple):
    """exp(exponent), times the numbers above, over those below."""

    exponent: Double
    above: tuple[Double, ...]
    below: tuple[Double, ...]

    def value(self) -> Value:
        is_double = self.exponent.high.type.dtype is float64
        limit, power = _FAR_EXPONENT[is_double], _POWER_OF_TWO[is_double]
        raises, lowers = greater(self.exponent.high, limit), is_less(self.exponent.high, -limit)
        none = multiply(self.exponent.high, 0.0)  # so that signs, and the logarithm of 2, are of the exponent's dtype
        sign = where(raises, -1.0, where(lowers, 1.0, none))
        held = plus(self.exponent, times(Double(multiply(sign, float(power))), logarithm(Double(_two(sign)))))
        relative = held.low
        for number in self.above:
            relative = add(relative, divide(number.low, number.high))
        for number in self.below:
            relative = subtract(relative, divide(number.low, number.high))
        found = exp(held.high)
        for place in range(max(len(self.above), len(self.below))):
            for number in self.above[place : place + 1]:
                found = multiply(found, number.high)
            for number in self.below[place : place + 1]:
                found = divide(found, number.high)
        found = add(found, where(is_less(found, math.inf), multiply(found, relative), 0.0))
        # Products, because a choice between two powers would be float32, which holds neither for float64.
        lowered = where(lowers, multiply(found, 2.0**-power), found)
        return where(raises, multiply(found, 2.0**power), lowered)

    def inverse(self) -> GammaQuotient:
        negated = Double(negative(self.exponent.high), negative(self.exponent.low))
        return GammaQuotient(negated, self.below, self.above)


def _two(like: Value) -> Value:
    return add(multiply(like, 0.0), 2.0)


def _raising(x: Value) -> int:
    """The argument from which on Stirling's series is exact in the dtype."""
    return 10 if x.type.dtype is float64 else 4


def _lowered(x: Double) -> tuple[Double, Double]:
    """x (x + 1) … up to the start of Stirling's series, as the exponential of the first result times the second.

    Tiny factors go to the logarithm, where they may meet what overflows.
    """
    one = _one(x.high)
    tiny = is_less(x.high, 2.0**-10)
    total = chosen(tiny, one, x)
    for number in range(1, _raising(x.high)):
        total = times(total, plus_float(x, float(number)))
    return logarithm(chosen(tiny, x, one)), total


def _one(x: Value) -> Double:
    return Double(add(multiply(x, 0.0), 1.0))


def _log_gamma(x: Double) -> Double:
    """Stirling's formula."""
    powers = less(times(plus_float(x, -0.5), logarithm(x)), x)
    upper, lower = _HALF_LOG_TWO_PI[x.high.type.dtype is float64]
    return plus_float(plus_float(powers, upper), add(stirling_rest(x.high), lower))


def _log_ratio(base: Double, step: Double) -> Double:
    """log gamma(base + step) - log gamma(base): step log(end) + (base - 1/2) log(1 + step / base) - step + rests."""
    end = plus(base, step)
    log_end = logarithm(end)
    rests = subtract(stirling_rest(end.high), stirling_rest(base.high))
    ratio = divide(step.high, base.high)
    is_far = is_less(ratio, _FAR)
    held = chosen(is_far, _one(base.high), base)
    near = less(times(plus_float(held, -0.5), less(log_end, logarithm(held))), step)
    r = where(is_far, ratio, 0.0)
    lost = multiply(r, horner(_LOG_LESS, r))
    far = subtract(multiply(lost, subtract(multiply(r, 0.5), step.high)), multiply(r, 0.5))
    bend = chosen(is_far, Double(far), near)
    return plus_float(plus(times(step, log_end), bend), rests)


def ratio_of(base: Double, step: Double) -> GammaQuotient:
    """gamma(base + step) / gamma(base), for positive base and step."""
    small = is_less(base.high, float(_raising(base.high)))
    raised = chosen(small, plus_float(base, float(_raising(base.high))), base)
    held = chosen(small, base, _one(base.high))
    end = chosen(small, plus(base, step), _one(base.high))
    (log_held, held), (log_end, end) = _lowered(held), _lowered(end)
    exponent = plus(_log_ratio(raised, step), less(log_held, log_end))
    return GammaQuotient(exponent, (held,), (end,))


def over_gamma(quotient: GammaQuotient, x: Double) -> GammaQuotient:
    """The quotient divided by gamma(x), for positive x."""
    raises = is_less(x.high, float(_raising(x.high)))
    raised = chosen(raises, plus_float(x, float(_raising(x.high))), x)
    one = _one(x.high)
    logarithm_of_product, product = _lowered(chosen(raises, x, one))
    exponent = less(plus(quotient.exponent, logarithm_of_product), _log_gamma(raised))
    return GammaQuotient(exponent, (*quotient.above, chosen(raises, product, one)), quotient.below)


def gamma_of(x: Value) -> Value:
    """gamma(x), for positive x: infinite if it is too large for the dtype."""
    held = Double(where(greater(x, LARGEST), LARGEST, x))
    nothing = GammaQuotient(Double(multiply(held.high, 0.0)), (), ())
    return over_gamma(nothing, held).inverse().value()
