"""The gamma function of complex numbers, and the branch of its logarithm that is analytic off the negative numbers."""
from __future__ import annotations

import math
from functools import cache

from lavax.numpy.arrays.complex_parts import conj, imag, real
from lavax.numpy.elementwise.arithmetic import abs, add, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import (
    equal,
    greater_equal,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from lavax.numpy.elementwise.exponential import exp, expm1, log, log1p
from lavax.numpy.elementwise.rounding import round as nearest
from lavax.numpy.elementwise.signs import signbit
from lavax.scipy.stirling import horner, stirling_rest
from lavax.tracer.values.value import Value

__all__ = ["gamma_of_complex", "loggamma_of_complex"]

_NAN = complex(math.nan, math.nan)
_LOG_TWO_PI = math.log(2 * math.pi)
_EULER = 0.5772156649015329
# By the bits of a part: the terms of the power series within 1 of 2, and the length from which on Stirling's formula
# is exact. That is an even number, because factors are multiplied in pairs.
_TERMS = {32: 22, 64: 52}
_FAR = {32: 6, 64: 10}


def gamma_of_complex(z: Value) -> Value:
    """NaN at 0 and at negative whole numbers."""
    return exp(loggamma_of_complex(z))


def loggamma_of_complex(z: Value) -> Value:
    """What continues the logarithm from the positive numbers, with a cut along the negative ones.

    Zeros of either sign tell the two sides of the cut. NaN at 0 and at negative whole numbers.
    """
    undefined = logical_or(isnan(z), _is_pole(z))
    held = where(undefined, 1.0, z)
    below = signbit(imag(held))
    upper = where(below, conj(held), held)
    reflects = less(real(upper), 0.5)
    right = _right_of_half(where(reflects, subtract(1.0, upper), upper))
    left = subtract(_log_of_reflection(where(reflects, upper, 0.25)), right)
    found = where(reflects, left, right)
    return where(undefined, _NAN, where(below, conj(found), found))


def _is_pole(z: Value) -> Value:
    whole = equal(nearest(real(z)), real(z))
    return logical_and(equal(imag(z), 0), logical_and(less_equal(real(z), 0), whole))


def _log_of_reflection(z: Value) -> Value:
    """log π - log sin(πz) without a jump in the upper half plane, as sin(πz) = i/2 · exp(-πiz) · (1 - exp(2πiz))."""
    turn = multiply(subtract(z, nearest(real(z))), 2j * math.pi)
    line = add(multiply(subtract(z, 0.5), 1j * math.pi), _LOG_TWO_PI)
    return subtract(line, log(negative(expm1(turn))))


def _right_of_half(z: Value) -> Value:
    """loggamma for real parts from 1/2 on."""
    from_one, from_two = subtract(z, 1.0), subtract(z, 2.0)
    is_second = greater_equal(real(z), 1.5)
    step = where(is_second, from_two, from_one)
    near = less(abs(step), 1.0)
    series = _near_two(where(near, step, 0.0))
    lowered = subtract(series, log1p(where(logical_or(is_second, logical_not(near)), 0.0, step)))
    return where(near, lowered, _by_stirling(where(near, 2.0, z)))


def _near_two(step: Value) -> Value:
    """loggamma(2 + step), for steps of length 1 at most."""
    return multiply(step, horner(_series(_TERMS[_bits(step)]), step))


@cache
def _series(terms: int) -> tuple[float, ...]:
    """1 - γ, and then (-1)^k (ζ(k) - 1) / k for k from 2 on."""
    return (1 - _EULER, *((-1) ** k * _zeta_less_one(k) / k for k in range(2, terms + 2)))


def _zeta_less_one(k: int) -> float:
    """By Euler and Maclaurin's formula."""
    last = 200
    direct = math.fsum(float(n) ** -k for n in range(2, last))
    ends = (last / (k - 1), 0.5, k / (12 * last), -k * (k + 1) * (k + 2) / (720 * last**3))
    return direct + math.fsum(ends) * float(last) ** -k


def _by_stirling(z: Value) -> Value:
    steps = _FAR[_bits(z)]
    small = less(abs(z), float(steps))
    large = where(small, add(z, float(steps)), z)
    powers = subtract(multiply(subtract(large, 0.5), log(large)), large)
    found = add(add(powers, 0.5 * _LOG_TWO_PI), stirling_rest(large))
    held = where(small, z, 1.0)
    for step in range(0, steps, 2):  # the angles of two factors add up to less than half a turn
        pair = multiply(add(held, float(step)), add(held, step + 1.0))
        found = subtract(found, log(where(small, pair, 1.0)))
    return found


def _bits(z: Value) -> int:
    return z.type.dtype.part.bits
