"""Functions that NumPy lacks, in float64: the evaluation of the operations of the same names.

Numbers name formulas of Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964).
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]

_TWO_BY_ROOT_PI = 2 / math.sqrt(math.pi)
# From these arguments on, the asymptotic series are exact in float64.
_ERFCX_ASYMPTOTIC, _DIGAMMA_ASYMPTOTIC, _BESSEL_ASYMPTOTIC = 10.0, 10.0, 500.0
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _of_numbers(function: Callable[[float], float], where_undefined: float) -> Function:
    """`function` of each element, with a default value if Python's math raises."""

    def value(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return where_undefined

    def evaluate(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.frompyfunc(value, 1, 1)(x.astype(np.float64))).astype(np.float64)

    return evaluate


def _in_float64(function: Function) -> Function:
    return lambda x: np.asarray(function(x.astype(np.float64)))


def _polynomial(coefficients: Sequence[float] | np.ndarray, x: np.ndarray) -> Any:
    """The sum of coefficients[k] x^k."""
    return np.polynomial.polynomial.polyval(x, coefficients)


erf = _of_numbers(math.erf, math.nan)
erfc = _of_numbers(math.erfc, math.nan)
lgamma = _of_numbers(math.lgamma, math.inf)


@_in_float64
def erfcx(x: np.ndarray) -> np.ndarray:
    """exp(x^2) erfc(x); 7.1.23 for large x."""
    large = np.maximum(x, _ERFCX_ASYMPTOTIC)
    terms = np.cumprod([1, *(-(2 * k - 1) / 2 for k in range(1, 13))])
    asymptotic = _polynomial(terms, 1 / large**2) / (large * math.sqrt(math.pi))
    moderate = np.minimum(x, _ERFCX_ASYMPTOTIC)
    return np.asarray(np.where(x < _ERFCX_ASYMPTOTIC, np.exp(moderate**2) * erfc(moderate), asymptotic))


def _inverse_erfc(q: np.ndarray) -> np.ndarray:
    """The x >= 0 with erfc(x) = q, for 0 < q <= 1/2: Newton's method on the logarithm, which is nearly a parabola."""
    x: np.ndarray = np.sqrt(-np.log(q))
    for _ in range(12):
        x = np.asarray(x + (np.log(erfc(x)) - np.log(q)) * erfcx(x) / _TWO_BY_ROOT_PI)
    return x


@_in_float64
def erfinv(x: np.ndarray) -> np.ndarray:
    """The inverse of erf, by Newton's method; from 1/2 on through erfc, which is accurate there."""
    size = np.abs(x)
    middle = np.where(size < 0.5, x, 0.0)
    found = middle / _TWO_BY_ROOT_PI
    for _ in range(6):
        found = found - (erf(found) - middle) / _TWO_BY_ROOT_PI * np.exp(found**2)
    outer = (size >= 0.5) & (size < 1)
    tail = np.copysign(_inverse_erfc(np.where(outer, 1 - size, 0.5)), x)
    end = np.where(size == 1, np.copysign(np.inf, x), np.nan)
    # Newton's method loses the sign of zero.
    return np.where(x == 0, x, np.where(size < 0.5, found, np.where(outer, tail, end)))


@_in_float64
def ndtr(x: np.ndarray) -> np.ndarray:
    """The probability that a normal variate is below x (26.2.29)."""
    return 0.5 * erfc(-math.sqrt(0.5) * x)


@_in_float64
def ndtri(p: np.ndarray) -> np.ndarray:
    """The x below which a normal variate lies with probability p (26.2.3 and 7.1.22)."""
    outer = (p < 0.25) | (p > 0.75)
    q = np.minimum(p, 1 - p)
    tail = np.copysign(_inverse_erfc(np.where(outer & (q > 0), 2 * q, 0.5)), p - 0.5)
    middle = erfinv(np.where(outer, 0.0, 2 * p - 1))
    end = np.where(q == 0, np.copysign(np.inf, p - 0.5), np.nan)
    return np.where(q > 0, math.sqrt(2) * np.where(outer, tail, middle), end)


@_in_float64
def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of lgamma: reflection (6.3.7), recurrence (6.3.5), asymptotic series (6.3.18)."""
    reflected = x < 0
    shifted = np.where(reflected, 1 - x, x)
    total = np.zeros_like(shifted)
    for _ in range(int(_DIGAMMA_ASYMPTOTIC)):
        small = shifted < _DIGAMMA_ASYMPTOTIC
        total = total - np.where(small, 1 / shifted, 0.0)
        shifted = shifted + small
    terms = [0.0, *(number / (2 * k) for k, number in enumerate(_BERNOULLI, start=1))]
    value = total + np.log(shifted) - 0.5 / shifted - _polynomial(terms, shifted**-2.0)
    remainder = x - np.round(x)
    below = np.where(remainder == 0, np.nan, value - np.pi / np.tan(np.pi * remainder))
    value = np.where(reflected, below, value)
    return np.where(x == 0, -np.copysign(np.inf, x), np.where(x == -np.inf, np.nan, value))


def _bessel(order: int, scaled: bool) -> Function:
    """I_order(x), times exp(-|x|) if scaled; order 0 or 1.

    Integrates 9.6.16 and 9.6.19 by the trapezoidal rule, which converges exponentially for a periodic function; uses
    the power series 9.6.10 for small arguments and the asymptotic series 9.7.1 for large ones.
    """
    angles = 2 * np.pi * np.arange(256) / 256
    series = [1 / (4**k * math.factorial(k) * math.factorial(k + order)) for k in range(15)]
    steps = [-(4 * order**2 - (2 * k - 1) ** 2) / (8 * k) for k in range(1, 9)]
    asymptotic = np.cumprod([1, *steps])

    def value(x: np.ndarray) -> np.ndarray:
        a = np.abs(x)
        small, moderate = np.minimum(a, 1.0), np.clip(a, 1.0, _BESSEL_ASYMPTOTIC)
        large = np.maximum(a, _BESSEL_ASYMPTOTIC)
        waves = np.exp(-2 * moderate[..., None] * np.sin(angles / 2) ** 2) * np.cos(order * angles)
        of_small = _polynomial(series, small**2) * (small / 2) ** order * np.exp(-small)
        of_large = _polynomial(asymptotic, 1 / large) / np.sqrt(2 * np.pi * large)
        result = np.where(a < 1, of_small, np.where(a < _BESSEL_ASYMPTOTIC, waves.mean(-1), of_large))
        if not scaled:
            # In two halves, because the exponential overflows first.
            result = np.where(a == np.inf, np.inf, result * np.exp(a / 2) * np.exp(a / 2))
        return np.asarray(np.copysign(result, x) if order else result)

    return _in_float64(value)


FUNCTIONS: dict[str, Function] = {
    "erf": erf,
    "erfc": erfc,
    "erfcx": erfcx,
    "erfinv": erfinv,
    "ndtr": ndtr,
    "ndtri": ndtri,
    "lgamma": lgamma,
    "digamma": digamma,
    "bessel_i0": _bessel(0, scaled=False),
    "bessel_i0e": _bessel(0, scaled=True),
    "bessel_i1": _bessel(1, scaled=False),
    "bessel_i1e": _bessel(1, scaled=True),
}
