"""The GLSL functions of float64 on the device at hand, against more exact ones.

The bound is four units in the last place of the exact result, over the whole range of float64. The reference is
NumPy's longdouble where that has more digits than float64 and knows the function, else mpmath. Denormal numbers may be
taken as zero and given as zero, as Vulkan lets a device do.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from lavax.backends.vulkan.device import get_device
from lavax.backends.vulkan.emit.expressions import EXPRESSIONS
from lavax.shaders_glsl import elementary_functions
from tests.shaders_glsl.calling import apply

mpmath = pytest.importorskip("mpmath", reason="the exact values of functions of float64 are mpmath's")

Doubles = np.ndarray[Any, np.dtype[np.float64]]
Exact = np.ndarray[Any, np.dtype[np.longdouble]]

SMALLEST_NORMAL = 2.0**-1022
HUGE = np.longdouble(2.0) ** 1024


@pytest.fixture(autouse=True)
def _device_with_float64() -> None:
    if not get_device().profile.float64:
        pytest.skip("the device has no float64")


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
    """Distance in units in the last place of `exact`, or of `size` where that is greater.

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
    """An inverse of a function with values between low and high, whose ends it takes to the infinities."""
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
    """glibc's powl takes infinities to the wrong power for some large exponents."""
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
class Case:
    """A function: its reference, the range it is mostly used in, its bound in units, its arity, and `count`, which
    says how many arguments are tried.

    `size`, if given, is a magnitude whose unit counts where it is greater than that of the result. `within` bounds the
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
    "lx_exp_64": Case(np.exp, -745, 710),
    "lx_exp2_64": Case(np.exp2, -1075, 1025),
    "lx_expm1_64": Case(np.expm1, -40, 710),
    "lx_logistic_64": Case(_logistic, -745, 40),
    "lx_tanh_64": Case(np.tanh),
    "lx_sinh_64": Case(np.sinh, -711, 711),
    "lx_cosh_64": Case(np.cosh, -711, 711),
    "lx_cbrt_64": Case(np.cbrt),
    "lx_sqrt_64": Case(np.sqrt, 0, 10),
    "lx_rsqrt_64": Case(lambda x: 1 / np.sqrt(x), 0, 10),
    "lx_log_64": Case(np.log, 0, 10),
    "lx_log2_64": Case(np.log2, 0, 10),
    "lx_log1p_64": Case(np.log1p, -1, 10),
    "lx_asinh_64": Case(np.arcsinh),
    "lx_acosh_64": Case(np.arccosh, 1, 10),
    "lx_atanh_64": Case(np.arctanh, -1, 1),
    "lx_asin_64": Case(np.arcsin, -1, 1),
    "lx_acos_64": Case(np.arccos, -1, 1),
    "lx_atan_64": Case(np.arctan),
    "lx_sin_64": Case(np.sin, -100, 100),
    "lx_cos_64": Case(np.cos, -100, 100),
    "lx_tan_64": Case(np.tan, -100, 100),
    "lx_atan2_64": Case(np.arctan2, arity=2),
    "lx_pow_64": Case(_power, 0, 40, arity=2),
    "lx_divide_64": Case(np.divide, arity=2),
    "lx_fmod_64": Case(np.fmod, bound=0.0, arity=2),
    "lx_remainder_64": Case(np.remainder, bound=1.0, arity=2),
    "lx_multiply_by_zero_64": Case(lambda x, y: x * np.copysign(0, y), bound=0.0, arity=2),
    "lx_divide_by_zero_64": Case(lambda x, y: x / np.copysign(0, y), bound=0.0, arity=2),
    "lx_divide_zero_64": Case(lambda x, y: np.copysign(0, x) / y, bound=0.0, arity=2),
    "lx_sign_64": Case(np.sign, bound=0.0),
    "lx_ceil_64": Case(np.ceil, bound=0.0),
    "lx_truncate_64": Case(np.trunc, bound=0.0),
    "lx_round_64": Case(np.round, bound=0.0),
    "lx_isnan_64": Case(np.isnan, bound=0.0),
    "lx_erf_64": Case(_odd(_with_ends(_by_numbers(mpmath.erf), -30, -1, 30, 1)), -4, 4, count=500),
    "lx_erfc_64": _special(mpmath.erfc, -4, 27, (-30, 2, 30, 0)),
    "lx_erfcx_64": _special(_erfcx, -26, 50, (-30, _INFINITY, _INFINITY, 0)),
    "lx_ndtr_64": _special(lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2, -38, 9, (-42, 0, 42, 1)),
    "lx_erfinv_64": Case(_odd(_inside(_erfinv, -1, 1)), -1, 1, count=200),
    "lx_ndtri_64": Case(_inside(_ndtri, 0, 1), 0, 1, count=200, size=lambda p: np.full(p.shape, SMALLEST_NORMAL)),
    "lx_lgamma_64": _special(_lgamma, -20, 20, _EVERYWHERE, size=_terms_of_lgamma),
    "lx_digamma_64": Case(
        _digamma_with_poles, -20, 20, count=500, size=_terms_of_digamma, within=(-1e6, math.inf)
    ),
    "lx_bessel_i0_64": _special(_bessel(0, False), -713, 713, (-800, _INFINITY, 800, _INFINITY)),
    "lx_bessel_i0e_64": _special(_bessel(0, True), -30, 30, (-_INFINITY, 0, _INFINITY, 0)),
    "lx_bessel_i1_64": Case(
        _odd(_with_ends(_by_numbers(_bessel(1, False)), -800, -_INFINITY, 800, _INFINITY)), -713, 713, count=500
    ),
    "lx_bessel_i1e_64": Case(
        _odd(_with_ends(_by_numbers(_bessel(1, True)), -_INFINITY, -0.0, _INFINITY, 0)), -30, 30, count=500
    ),
}


def flushed(values: Doubles) -> Doubles:
    """Denormal numbers replaced by zeros of their sign."""
    return np.where(np.abs(values) < SMALLEST_NORMAL, np.copysign(0, values), values)


def assert_within_bound(name: str, x: Doubles, y: Doubles) -> None:
    """Asserts that the function is within its bound of the exact one for these arguments."""
    case = CASES[name]
    found = apply(name, case.arity, x, y)
    best = np.full(len(x), np.inf)
    with np.errstate(all="ignore"):
        for chosen in ((x, y), (flushed(x), flushed(y))):
            arguments = [argument.astype(np.longdouble) for argument in chosen[: case.arity]]
            exact = np.asarray(case.reference(*arguments), np.longdouble)
            size = np.zeros_like(exact) if case.size is None else np.asarray(case.size(*arguments), np.longdouble)
            best = np.minimum(best, units(found, exact, size))
    worst = int(np.argmax(best))
    assert best[worst] <= case.bound, (
        f"{name}({x[worst]!r}, {y[worst]!r}) is {exact[worst]!r}, got {found[worst]!r}: {best[worst]} units; "
        f"{np.count_nonzero(best > case.bound)} of {len(x)} are beyond {case.bound}"
    )


@pytest.mark.parametrize("name", CASES)
def test_function_is_within_its_bound_over_the_whole_range(name: str) -> None:
    case = CASES[name]
    x, y = samples(case.low, case.high, case.arity, case.count)
    low, high = case.within
    inside = ~((x < low) | (x > high))
    assert_within_bound(name, x[inside], y[inside])


def test_power_keeps_its_bound_up_to_the_ends_of_the_range() -> None:
    rng = np.random.default_rng(8)
    x = np.concatenate([np.exp(rng.uniform(-700, 700, 5000)), 1 + 0.5 * rng.uniform(-1, 1, 5000) ** 9])
    x = x[x != 1]
    assert_within_bound("lx_pow_64", x, rng.uniform(-1070, 1024, len(x)) / np.log2(x))


@pytest.mark.parametrize("name", ["lx_sin_64", "lx_cos_64", "lx_tan_64"])
def test_angles_are_reduced_exactly_where_that_is_hardest(name: str) -> None:
    """6381956970095103 2^797 is the double that comes nearest to a multiple of pi/2."""
    nearest = math.ldexp(6381956970095103, 797)
    x = np.array([1e6, 1e15, 1e22, 1e300, nearest, 710.0, 22.0, 355.0, 1.7976931348623157e308])
    assert_within_bound(name, x, x)


def test_every_function_of_floats_has_its_double() -> None:
    named = {f"lx_{operation}" for operation in EXPRESSIONS} | {"lx_pow", "lx_fmod", "lx_remainder"}
    named |= {"lx_multiply_by_zero", "lx_divide_by_zero", "lx_divide_zero"}
    single = named & elementary_functions().keys() - {"lx_threefry"}
    assert "lx_exp" in single
    assert {name for name in single if f"{name}_64" not in elementary_functions()} == set()
