"""Gamma functions, incomplete integrals, zeta functions and entropies against scipy's, and their derivatives.

The tolerance of a value is what its argument's rounding makes of it (8 times), and some units in the last place.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from scipy import special as theirs

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy import special
from tests.lavax.numpy.arrays import F32
from tests.lavax.properties.test_properties import FEW

INF, NAN = np.inf, np.nan
EPS = float(np.finfo(F32).eps)
Range = tuple[float, float]
# For each function its arguments' ranges, whole ones written as a range object, and how many units in the last place
# of the greatest intermediate value it may be off besides.
DOMAINS: dict[str, tuple[list[Range | range], float]] = {
    "beta": ([(0.05, 30), (0.05, 30)], 4),
    "betainc": ([(0.05, 50), (0.05, 50), (0, 1)], 24),
    "boxcox": ([(0.1, 5), (-2, 2)], 8),
    "boxcox1p": ([(-0.9, 5), (-2, 2)], 8),
    "comb": ([range(30), range(30)], 4),
    "exp1": ([(1e-6, 80)], 16),
    "expi": ([(-80, 86)], 24),
    "expn": ([range(20), (1e-4, 80)], 24),
    "factorial": ([range(-2, 35)], 4),
    "gamma": ([(-9, 35)], 24),
    "gammainc": ([(0.05, 400), (0, 400)], 24),
    "gammaincc": ([(0.05, 400), (0, 400)], 24),
    "gammasgn": ([(-9, 9)], 0),
    "kl_div": ([(0, 3), (0.01, 3)], 8),
    "loggamma": ([(0.01, 90)], 8),
    "poch": ([(0.1, 9), (0, 9)], 4),
    "polygamma": ([range(8), (0.05, 50)], 16),
    "rel_entr": ([(0, 3), (0.01, 3)], 8),
    "spence": ([(0, 9)], 8),
    "zeta": ([(1.01, 30), (0.05, 50)], 16),
}


def drawn(data: st.DataObject, name: str) -> list[np.ndarray]:
    """Arrays of ranks 0 to 5 that broadcast, some of no elements, in the function's domain."""
    ranges = DOMAINS[name][0]
    shapes = arrays_of.mutually_broadcastable_shapes(num_shapes=len(ranges), max_dims=5, min_side=0, max_side=3)
    random = np.random.default_rng(data.draw(st.integers(0, 9999)))
    found = []
    for shape, within in zip(data.draw(shapes).input_shapes, ranges, strict=True):
        if isinstance(within, range):
            found.append(random.integers(within.start, within.stop, shape).astype(F32))
        else:
            found.append(random.uniform(*within, shape).astype(F32))
    return found


def reference(name: str, arrays: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(getattr(theirs, name)(*(array.astype(np.float64) for array in arrays)))


def allowed(name: str, arrays: list[np.ndarray], expected: np.ndarray) -> np.ndarray:
    """How far a float32 result may be off: by the condition, by the function's units, by complements to 1, and by the
    least float32."""
    complement = name in ("gammainc", "gammaincc", "betainc", "expi")
    slack = DOMAINS[name][1] * EPS * np.abs(expected) + 2 * EPS * complement + float(np.finfo(F32).smallest_subnormal)
    for place, within in enumerate(DOMAINS[name][0]):
        for sign in (1, -1):
            moved = [array.astype(np.float64) for array in arrays]
            if not isinstance(within, range):
                moved[place] = np.clip(moved[place] * (1 + sign * EPS), *within)
                with np.errstate(all="ignore"):
                    slack = slack + 8 * np.abs(getattr(theirs, name)(*moved) - expected)
    return slack


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("name", DOMAINS)
@settings(FEW, max_examples=25)
@given(data=st.data())
def test_values(name: str, data: st.DataObject) -> None:
    arrays = drawn(data, name)
    expected = reference(name, arrays)
    found = getattr(special, name)(*arrays)
    assert found.dtype == F32 and found.shape == expected.shape
    finite = np.isfinite(expected) & (np.abs(expected) < 3e38)
    apart = np.abs(np.asarray(found, np.float64) - expected)
    assert (apart <= allowed(name, arrays, expected))[finite].all(), (arrays, np.asarray(found), expected)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.asarray(found)[~finite], expected.astype(F32)[~finite])


