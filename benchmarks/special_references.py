"""Special functions in float64 for the accuracy table: SciPy's, or our own if SciPy has none or is inaccurate."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from lavax.ir.ops.integral_functions import log1p_less, smaller_gamma_integral

Doubles = np.ndarray[Any, np.dtype[np.float64]]

# SciPy's incomplete gamma functions are inaccurate near their transition for parameters of some thousands and more.
_LARGE_PARAMETER = 200.0


def incomplete_gamma(upper: bool) -> Callable[[Doubles, Doubles], Doubles]:
    def exact(a: Doubles, x: Doubles) -> Doubles:
        found = np.array((special.gammaincc if upper else special.gammainc)(a, x))
        near = (a > _LARGE_PARAMETER) & np.isfinite(a) & (np.abs(x - a) < 0.5 * a)
        part = smaller_gamma_integral(a[near], x[near])
        found[near] = np.where((x[near] < a[near]) != upper, part, 1 - part)
        return found

    return exact


def zeta(s: Doubles, q: Doubles) -> Doubles:
    """SciPy's is NaN for large `s`, for which one term is the whole sum."""
    large = (s > 1000) & (q > 0)
    found = np.where(large, np.power(np.where(large, q, 1.0), -s), special.zeta(s, q))
    return np.where(np.isnan(s), np.nan, found)


def factorial(x: Doubles) -> Doubles:
    return np.where(x < 0, 0.0, special.gamma(x + 1))


def expi(x: Doubles) -> Doubles:
    return np.where(x == -np.inf, -0.0, special.expi(x))


def of_order(function: Callable[..., Any], order: int) -> Callable[[Doubles], Doubles]:
    return lambda x: np.asarray(function(order, x))


def on_grid(x: Any) -> Any:
    """The nearest multiple of 2^-10 within 500 of 0, from -500 on; so sums of two are exact in float64, too."""
    return np.clip(np.round(np.nan_to_num(x, nan=1.0, posinf=1.0, neginf=1.0) * 1024) / 1024, -500, 500)


def _is_pole(x: Doubles) -> Doubles:
    return (x < 0) & (np.floor(x) == x)


def beta(a: Doubles, b: Doubles) -> Doubles:
    a, b = on_grid(a), on_grid(b)
    pole = _is_pole(a) | _is_pole(b) | _is_pole(a + b)
    logarithm = special.gammaln(a) + special.gammaln(b) - special.gammaln(a + b)
    sign = special.gammasgn(a) * special.gammasgn(b) * special.gammasgn(a + b)
    small = np.maximum(np.abs(a), np.abs(b)) < 80
    gammas = [special.gamma(np.where(small, number, 1.0)) for number in (a, b, a + b)]
    found = np.where(small, gammas[0] * gammas[1] / gammas[2], sign * np.exp(logarithm))
    of_zero = np.where((a == 0) | (b == 0), 1 / a + 1 / b, found)
    return np.where(pole, np.nan, np.where((a + b == 0) & (a != 0), 0.0, of_zero))


def poch(z: Doubles, m: Doubles) -> Doubles:
    z, m = on_grid(z), on_grid(m)
    pole = (_is_pole(z) | _is_pole(z + m)) & (m != 0)
    end = z + m
    logarithm = special.gammaln(end) - special.gammaln(z)
    found = special.gammasgn(end) * special.gammasgn(z) * np.exp(logarithm)
    small = np.maximum(np.abs(z), np.abs(end)) < 160
    quotient = special.gamma(np.where(small, end, 1.0)) / special.gamma(np.where(small, z, 1.0))
    finite = np.where(end == 0, np.inf, np.where(z == 0, 0.0, np.where(small, quotient, found)))
    return np.where(m == 0, 1.0, np.where(pole, np.nan, finite))


def kl_div(x: Doubles, y: Doubles) -> Doubles:
    """SciPy's loses all digits if the arguments are near each other."""
    near = (np.abs(y - x) < 0.3 * x) & np.isfinite(x)
    p, q = np.where(near, x, 1.0), np.where(near, y, 1.0)
    return np.where(near, -p * log1p_less((q - p) / p), special.kl_div(x, y))


def boxcox(x: Doubles, power: Doubles) -> Doubles:
    """SciPy's treats powers below 1e-19 as 0, at x = 0 too."""
    at_zero = (x == 0) & (power > 0)
    return np.where(at_zero, -1 / np.where(at_zero, power, 1.0), special.boxcox(x, power))


def boxcox1p(x: Doubles, power: Doubles) -> Doubles:
    at_zero = (x == -1) & (power > 0)
    return np.where(at_zero, -1 / np.where(at_zero, power, 1.0), special.boxcox1p(x, power))
