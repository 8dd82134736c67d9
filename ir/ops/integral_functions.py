"""Incomplete gamma functions, exponential integrals and zeta functions in float64: the evaluation of the operations.

Numbers name formulas of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov).
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from lavax.ir.ops.special_functions import digamma, lgamma

Array = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Function = Callable[..., np.ndarray]

_STEPS = 400
# When the incomplete gamma functions are computed from their integral.
_LARGE, _WIDTH = 50.0, 0.4
# B(2k) / (2k)!, k from 1 on.
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600)


def _elementwise(function: Callable[..., Array]) -> Function:
    """`function` on float64 arrays, without warnings for divisions by zero."""

    def evaluate(*arrays: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(function(*(np.asarray(array, np.float64) for array in arrays)))

    return evaluate


def log1p_less(m: Array) -> Array:
    """log(1 + m) - m, accurate near 0 too."""
    r = m / (2 + m)
    square, series = r * r, np.zeros_like(m)
    for k in range(19, -1, -1):
        series = (series + 2 / (2 * k + 3)) * square
    return np.where(np.abs(m) < 0.4, r * series - m * r, np.log1p(m) - m)


def _evaluated_where(chosen: Mask, function: Function, *arrays: Array) -> Array:
    """The function of the chosen elements alone, which take hundreds of steps each; else 0."""
    found = np.zeros(chosen.shape)
    if chosen.any():
        found[chosen] = function(*(array[chosen] for array in arrays))
    return found


def _fraction(a: Array, x: Array) -> Array:
    """Gamma(a, x) e^x x^-a for x >= 1 (8.9.2)."""
    last = 200
    tail = x + 2 * last + 1 - a
    for n in range(last, 0, -1):
        tail = x + 2 * n - 1 - a - n * (n - a) / tail
    return np.asarray(1 / tail)


@cache
def _gauss_legendre() -> tuple[Array, Array]:
    """The nodes and weights of the rule: computed late, because that takes 5 ms."""
    return np.polynomial.legendre.leggauss(100)


def smaller_gamma_integral(a: Array, x: Array) -> Array:
    """The upper integral if x >= a, else the lower one, for large `a` near `x`, by Gauss-Legendre quadrature."""
    weight = np.exp(a * log1p_less((x - a) / a) - 1 / (12 * a) + 1 / (360 * a**3)) * np.sqrt(a / (2 * np.pi)) / x
    length = np.minimum(40 * x / np.abs(x - a), 10 * x / np.sqrt(a))
    length = np.where(x < a, -np.minimum(length, x), length)  # the lower integral ends at 0
    total = np.zeros_like(a)
    for node, share in zip(*_gauss_legendre(), strict=True):
        t = length * ((node + 1) / 2)
        total += share / 2 * np.exp((a - 1) * log1p_less(t / x) - t * ((x - a + 1) / x))
    return np.asarray(weight * np.abs(length) * total)


def _log_gamma_slope(a: Array) -> Array:
    """log(gamma(1 + a)) / a (5.7.3 near 0)."""
    near = -np.euler_gamma + a * (math.pi**2 / 12 - a * 0.40068563438653143)
    return np.where(np.abs(a) < 1e-5, near, lgamma(1 + a) / a)


def _corner(a: Array, x: Array, upper: bool) -> Array:
    """For a < 1 and x < 2 (8.7.1)."""
    u = a * (np.log(x) - _log_gamma_slope(a))
    term, total = np.ones_like(x), np.zeros_like(x)
    for k in range(1, 40):
        term = term * (-x / k)
        total += term / (a + k)
    return np.asarray(-np.expm1(u) - np.exp(u) * a * total if upper else np.exp(u) * (1 + a * total))


def _series(a: Array, x: Array) -> Array:
    """The sum of x^k / ((a + 1) ... (a + k)) (8.7.1)."""
    term, total = np.ones_like(x), np.ones_like(x)
    for k in range(1, _STEPS):
        term = term * (x / (a + k))
        total += term
    return total


def _gamma_integral(upper: bool) -> Function:
    def function(a: Array, x: Array) -> Array:
        a, x = np.broadcast_arrays(a, x)
        usable = (a > 0) & (x > 0) & (a < np.inf) & (x < np.inf)
        p, y = np.where(usable, a, 1.0), np.where(usable, x, 1.0)
        near = (p > _LARGE) & (np.abs(y - p) < _WIDTH * p)
        corner = (p < 1) & (y < 2)
        weight = np.exp(p * np.log(y) - y - lgamma(p + 1))
        far = np.where(p > 1e4, (y < p) * 1.0, 0.0)
        by_fraction = (y > p) & (y >= 2)
        q = weight * p * _evaluated_where(by_fraction, _fraction, p, y)
        lower = np.where(by_fraction, 1 - q, weight * _evaluated_where(~by_fraction, _series, p, y))
        part = np.where(by_fraction, q, 1 - lower) if upper else lower
        part = np.where(p > 1e4, far if upper else 1 - far, part)
        part = np.where(corner, _evaluated_where(corner, partial(_corner, upper=upper), p, y), part)
        smaller = _evaluated_where(near, smaller_gamma_integral, p, y)
        part = np.where(near, np.where((y < p) != upper, smaller, 1 - smaller), part)
        empty = (x == 0) & (a > 0) | (a == np.inf) & (x >= 0) & (x < np.inf)
        full = (a == 0) & (x > 0) | (x == np.inf) & (a >= 0) & (a < np.inf)
        return np.where(usable, part, np.where(empty, float(upper), np.where(full, float(not upper), np.nan)))

    return _elementwise(function)


def _expn(n: Array, x: Array) -> Array:
    """E_n(x) for whole n (8.19.8 and 8.19.17)."""
    usable = (n >= 1) & (x > 0) & (n < np.inf)
    order, y = np.where(usable, np.round(n), 1.0), np.where(usable, np.minimum(x, 1e3), 1.0)
    small = y < 2
    term, total = np.ones_like(y), np.zeros_like(y)
    logarithmic = -np.euler_gamma - np.log(y)  # digamma(m + 1) - log(y) (5.4.14)
    for m in range(40):
        distance = order - 1 - m
        total += term * np.where(distance == 0, logarithmic, 1 / np.where(distance == 0, 1.0, distance))
        term = term * (-y / (m + 1))
        logarithmic = logarithmic + 1 / (m + 1)
    found = np.where(small, total, np.exp(-y) * _fraction(1 - order, np.where(small, 9.0, y)))
    found = np.where(order > 1e9, np.exp(-y) / (y + order), found)
    found = np.where(n == np.inf, 0.0, np.where(n == 0, np.exp(-x) / x, found))
    found = np.where(x == 0, np.where(n > 1, 1 / (n - 1), np.inf), found)
    return np.where((n >= 0) & (x >= 0) & (np.floor(n) == n), found, np.nan)


def _expi(x: Array) -> Array:
    """Ei(x) (6.6.2 and 6.12.2)."""
    y = np.where((x > 0) & (x < np.inf), x, 1.0)
    moderate, large = np.minimum(y, 40.0), np.maximum(y, 40.0)
    term, total = np.ones_like(y), np.log(moderate) + np.euler_gamma
    for k in range(1, 170):
        term = term * (moderate / k)
        total += term / k
    series = np.ones_like(y)
    for k in range(40, 0, -1):
        series = 1 + series * k / large
    positive = np.where(y < 40, total, np.exp(large - np.log(large)) * series)
    below = np.where(x == -np.inf, -0.0, -_expn(np.ones_like(x), np.abs(x)))
    return np.where(x > 0, np.where(x == np.inf, np.inf, positive), np.where(x == 0, -np.inf, below))


def _log_zeta(s: Array, q: Array) -> Array:
    """log(zeta(s, q)) for s > 1 and q > 0 (25.11.5 and 2.10.1)."""
    total = np.zeros_like(q)
    for k in range(10):
        total += np.exp(-s * np.log1p(k / q))
    w = q + 10
    last = np.exp(-s * np.log1p(10 / q))
    factor, tail = last * s / w, last * (w / (s - 1) + 0.5)
    for k, number in enumerate(_BERNOULLI):
        tail = tail + np.where(last > 0, factor * number, 0.0)
        factor = factor * ((s + 2 * k + 1) / w) * ((s + 2 * k + 2) / w)
    return np.asarray(np.log(total + tail) - s * np.log(q))


def _zeta(s: Array, q: Array) -> Array:
    usable = (s > 1) & (q > 0) & (s < np.inf) & (q < np.inf)
    found = np.exp(_log_zeta(np.where(usable, s, 2.0), np.where(usable, q, 1.0)))
    pole = (s == 1) | (q <= 0) & (np.floor(q) == q)
    edge = np.where((s >= 1) & pole, np.inf, np.where((s > 1) & (q == np.inf), 0.0, np.nan))
    ends = np.where(q < 1, np.inf, np.where(q > 1, 0.0, 1.0))
    return np.where(usable, found, np.where((s == np.inf) & (q > 0), ends, edge))


def _polygamma(n: Array, x: Array) -> Array:
    """The derivative of digamma of whole order n (5.15.1 and 25.11.12)."""
    usable = (n >= 1) & (x > 0) & (n < np.inf) & (x < np.inf)
    order = np.where(usable, n, 1.0)
    found = np.exp(lgamma(order + 1) + _log_zeta(order + 1, np.where(usable, x, 1.0)))
    pole = (n >= 1) & (x <= 0) & (np.floor(x) == x)
    edge = np.where(pole, np.inf, np.where((n >= 1) & (x == np.inf), 0.0, np.nan))
    found = np.where(usable, found, edge) * np.where(np.remainder(n, 2) == 0, -1, 1)
    return np.where(n == 0, digamma(x), np.where(np.floor(n) == n, found, np.nan))


def _beta_fraction(a: Array, b: Array, x: Array) -> Array:
    """The continued fraction 8.17.22."""
    tail = np.ones_like(x)
    for m in range(600, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -((a + m) / (a + 2 * m)) * ((a + b + m) / (a + 2 * m + 1)) * x
        tail = 1 + even / (1 + odd / tail)
    return np.asarray(1 / (1 - (a + b) / (a + 1) * x / tail))


def _betainc(a: Array, b: Array, x: Array) -> Array:
    usable = (a > 0) & (b > 0) & (a < np.inf) & (b < np.inf) & (x > 0) & (x < 1)
    p, q, t = np.where(usable, a, 1.0), np.where(usable, b, 1.0), np.where(usable, x, 0.25)
    swapped = (t > (p + 1) / (p + q + 2)) & (t * q > 1e-12 * q + 2)
    inside = np.where(swapped, 1 - t, t)
    first, second = np.where(swapped, q, p), np.where(swapped, p, q)
    small, large = np.minimum(p, q), np.maximum(p, q)
    vast = large > 1e12 * np.maximum(1.0, small**2)
    step = np.where(vast, small * np.log(large), lgamma(p + q) - lgamma(large))
    logarithm = p * np.log(t) + q * np.log1p(-t) + step - lgamma(small)
    part = np.exp(logarithm) / first * _beta_fraction(first, second, inside)
    edge = np.where((a > 0) & (b > 0) & (a < np.inf) & (b < np.inf) & ((x == 0) | (x == 1)), x, np.nan)
    # Beyond the precision of the logarithms, a step at the mean.
    step_at_mean = np.where(t * q < (1 - t) * p, 0.0, np.where(t * q > (1 - t) * p, 1.0, 0.5))
    found = np.where(small > 1e12, step_at_mean, np.where(swapped, 1 - part, part))
    return np.where(usable, found, edge)


# Functions of one argument, of two and of three.
UNARY: dict[str, Function] = {"expi": _elementwise(_expi)}
BINARY: dict[str, Function] = {
    "gammainc": _gamma_integral(upper=False),
    "gammaincc": _gamma_integral(upper=True),
    "expn": _elementwise(_expn),
    "zeta": _elementwise(_zeta),
    "polygamma": _elementwise(_polygamma),
}
TERNARY: dict[str, Function] = {"betainc": _elementwise(_betainc)}
