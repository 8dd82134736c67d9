"""The GLSL elementary functions on the device at hand, against NumPy in float64.

The bound is four units in the last place of the exact result, over the whole range of float32. Denormal numbers may
be taken as zero and given as zero, as Vulkan lets a device do.
"""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import special

from benchmarks.accuracy import edges, flushed
from benchmarks.accuracy import units as errors
from lavax.shaders_glsl import elementary_functions, function_source, parse_functions
from tests import denormals
from tests.shaders_glsl.calling import apply

Floats = np.ndarray[Any, np.dtype[np.float32]]
Doubles = np.ndarray[Any, np.dtype[np.float64]]

def samples(low: float, high: float, arity: int) -> tuple[Floats, Floats]:
    """Arguments: all edges (in pairs), random bits, numbers in [low, high], their powers towards 0, 1 and pi/2."""
    rng = np.random.default_rng(7)
    grid = np.meshgrid(edges(), edges() if arity == 2 else np.zeros(1, np.float32))
    bits = rng.integers(0, 2**32, (2, 6000), dtype=np.uint32).view(np.float32)
    inside = rng.uniform(low, high, (2, 6000)).astype(np.float32)
    fine = (rng.uniform(-1, 1, (2, 2000)) ** 9).astype(np.float32)
    around = (1 + fine).astype(np.float32)
    turns = (np.arange(-1000, 1000) * (math.pi / 2)).astype(np.float32)
    x = np.concatenate([grid[0].ravel(), bits[0], inside[0], fine[0], around[0], turns])
    y = np.concatenate([grid[1].ravel(), bits[1], inside[1], fine[1], inside[1][:2000], around[1]])
    return x, y


def inverse_error_function(x: Doubles, start: Doubles) -> Doubles:
    """erfinv by one Newton step from `start`, the result in question: its error shows, and is squared away."""
    slope = 2 / math.sqrt(math.pi) * np.exp(-(start**2))
    tail = np.vectorize(math.erfc)(np.abs(start)) - (1 - np.abs(x))
    body = np.abs(x) - np.vectorize(math.erf)(np.abs(start))
    exact = start + np.copysign(np.where(np.abs(x) > 0.5, tail, body) / slope, x)
    exact = np.where(np.abs(x) == 1, np.copysign(np.inf, x), exact)
    exact = np.where(x == 0, x, exact)
    return np.where(np.abs(x) <= 1, exact, np.nan)


@dataclass(frozen=True)
class Case:
    """A function: its reference in float64, the range it is mostly used in, its bound in units, its arity.

    With `positive`, only arguments from 0 upwards are held to the bound.
    """

    reference: Callable[..., Any]
    low: float = -10.0
    high: float = 10.0
    bound: float = 4.0
    arity: int = 1
    positive: bool = False


