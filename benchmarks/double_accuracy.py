"""The accuracy of the elementwise functions of float64: `make accuracy`, or `python -m benchmarks.double_accuracy`.

Each function runs on the present device, on random bits, in its usual range and on all special values, and is compared
with more accurate values: NumPy's in longdouble if that has more digits than float64, else mpmath's (which must be
installed). Errors are in units in the last place of the exact result; a wrong infinity, NaN or sign of zero is an
infinite error. A device may treat denormal arguments and results as zero.
"""
from __future__ import annotations

import argparse
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy import special

Doubles = np.ndarray[Any, np.dtype[np.float64]]
Exact = np.ndarray[Any, np.dtype[np.longdouble]]

SMALLEST_NORMAL = 2.0**-1022
HUGE = np.longdouble(2.0) ** 1024


def edges() -> Doubles:
    """Special values, thresholds of the functions, and the neighbours of all of them."""
    values = [0.0, 1.0, 0.5, 2.0, 3.0, 0.25, 0.75, 1.5, 2.5, 6.0, 8.0, 5.0, 0.7, math.inf, 1.7976931348623157e308]
    values += [SMALLEST_NORMAL, 5e-324, 1e-310, 2.0**52 + 0.5, 2.0**53, 2.0**63, 709.782712893384, 745.1332191019411]
    values += [708.3964185322641, 1024.0, 1074.0, 1075.0, 710.4758600739439, math.pi, math.pi / 2, math.pi / 4, 1e22]
    values += [math.sqrt(0.5), math.sqrt(2), 1e10, 1e300, 2.0**1022, 26.543, 27.226, 38.5, 1e6, 1e15]
    both = np.array(values + [-value for value in values])
    with np.errstate(over="ignore"):
        near = [np.nextafter(both, end) for end in (-np.inf, np.inf)]
    return np.concatenate([both, *near, np.array([np.nan, -np.nan])])


def samples(low: float, high: float, arity: int, count: int) -> tuple[Doubles, Doubles]:
    """Arguments: all edges (in pairs), random bits, numbers in [low, high], their powers towards 0, 1 and pi/2."""
    rng = np.random.default_rng(7)
    grid = np.meshgrid(edges(), edges() if arity == 2 else np.zeros(1))
    bits = rng.integers(0, 2**64, (2, count), dtype=np.uint64).view(np.float64)
    inside = rng.uniform(low, high, (2, 2 * count))
    fine = rng.uniform(-1, 1, (2, count)) ** 9
    turns = rng.integers(-1000, 1000, count) * (math.pi / 2)
    x = np.concatenate([grid[0].ravel(), bits[0], inside[0], fine[0], 1 + fine[0], turns])
    y = np.concatenate([grid[1].ravel(), bits[1], inside[1], fine[1], inside[1][:count], 1 + fine[1]])
    return x, y


def units(found: Doubles, exact: Exact, size: Exact) -> Doubles:
    """Distance in units in the last place of `exact`, or of `size` if that is greater.

    2^1024 stands for infinity beside finite numbers; a wrong NaN, infinity or sign of zero is an infinite error.
    """
    scale = np.fmax(np.abs(exact), size)
    exponents = np.frexp(np.clip(scale, SMALLEST_NORMAL, HUGE / 2))[1] - 1
    distance = np.abs(np.clip(found.astype(np.longdouble), -HUGE, HUGE) - np.clip(exact, -HUGE, HUGE))
    result = np.asarray(np.ldexp(distance, 52 - exponents), np.float64)
    result[(np.abs(exact) < SMALLEST_NORMAL) & (found == 0)] = 0
    special = np.isnan(exact) | np.isinf(exact) | ((exact == 0) & (size == 0))
    same = (np.isnan(exact) & np.isnan(found)) | ((found == exact) & (np.signbit(found) == np.signbit(exact)))
    result[special] = np.where(same[special], 0, np.inf)
    result[np.isnan(found) & ~np.isnan(exact)] = np.inf
    return result


def _rounded(value: Any) -> np.longdouble:
    """A number of mpmath in two doubles."""
    head = float(value)
    if not math.isfinite(head) or head == 0:
        return np.longdouble(head)
    return np.longdouble(head) + np.longdouble(float(value - mpmath.mpf(head)))