EDGES: list[tuple[str, list[list[float]], list[float]]] = [
    ("gamma", [[0, -0.0, -1, -2, INF, -INF, NAN, 100]], [INF, -INF, NAN, NAN, INF, NAN, NAN, INF]),
    ("gammasgn", [[0, -0.0, -1, -0.5, -1.5, INF, -INF, NAN]], [1, -1, NAN, -1, 1, 1, NAN, NAN]),
    ("factorial", [[-1, 0, 1, NAN]], [0, 1, 1, NAN]),
    ("gammainc", [[0, 0, 1, 1, -1, 1, INF, NAN], [0, 1, 0, INF, 1, -1, 1, 1]], [NAN, 1, 0, 1, NAN, NAN, 0, NAN]),
    ("gammaincc", [[0, 0, 1, 1, -1, 1, INF, NAN], [0, 1, 0, INF, 1, -1, 1, 1]], [NAN, 0, 1, 0, NAN, NAN, 1, NAN]),
    ("betainc", [[1, 1, 1, -1, 1], [1, 2, 2, 1, 1], [0, 1, -1, 0.5, NAN]], [0, 1, NAN, NAN, NAN]),
    ("exp1", [[0, -1, INF, NAN]], [INF, NAN, 0, NAN]),
    ("expi", [[0, INF, -INF, NAN, 94]], [-INF, INF, 0, NAN, INF]),
    ("expn", [[0, 1, 2, 5, -1, 1], [0, 0, 0, 0, 1, -1]], [INF, INF, 1, 0.25, NAN, NAN]),
    ("zeta", [[1, 2, 2, 2, 0.5, 2, 1e9], [1, 0, -1, -0.5, 1, INF, 2]], [INF, INF, INF, NAN, NAN, 0, 0]),
    ("polygamma", [[0, 1, 1, -1], [-1.5, 0, -1.5, 2]], [0.70315664, INF, NAN, NAN]),
    ("spence", [[0, 1, -1, INF, NAN]], [np.pi**2 / 6, 0, NAN, -INF, NAN]),
    ("rel_entr", [[0, 0, 1, -1, NAN], [0, 1, 0, 1, 1]], [0, 0, INF, INF, NAN]),
    ("kl_div", [[0, 0, 1, -1, NAN], [0, 1, 0, 1, 1]], [0, 1, INF, INF, NAN]),
    ("boxcox", [[0, 2, 0], [0, 0, 1]], [-INF, np.log(2), -1]),
    ("comb", [[5, 5, 3, 0], [6, -1, 3, 0]], [0, 0, 1, 1]),
    ("loggamma", [[-1.5, 1, INF]], [NAN, 0, INF]),
    ("poch", [[2, 0.5], [0, 2]], [1, 0.75]),
]


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize(("name", "arguments", "expected"), EDGES)
def test_edges(name: str, arguments: list[list[float]], expected: list[float]) -> None:
    found = getattr(special, name)(*(np.array(argument, F32) for argument in arguments))
    np.testing.assert_allclose(np.asarray(found), np.array(expected), rtol=1e-6, atol=1e-30)