CASES = {
    "lx_exp": Case(np.exp, -100, 90),
    "lx_exp2": Case(np.exp2, -150, 130),
    "lx_expm1": Case(np.expm1, -20, 90),
    "lx_logistic": Case(lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))), -90, 20),
    "lx_tanh": Case(np.tanh),
    "lx_sinh": Case(np.sinh, -90, 90),
    "lx_cosh": Case(np.cosh, -90, 90),
    "lx_erf": Case(np.vectorize(math.erf), -4, 4),
    "lx_erfc": Case(np.vectorize(math.erfc), -4, 10),
    "lx_erfcx": Case(special.erfcx, -10, 20),
    "lx_ndtr": Case(special.ndtr, -14, 6),
    "lx_ndtri": Case(special.ndtri, 0, 1),
    "lx_digamma": Case(special.digamma, 0, 20, positive=True),
    "lx_lgamma": Case(special.gammaln, 0, 20, positive=True),
    "lx_bessel_i0": Case(lambda x: np.where(np.isinf(x), np.inf, special.i0(x)), -92, 92),
    "lx_bessel_i0e": Case(special.i0e, -20, 20),
    "lx_bessel_i1": Case(lambda x: np.copysign(np.where(np.isinf(x), x, special.i1(x)), x), -92, 92),
    "lx_bessel_i1e": Case(lambda x: np.copysign(special.i1e(x), x), -20, 20),
    "lx_sqrt": Case(np.sqrt, 0, 10),
    "lx_rsqrt": Case(lambda x: 1 / np.sqrt(x), 0, 10),
    "lx_cbrt": Case(np.cbrt),
    "lx_log": Case(np.log, 0, 10),
    "lx_log2": Case(np.log2, 0, 10),
    "lx_log1p": Case(np.log1p, -1, 10),
    "lx_asinh": Case(np.arcsinh),
    "lx_acosh": Case(np.arccosh, 1, 10),
    "lx_atanh": Case(np.arctanh, -1, 1),
    "lx_asin": Case(np.arcsin, -1, 1),
    "lx_acos": Case(np.arccos, -1, 1),
    "lx_atan": Case(np.arctan),
    "lx_sin": Case(np.sin, -100, 100),
    "lx_cos": Case(np.cos, -100, 100),
    "lx_tan": Case(np.tan, -100, 100),
    "lx_sign": Case(np.sign, bound=0.0),
    "lx_ceil": Case(np.ceil, bound=0.0),
    "lx_truncate": Case(np.trunc, bound=0.0),
    "lx_round": Case(np.round, bound=0.0),
    "lx_isnan": Case(np.isnan, bound=0.0),
    "lx_isinf": Case(np.isinf, bound=0.0),
    "lx_isfinite": Case(np.isfinite, bound=0.0),
    "lx_atan2": Case(np.arctan2, arity=2),
    "lx_divide": Case(np.divide, arity=2),
    "lx_add_zero": Case(lambda x: x + 0.0, bound=0.0),
    "lx_multiply_by_zero": Case(lambda x, y: x * np.copysign(0, y), bound=0.0, arity=2),
    "lx_divide_by_zero": Case(lambda x, y: x / np.copysign(0, y), bound=0.0, arity=2),
    "lx_divide_zero": Case(lambda x, y: np.copysign(0, x) / y, bound=0.0, arity=2),
    "lx_pow": Case(np.power, 0, 40, arity=2),
    "lx_maximum": Case(np.maximum, bound=0.0, arity=2),
    "lx_minimum": Case(np.minimum, bound=0.0, arity=2),
    "lx_fmod": Case(np.fmod, bound=0.0, arity=2),
    "lx_remainder": Case(np.remainder, bound=0.5, arity=2),
}


def assert_within(name: str, units: Doubles, bound: float, x: Floats, y: Floats, got: Floats, exact: Doubles) -> None:
    worst = int(np.argmax(units))
    assert units[worst] <= bound, (
        f"{name}({x[worst]!r}, {y[worst]!r}) is {exact[worst]!r}, got {got[worst]!r}: {units[worst]} units; "
        f"{np.count_nonzero(units > bound)} of {len(x)} are beyond {bound}"
    )


@pytest.mark.parametrize("name", CASES)
def test_function_is_within_its_bound_over_the_whole_range(name: str) -> None:
    case = CASES[name]
    x, y = samples(case.low, case.high, case.arity)
    if name in ("lx_maximum", "lx_minimum"):
        x, y = x[(x != 0) | (y != 0)], y[(x != 0) | (y != 0)]  # either zero may be the larger
    if case.positive:
        x, y = x[~(x < 0)], y[~(x < 0)]
    got = apply(name, case.arity, x, y)
    best = np.full(len(x), np.inf)
    with np.errstate(all="ignore"):
        for chosen_x, chosen_y in ((x, y), (flushed(x), y), (x, flushed(y)), (flushed(x), flushed(y))):
            arguments = (chosen_x, chosen_y)[: case.arity]
            exact = np.asarray(case.reference(*(argument.astype(np.float64) for argument in arguments)), np.float64)
            best = np.minimum(best, errors(got, exact))
            if denormals.are_flushed():
                best = np.minimum(best, errors(flushed(got), exact))  # taken for zero, and handed on as they are
    assert_within(name, best, case.bound, x, y, got, exact)