def _by_numbers(function: Callable[[Any], Any]) -> Callable[[Exact], Exact]:
    """A function of mpmath at every finite number."""

    def value(x: float) -> np.longdouble:
        with mpmath.workprec(140):
            return _rounded(function(mpmath.mpf(x)))

    return lambda x: np.array([value(float(one)) for one in x], np.longdouble).reshape(x.shape)


def _with_ends(inside: Callable[[Exact], Exact], low: float, at_low: float, high: float, at_high: float) -> Any:
    """`inside` between low and high; the values at and beyond both."""

    def value(x: Exact) -> Exact:
        result = np.full(x.shape, np.nan, np.longdouble)
        between = (x > low) & (x < high)
        result[between] = inside(x[between])
        result[x <= low] = at_low
        result[x >= high] = at_high
        return result

    return value


def _inside(function: Any, low: float, high: float) -> Any:
    """The inverse of a function with values between low and high; it maps these ends to the infinities."""
    between = _with_ends(_by_numbers(function), low, -math.inf, high, math.inf)
    return lambda x: np.where((x < low) | (x > high), np.nan, between(x))


def _erfcx(x: Any) -> Any:
    """From 40 on by the asymptotic series (Abramowitz and Stegun 7.1.23)."""
    if x < 40:
        return mpmath.exp(x * x) * mpmath.erfc(x)
    steps = [-(2 * k - 1) / (2 * x * x) for k in range(1, 12)]
    return mpmath.fsum(mpmath.fprod(steps[:k]) for k in range(12)) / (x * mpmath.sqrt(mpmath.pi))


def _ndtri(p: Any) -> Any:
    """Newton's method for the logarithm of the probability of the nearer tail."""
    tail = min(p, 1 - p)
    if tail > 0.25:
        return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)
    x = -mpmath.sqrt(-2 * mpmath.log(tail))
    for _ in range(14):
        below = mpmath.erfc(-x / mpmath.sqrt(2)) / 2
        density = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
        x -= mpmath.log(below / tail) * below / density
    return x if p < 0.5 else -x


def _erfinv(x: Any) -> Any:
    if abs(x) < 0.5:
        return mpmath.erfinv(x)
    found = _ndtri((1 - abs(x)) / 2) / mpmath.sqrt(2)
    return -found if x > 0 else found


def _bessel(order: int, scaled: bool) -> Callable[[Any], Any]:
    def value(x: Any) -> Any:
        a = abs(x)
        scale = mpmath.exp(-a) if scaled else 1
        if a < 300:
            result = mpmath.besseli(order, a) * scale
        else:  # Abramowitz and Stegun 9.7.1
            steps = [-(4 * order**2 - (2 * k - 1) ** 2) / (8 * k * a) for k in range(1, 12)]
            terms = [mpmath.fprod(steps[:k]) for k in range(len(steps) + 1)]
            result = mpmath.fsum(terms) / mpmath.sqrt(2 * mpmath.pi * a) * (1 if scaled else mpmath.exp(a))
        return -result if order and x < 0 else result

    return value


def _odd(function: Any) -> Any:
    """mpmath has no signed zeros."""
    return lambda x: np.where(x == 0, x, function(x))


def _logistic(x: Exact) -> Exact:
    return np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x)))


def _power(x: Exact, y: Exact) -> Exact:
    """glibc's powl returns wrong powers of infinities for some large exponents."""
    infinite = np.power(x.astype(np.float64), y.astype(np.float64))
    return np.where(np.isinf(x) | np.isinf(y), infinite, np.power(x, y))


def _lgamma(x: Any) -> Any:
    if x <= 0 and x == mpmath.floor(x):
        return mpmath.inf
    return mpmath.log(abs(mpmath.gamma(x))) if abs(x) < 200 else mpmath.re(mpmath.loggamma(x))


def _digamma(x: Any) -> Any:
    return mpmath.nan if x <= 0 and x == mpmath.floor(x) else mpmath.digamma(x)


def _digamma_with_poles(x: Exact) -> Exact:
    value = _with_ends(_by_numbers(_digamma), -_INFINITY, math.nan, _INFINITY, _INFINITY)(x)
    return np.where(x == 0, -np.copysign(np.inf, x), value)