OF_BETA = [math.factorial(n - 1) ** 2 / math.factorial(2 * n - 1) for n in (400, 500)]
IN_FLOAT64 = [
    ("gamma", [[150, 171, -150.5, 1e-250, 1e-300, -1e-300, 1e-19, -1e-19, 0.0, -0.0]], None),
    ("beta", [[400.0, 500.0]] * 2, OF_BETA),
    ("spence", [[0.0, 1e-300, 0.25]], None),
]


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize(("name", "arguments", "expected"), IN_FLOAT64)
def test_float64_has_its_range_and_digits(name: str, arguments: list[list[float]], expected: Any) -> None:
    """No constant on the way is float32."""
    with lx.enable_x64():
        found = np.asarray(getattr(special, name)(*map(np.array, arguments)))
    expected = getattr(theirs, name)(*arguments) if expected is None else np.array(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_small_tails_keep_their_digits() -> None:
    a, x = np.array([2, 0.5, 30, 100], F32), np.array([40, 20, 90, 220], F32)
    expected = theirs.gammaincc(a.astype(np.float64), x.astype(np.float64))
    assert expected.max() < 1e-9
    np.testing.assert_allclose(np.asarray(special.gammaincc(a, x)), expected, rtol=3e-5)
    low = theirs.gammainc(x.astype(np.float64), a.astype(np.float64))
    np.testing.assert_allclose(np.asarray(special.gammainc(x[:2], a[:2])), low[:2], rtol=3e-5, atol=1e-37)


def test_multigammaln() -> None:
    a = np.array([1.6, 3, 20], F32)
    expected = theirs.multigammaln(a.astype(np.float64), 4)
    np.testing.assert_allclose(np.asarray(special.multigammaln(a, 4)), expected, rtol=1e-6)
    assert np.isnan(np.asarray(special.multigammaln(1.0, 4)))
    with pytest.raises(ValueError, match="the dimension is at least 1, got 0"):
        special.multigammaln(a, 0)
    with pytest.raises(ValueError, match=r"factorial: floats do not hold .* use math.factorial"):
        special.factorial(3, exact=True)
    with pytest.raises(ValueError, match=r"comb: floats do not hold .* use math.comb"):
        special.comb(3, 1, exact=True)
    for name in ("beta", "comb", "owens_t", "poch"):
        with pytest.raises(lx.DtypeError, match=f"{name} takes real numbers, got c64"):
            getattr(special, name)(a, 1j)
    np.testing.assert_allclose(float(special.comb(5, 3, repetition=True)), 35, rtol=1e-6)


A, X = np.array([0.3, 1, 2.5, 12, 40], F32), np.array([0.5, 2, 2, 11, 47], F32)
SHARE = np.array([0.3, 0.2, 0.6, 0.5, 0.4], F32)
# For each function its arguments, and by which of them it has a derivative.
SMOOTH: dict[str, tuple[tuple[np.ndarray, ...], tuple[int, ...]]] = {
    "beta": ((A, X), (0, 1)),
    "betainc": ((A, X, SHARE), (0, 1, 2)),
    "boxcox": ((A, np.array([0, 0.5, 1, 2, -1], F32)), (0,)),
    "exp1": ((X,), (0,)),
    "expi": ((np.array([-3, -0.2, 0.5, 7, 60], F32),), (0,)),
    "expn": ((np.array([0, 1, 2, 5, 7], F32), X), (1,)),
    "gamma": ((np.array([-2.5, 0.3, 4, 11, 20], F32),), (0,)),
    "gammainc": ((A, X), (0, 1)),
    "gammaincc": ((A, X), (0, 1)),
    "kl_div": ((A, X), (0, 1)),
    "poch": ((A[:4], X[:4]), (0, 1)),
    "polygamma": ((np.array([0, 1, 2, 3, 4], F32), X), (1,)),
    "rel_entr": ((A, X), (0, 1)),
    "spence": ((np.array([0.2, 0.9, 1.0001, 1.5, 4], F32),), (0,)),
    "zeta": ((A + F32.type(1.5), X), (0, 1)),
}


def slope_of_theirs(name: str, arguments: tuple[np.ndarray, ...], place: int) -> np.ndarray:
    ends = []
    for sign in (1, -1):
        moved = [argument.astype(np.float64) for argument in arguments]
        moved[place] = moved[place] * (1 + sign * 1e-5)
        ends.append(getattr(theirs, name)(*moved))
    return (ends[0] - ends[1]) / (2e-5 * arguments[place].astype(np.float64))


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize(("name", "place"), [(name, place) for name in SMOOTH for place in SMOOTH[name][1]])
def test_derivatives(name: str, place: int) -> None:
    """In the middle of a graph, both ways."""
    arguments, _ = SMOOTH[name]
    function, weights = getattr(special, name), np.arange(1, len(arguments[0]) + 1).astype(F32)

    def loss(*values: Any) -> Any:
        halves = [value * 0.5 if at == place else value for at, value in enumerate(values)]
        return -1.5 * lnp.sum(weights * function(*(h * 2 if at == place else h for at, h in enumerate(halves))))

    expected = slope_of_theirs(name, arguments, place)
    found = np.asarray(lx.grad(loss, argnums=place)(*arguments)) / (-1.5 * weights)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-7)
    direction = tuple(np.ones_like(one) if at == place else np.zeros_like(one) for at, one in enumerate(arguments))
    forward = lx.jvp(function, arguments, direction)[1]
    np.testing.assert_allclose(np.asarray(forward), expected, rtol=2e-5, atol=1e-7)


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize(
    ("name", "arguments", "second"),
    [
        ("gamma", (2.5,), theirs.gamma(2.5) * (theirs.digamma(2.5) ** 2 + theirs.polygamma(1, 2.5))),
        ("gammainc", (2.5, 2.0), np.exp(-2.0) * 2**0.5 * (1.5 - 2) / theirs.gamma(2.5)),
        ("exp1", (2.0,), np.exp(-2.0) * (1 / 2 + 1 / 4)),
        ("expi", (2.0,), np.exp(2.0) * (1 / 2 - 1 / 4)),
        ("spence", (1.5,), (1 / 1.5 * (1 - 1.5) + np.log(1.5)) / (1 - 1.5) ** 2),
        ("zeta", (3.0, 1.5), 12 * theirs.zeta(5.0, 1.5)),
    ],
)
def test_second_derivatives(name: str, arguments: tuple[float, ...], second: float) -> None:
    *fixed, last = (F32.type(one) for one in arguments)
    twice = lx.grad(lx.grad(lambda x: getattr(special, name)(*fixed, x)))
    np.testing.assert_allclose(float(twice(last)), second, rtol=1e-5)


