"""The gamma function, quotients of its values, and the Box-Cox power in float64: the evaluation of the operations."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Function = Callable[..., np.ndarray]

_LARGE = 100.0  # for larger arguments, quotients are computed from logarithms


def _of_numbers(function: Callable[..., float], arity: int) -> Function:
    def evaluate(*arrays: np.ndarray) -> np.ndarray:
        values = np.frompyfunc(function, arity, 1)(*(array.astype(np.float64) for array in arrays))
        return np.asarray(values).astype(np.float64)

    return evaluate


def _is_pole(x: float) -> bool:
    return x == -math.inf or (x < 0 and math.floor(x) == x)


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    if _is_pole(x):
        return math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf


def _factorial(x: float) -> float:
    return 0.0 if x < 0 else _gamma(x + 1)


def _parts(x: float) -> tuple[float, float]:
    """log|gamma(x)| and the sign of gamma(x), except at poles."""
    return math.lgamma(x), -1.0 if x < 0 and math.floor(x) % 2 == 1 else 1.0


def _inverse(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1 / x


def _beta(a: float, b: float) -> float:
    total = a + b
    if math.isnan(total) or any(map(_is_pole, (a, b, total))):
        return math.nan
    if max(abs(a), abs(b)) == math.inf:
        return 0.0 if min(a, b) > 0 else math.nan
    if min(abs(a), abs(b)) < 1e-20 or max(abs(a), abs(b)) < 1e-10:
        return _inverse(a) + _inverse(b)
    if total == 0:
        return 0.0
    if max(abs(a), abs(b)) < _LARGE:
        return _gamma(a) * _gamma(b) / _gamma(total)
    (first, sign), (second, other), (whole, last) = map(_parts, (a, b, total))
    return sign * other * last * float(np.exp(_exponent(first, second, whole, a, b)))


def _exponent(first: float, second: float, whole: float, a: float, b: float) -> float:
    """log|B(a, b)|; if one argument is far greater than the other, from gamma(x + s) / gamma(x) = x^s."""
    small, large = (a, b) if abs(a) < abs(b) else (b, a)
    if abs(large) > 1e12 * max(1.0, small * small):
        return math.lgamma(small) - small * math.log(abs(large))
    return first + second - whole


def _poch(z: float, m: float) -> float:
    if m == 0:
        return 1.0
    end = z + m
    if abs(m) < _LARGE and math.floor(m) == m and math.isfinite(z) and not _is_pole(z) and end != 0 and z != 0:
        product = math.prod(z + k for k in range(int(min(m, 0)), int(max(m, 0))))
        return product if m > 0 else math.nan if product == 0 else 1 / product
    if not (math.isfinite(z) and math.isfinite(m)) or _is_pole(z) or _is_pole(end):
        return math.nan
    if end == 0:
        return math.inf
    if z == 0:
        return 0.0
    if abs(z) > 1e12 * max(1.0, m * m):
        return float(np.power(abs(z), m)) if z > 0 else math.nan
    if max(abs(z), abs(end)) < _LARGE:
        return _gamma(end) / _gamma(z)
    (above, sign), (below, other) = _parts(end), _parts(z)
    return sign * other * float(np.exp(above - below))


def _box_and_cox(logarithm: Function) -> Function:
    def function(x: np.ndarray, power: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            grown = logarithm(x.astype(np.float64))
            flat = np.abs(power) < 1e-40
            safe = np.where(flat, 1.0, power)
            quotient = np.expm1(safe * grown) / safe
            above = np.where(power > 0, np.inf, 0.0)
            limit = np.where(grown > 0, above, np.where(power > 0, -0.0, -np.inf))
            limit = np.where((grown == 0) | np.isnan(grown), np.abs(grown), limit)
            quotient = np.where(np.isinf(power), limit, quotient)
            return np.asarray(np.where(flat, grown, quotient))

    return function


def _kl_div(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x log(x / y) - x + y, from the series of m - log(1 + m) if m is small."""
    usable = (x > 0) & (y > 0) & (x < np.inf) & (y < np.inf)
    p, q = np.where(usable, x, 1.0).astype(np.float64), np.where(usable, y, 1.0).astype(np.float64)
    near = np.abs(q - p) < 0.4 * p
    m = np.where(near, (q - p) / p, 0.0)
    r = m / (2 + m)
    series = sum(2 * r ** (2 * k + 2) / (2 * k + 3) for k in range(20))
    found = np.where(near, p * (m * r - r * series), p * (np.log(p) - np.log(q) - 1) + q)
    edge = np.where(np.isnan(x) | np.isnan(y) | (x > 0) & (y > 0), np.nan, np.where((x == 0) & (y >= 0), y, np.inf))
    return np.asarray(np.where(usable, found, edge))


def _quiet(function: Function) -> Function:
    def evaluate(*arrays: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(*arrays)

    return evaluate


UNARY: dict[str, Function] = {"gamma": _of_numbers(_gamma, 1), "factorial": _of_numbers(_factorial, 1)}
BINARY: dict[str, Function] = {
    "beta": _quiet(_of_numbers(_beta, 2)),
    "poch": _quiet(_of_numbers(_poch, 2)),
    "kl_div": _quiet(_kl_div),
    "boxcox": _box_and_cox(np.log),
    "boxcox1p": _box_and_cox(np.log1p),
}