def _terms_of_lgamma(x: Exact) -> Exact:
    return np.where(x < 0, np.fmax(1, np.array([abs(math.lgamma(min(abs(a), 1e300) or 1)) for a in x])), 0)


def _terms_of_digamma(x: Exact) -> Exact:
    distance = x - np.round(x)
    terms = np.abs(np.log(1 + np.abs(x))) + 1 / np.abs(x) + np.abs(np.pi / np.tan(np.pi * distance))
    return np.where((x < 0) & (distance != 0), terms, 0)


@dataclass(frozen=True)
class Worst:
    """The largest error found, and where."""

    units: float
    arguments: tuple[float, ...]


@dataclass(frozen=True)
class Case:
    """A function: its reference, its usual range, its bound in units, its arity, and the `count` of random arguments.

    `size`, if given, is a magnitude whose unit counts if it is greater than that of the result. `within` bounds the
    arguments.
    """

    reference: Callable[..., Any]
    low: float = -10.0
    high: float = 10.0
    bound: float = 4.0
    arity: int = 1
    count: int = 4000
    size: Callable[..., Any] | None = None
    within: tuple[float, float] = (-math.inf, math.inf)


def _special(function: Any, low: float, high: float, ends: tuple[float, float, float, float], **rest: Any) -> Case:
    return Case(_with_ends(_by_numbers(function), *ends), low, high, count=500, **rest)


_INFINITY = math.inf
_EVERYWHERE = (-_INFINITY, _INFINITY, _INFINITY, _INFINITY)

CASES = {
    "exp": Case(np.exp, -745, 710),
    "exp2": Case(np.exp2, -1075, 1025),
    "expm1": Case(np.expm1, -40, 710),
    "logistic": Case(_logistic, -745, 40),
    "tanh": Case(np.tanh),
    "sinh": Case(np.sinh, -711, 711),
    "cosh": Case(np.cosh, -711, 711),
    "cbrt": Case(np.cbrt),
    "sqrt": Case(np.sqrt, 0, 10),
    "rsqrt": Case(lambda x: 1 / np.sqrt(x), 0, 10),
    "log": Case(np.log, 0, 10),
    "log2": Case(np.log2, 0, 10),
    "log1p": Case(np.log1p, -1, 10),
    "asinh": Case(np.arcsinh),
    "acosh": Case(np.arccosh, 1, 10),
    "atanh": Case(np.arctanh, -1, 1),
    "asin": Case(np.arcsin, -1, 1),
    "acos": Case(np.arccos, -1, 1),
    "atan": Case(np.arctan),
    "sin": Case(np.sin, -100, 100),
    "cos": Case(np.cos, -100, 100),
    "tan": Case(np.tan, -100, 100),
    "atan2": Case(np.arctan2, arity=2),
    "pow": Case(_power, 0, 40, arity=2),
    "divide": Case(np.divide, arity=2),
    "fmod": Case(np.fmod, bound=0.0, arity=2),
    "remainder": Case(np.remainder, bound=1.0, arity=2),
    "multiply_by_zero": Case(lambda x, y: x * np.copysign(0, y), bound=0.0, arity=2),
    "divide_by_zero": Case(lambda x, y: x / np.copysign(0, y), bound=0.0, arity=2),
    "divide_zero": Case(lambda x, y: np.copysign(0, x) / y, bound=0.0, arity=2),
    "sign": Case(np.sign, bound=0.0),
    "ceil": Case(np.ceil, bound=0.0),
    "truncate": Case(np.trunc, bound=0.0),
    "round": Case(np.round, bound=0.0),
    "isnan": Case(np.isnan, bound=0.0),
    "erf": Case(_odd(_with_ends(_by_numbers(mpmath.erf), -30, -1, 30, 1)), -4, 4, count=500),
    "erfc": _special(mpmath.erfc, -4, 27, (-30, 2, 30, 0)),
    "erfcx": _special(_erfcx, -26, 50, (-30, _INFINITY, _INFINITY, 0)),
    "ndtr": _special(lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2, -38, 9, (-42, 0, 42, 1)),
    "erfinv": Case(_odd(_inside(_erfinv, -1, 1)), -1, 1, count=200),
    "ndtri": Case(_inside(_ndtri, 0, 1), 0, 1, count=200, size=lambda p: np.full(p.shape, SMALLEST_NORMAL)),
    "lgamma": _special(_lgamma, -20, 20, _EVERYWHERE, size=_terms_of_lgamma),
    "digamma": Case(
        _digamma_with_poles, -20, 20, count=500, size=_terms_of_digamma, within=(-1e6, math.inf)
    ),
    "bessel_i0": _special(_bessel(0, False), -713, 713, (-800, _INFINITY, 800, _INFINITY)),
    "bessel_i0e": _special(_bessel(0, True), -30, 30, (-_INFINITY, 0, _INFINITY, 0)),
    "bessel_i1": Case(
        _odd(_with_ends(_by_numbers(_bessel(1, False)), -800, -_INFINITY, 800, _INFINITY)), -713, 713, count=500
    ),
    "bessel_i1e": Case(
        _odd(_with_ends(_by_numbers(_bessel(1, True)), -_INFINITY, -0.0, _INFINITY, 0)), -30, 30, count=500
    ),
}