CALLS: list[Callable[..., Any]] = [special.gammainc, special.zeta, lambda a, x: special.betainc(a, x, 0.3)]


@pytest.mark.parametrize("function", CALLS)
def test_compiled_and_batched_on_the_device(function: Callable[..., Any]) -> None:
    first, second = A[:4] + F32.type(1), X[:4]
    at_once = np.asarray(function(first, second))
    np.testing.assert_allclose(np.asarray(lx.compile(function)(first, second)), at_once, rtol=3e-6)
    np.testing.assert_allclose(np.asarray(lx.vmap(function)(first, second)), at_once, rtol=3e-6)
    np.testing.assert_allclose(np.asarray(lx.vmap(function, in_axes=(0, None))(first, second[1])),
                               np.asarray(function(first, second[1])), rtol=3e-6)  # fmt: skip


def test_every_name_of_special_has_a_text() -> None:
    for name in DOMAINS:
        assert name in special.__all__ and getattr(special, name).__doc__


def test_bernoulli_numbers() -> None:
    np.testing.assert_allclose(np.asarray(special.bernoulli(12)), theirs.bernoulli(12), rtol=1e-6, atol=1e-9)
    assert special.bernoulli(0).tolist() == [1.0]
    with pytest.raises(ValueError, match="bernoulli: n is at least 0, got -1"):
        special.bernoulli(-1)


def test_whole_numbers_of_combinations_are_exact() -> None:
    things, chosen = (grid.astype(F32) for grid in np.meshgrid(np.arange(23), np.arange(23), indexing="ij"))
    np.testing.assert_array_equal(np.asarray(special.comb(things, chosen)), theirs.comb(things, chosen))
    base, step = (grid.astype(F32) for grid in np.meshgrid(np.arange(1, 9), np.arange(6), indexing="ij"))
    np.testing.assert_array_equal(np.asarray(special.poch(base, step)), np.round(theirs.poch(base, step)))


# Quotients of which parts overflow, vanish or cancel: the function, its arguments, the result.
FAR: list[tuple[str, tuple[float, ...], float]] = [
    ("beta", (1e-20, 1e-20), 2e20),
    ("beta", (1e-30, 3.0), 1e30),
    ("beta", (1e30, 1.0), 1e-30),
    ("beta", (1e3, 1e3), 0.0),
    ("comb", (1e30, 1.0), 1e30),
    ("comb", (3000.0, 1500.0), INF),
    ("poch", (1e-28, 40.0), 1e-28 * math.gamma(40)),
    ("poch", (40.0, -39.0), 1 / math.gamma(40)),
    ("poch", (1e30, 1.25), 1e30**1.25),
    ("gamma", (128.0,), INF),
    ("gamma", (3.4e38,), INF),
    ("kl_div", (INF, 0.0), INF),
    ("kl_div", (-1.0, 2.0), INF),
    ("rel_entr", (1e-30, 1e30), -1e-30 * 60 * math.log(10)),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), FAR)
def test_parts_that_are_out_of_range(name: str, arguments: tuple[float, ...], expected: float) -> None:
    found = np.asarray(getattr(special, name)(*(np.float32(argument) for argument in arguments)))
    moved = sum(abs(argument) > 0 for argument in arguments) * 4 * EPS  # the arguments are rounded
    np.testing.assert_allclose(found, np.float32(expected), rtol=moved + 8 * EPS)