def test_exponential_of_nonpositive_numbers_is_within_its_bound() -> None:
    """Where results are denormal they may be 0, as on a device that flushes them."""
    x, y = samples(-100, 1, 1)
    x, y = x[~(x > 1)], y[~(x > 1)]
    got = apply("lx_exp_nonpositive", 1, x, y)
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.float64))
    assert_within("lx_exp_nonpositive", errors(got, exact), 4.0, x, y, got, exact)


def test_exponential_as_a_term_of_a_sum_is_within_its_bound() -> None:
    """Half a unit more than Vulkan has for exp2 of what is at most a half; small terms count beside 1 only."""
    x, y = samples(-90, 20, 1)
    x, y = x[~(x > 20)], y[~(x > 20)]
    got = apply("lx_exp_term", 1, x, y)
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.float64))
    small = exact < 1e-30
    np.testing.assert_allclose(got[small], exact[small], rtol=0, atol=1e-35)
    x, y, got, exact = (array[~small] for array in (x, y, got, exact))
    assert_within("lx_exp_term", errors(got, exact), 4.5, x, y, got, exact)


def test_inverse_error_function_is_within_its_bound() -> None:
    x, y = samples(-1, 1, 1)
    got = apply("lx_erfinv", 1, x, y)
    with np.errstate(all="ignore"):
        exact = inverse_error_function(x.astype(np.float64), got.astype(np.float64))
    assert_within("lx_erfinv", errors(got, exact), 4.0, x, y, got, exact)


def test_power_keeps_its_bound_up_to_the_ends_of_the_range() -> None:
    rng = np.random.default_rng(8)
    x = np.concatenate([np.exp(rng.uniform(-88, 88, 5000)), 1 + 0.5 * rng.uniform(-1, 1, 5000) ** 5]).astype(np.float32)
    x = x[x != 1]
    y = (rng.uniform(-126, 128, len(x)) / np.log2(x.astype(np.float64))).astype(np.float32)
    got = apply("lx_pow", 2, x, y)
    exact = np.power(x.astype(np.float64), y.astype(np.float64))
    assert_within("lx_pow", errors(got, exact), 4.0, x, y, got, exact)


def test_each_function_names_all_it_needs() -> None:
    table = elementary_functions()
    for function in table.values():
        called = set(re.findall(r"\b(lx_\w+)\(", function.text)) - {function.name}
        assert called == set(function.needs), function.name


def test_functions_come_once_and_after_what_they_need() -> None:
    text = function_source(["lx_asinh", "lx_log", "lx_asinh"])
    order = re.findall(r"^(?:float|int|bool) (lx_\w+)\(", text, re.MULTILINE)
    assert len(order) == len(set(order))
    assert {"lx_asinh", "lx_log", "lx_log1p", "lx_sqrt"} <= set(order)
    for name in order:
        assert all(order.index(needed) < order.index(name) for needed in elementary_functions()[name].needs)
    assert text == function_source(["lx_log", "lx_asinh"])
    assert "lx_exp" not in text


def test_unknown_function_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"lx_nothing.*lx_exp"):
        function_source(["lx_nothing"])


def test_markers_are_parsed() -> None:
    text = "header\n//! function a\nfloat a() { return 1.0; }\n\n//! function b needs a, c\nfloat b();\n//! end\nrest"
    functions = parse_functions(text)
    assert [(function.name, function.needs) for function in functions] == [("a", ()), ("b", ("a", "c"))]
    assert functions[0].text == "float a() { return 1.0; }\n"