def flushed(values: Doubles) -> Doubles:
    """Denormal numbers replaced by zeros of their sign."""
    return np.where(np.abs(values) < SMALLEST_NORMAL, np.copysign(0, values), values)


def worst_of(case: Case, call: Callable[[Doubles, Doubles], Doubles], x: Doubles, y: Doubles) -> Worst:
    """The largest error of `call` on the arguments `x`, and `y` if it takes two."""
    found = call(x, y)
    best = np.full(len(x), np.inf)
    with np.errstate(all="ignore"):
        for chosen in ((x, y), (flushed(x), flushed(y))):
            arguments = [argument.astype(np.longdouble) for argument in chosen[: case.arity]]
            exact = np.asarray(case.reference(*arguments), np.longdouble)
            size = np.zeros_like(exact) if case.size is None else np.asarray(case.size(*arguments), np.longdouble)
            best = np.minimum(best, units(found, exact, size))
    worst = int(np.argmax(best))
    return Worst(float(best[worst]), (float(x[worst]), float(y[worst]))[: case.arity])


def arguments_of(case: Case, times: int = 1) -> tuple[Doubles, Doubles]:
    """The arguments for a function, with `times` its usual number of random ones."""
    x, y = samples(case.low, case.high, case.arity, times * case.count)
    low, high = case.within
    inside = ~((x < low) | (x > high))
    return x[inside], y[inside]


# Functions with other names than in lavax.numpy, or from other modules.
_OTHERS = {
    "logistic": special.expit,
    **{f"bessel_{name}": getattr(special, name) for name in ("i0", "i0e", "i1", "i1e")},
    **{name: getattr(special, name) for name in ("erf", "erfc", "erfcx", "erfinv", "ndtr", "ndtri")},
    **{name: getattr(special, name) for name in ("lgamma", "digamma")},
}
# Functions that have no name there.
INNER = frozenset(("divide_zero", "divide_by_zero", "multiply_by_zero", "truncate"))


def _ours(name: str, arity: int) -> Callable[[Doubles, Doubles], Doubles]:
    function = _OTHERS.get(name) or getattr(lnp, name)

    def call(x: Doubles, y: Doubles) -> Doubles:
        with lx.enable_x64():
            return np.asarray(function(*map(lnp.asarray, (x, y)[:arity])), np.float64)

    return call


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.double_accuracy", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions to measure; all if none is given")
    parser.add_argument("--times", type=int, default=4, help="how many times the arguments that the tests try")
    options = parser.parse_args()
    device = lx.default_device()
    print(f"{device.name}, {device.driver}; Python {platform.python_version()}\n")
    print("| function of float64 | worst error found | where | bound | |")
    print("|---|---|---|---|---|")
    for name, case in CASES.items():
        if name in INNER or (options.names and name not in options.names):
            continue
        worst = worst_of(case, _ours(name, case.arity), *arguments_of(case, options.times))
        where = ", ".join(f"{argument:.17g}" for argument in worst.arguments)
        met = "met" if worst.units <= case.bound else "missed"
        print(f"| {name} | {worst.units:.2f} | {where} | {case.bound:g} | {met} |", flush=True)


if __name__ == "__main__":
    main()
