"""Special functions against scipy's, their derivatives, and their values at the edges."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special as theirs

import lavax as lx
import lavax.scipy
from lavax.scipy import special
from tests.lavax.numpy.arrays import DTYPES, F32, SHAPES, check, sample

pytestmark = pytest.mark.usefixtures("reference_backend")

INF, NAN = np.inf, np.nan
# name: where it is tried, from and to
RANGES: dict[str, tuple[float, float]] = {
    "digamma": (1, 9),
    "entr": (0, 3),
    "erf": (-3, 3),
    "erfc": (-3, 3),
    "erfcx": (-3, 9),
    "erfinv": (-0.9, 0.9),
    "expit": (-9, 9),
    "gammaln": (3, 9),
    "i0": (-9, 9),
    "i0e": (-9, 9),
    "i1": (-9, 9),
    "i1e": (-9, 9),
    "log_ndtr": (-9, 3),
    "logit": (0, 1),
    "ndtr": (-5, 5),
    "ndtri": (0, 1),
    "psi": (1, 9),
}
SPECIAL = np.array([0, -0.0, 1, -1, 0.5, -0.5, 2, -2.5, INF, -INF, NAN, 1e30, -1e30, 1e-30, -1e-30], F32)


def single(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """`function` in float64, rounded once."""
    return lambda *x: np.asarray(function(*(np.asarray(one, np.float64) for one in x)), F32)


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions(name: str, dtype: np.dtype) -> None:
    low, high = RANGES[name]
    for shape in SHAPES:
        check(getattr(special, name), single(getattr(theirs, name)), sample(shape, dtype, low, high), atol=0)


@pytest.mark.parametrize("name", RANGES)
def test_special_values(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = np.asarray(getattr(theirs, name)(SPECIAL.astype(np.float64)), F32)
    # Where scipy has NaN or, for gammaln of -inf, the wrong infinity.
    at_infinity = {"i0": (INF, INF), "i1": (INF, -INF), "gammaln": (INF, INF)}
    if name in at_infinity:
        expected[[8, 9]] = at_infinity[name]
    np.testing.assert_allclose(np.asarray(getattr(special, name)(SPECIAL)), expected, rtol=2e-6, atol=1e-37)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_products_with_logarithms(name: str) -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        expected = getattr(theirs, name)(x.astype(np.float64), y.astype(np.float64)).astype(F32)
    np.testing.assert_allclose(np.asarray(getattr(special, name)(x, y)), expected, rtol=1e-6)
    for a, b in (((3, 4), (4,)), ((2, 1), (1, 3)), ((), (0, 2))):
        check(getattr(special, name), single(getattr(theirs, name)), sample(a, low=0.1), sample(b, low=0.1, seed=1))


def test_betaln_over_all_sizes() -> None:
    sizes = np.array([1e-3, 0.3, 1, 2.5, 7.9, 8, 8.1, 40, 1e3, 1e6], F32)
    a, b = (grid.ravel() for grid in np.meshgrid(sizes, sizes))
    expected = theirs.betaln(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(np.asarray(special.betaln(a, b)), expected, rtol=2e-6, atol=4e-6)


# function, where, derivative, second derivative
X = np.array([-4, -1.5, -0.5, 1e-3, 0.3, 1, 2.5, 6], F32)
UNIT, POSITIVE = np.array([0.01, 0.2, 0.5, 0.7, 0.99], F32), np.array([0.3, 1, 1.46, 3, 20], F32)


def bell(x: Any) -> Any:
    return np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


def hazard(x: Any) -> Any:
    return bell(x) / theirs.ndtr(x)


SMOOTH: dict[str, tuple[np.ndarray, Callable[..., Any], Callable[..., Any]]] = {
    "erf": (X, lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x), lambda x: -4 * x / np.sqrt(np.pi) * np.exp(-x * x)),
    "erfc": (X, lambda x: -2 / np.sqrt(np.pi) * np.exp(-x * x), lambda x: 4 * x / np.sqrt(np.pi) * np.exp(-x * x)),
    "erfinv": (
        UNIT,
        lambda x: np.sqrt(np.pi) / 2 * np.exp(theirs.erfinv(x) ** 2),
        lambda x: np.pi / 2 * theirs.erfinv(x) * np.exp(2 * theirs.erfinv(x) ** 2),
    ),
    "ndtr": (X, bell, lambda x: -x * bell(x)),
    "ndtri": (UNIT, lambda p: 1 / bell(theirs.ndtri(p)), lambda p: theirs.ndtri(p) / bell(theirs.ndtri(p)) ** 2),
    "log_ndtr": (X, hazard, lambda x: -hazard(x) * (x + hazard(x))),
    "lgamma": (POSITIVE, theirs.digamma, lambda x: theirs.polygamma(1, x)),
    "digamma": (POSITIVE, lambda x: theirs.polygamma(1, x), lambda x: theirs.polygamma(2, x)),
    "i0": (X, theirs.i1, lambda x: theirs.i0(x) - theirs.i1(x) / x),
    "i1": (X, lambda x: theirs.ivp(1, x), lambda x: theirs.ivp(1, x, 2)),
    "i0e": (
        X,
        lambda x: theirs.i1e(x) - np.sign(x) * theirs.i0e(x),
        lambda x: 2 * theirs.i0e(x) - theirs.i1e(x) / x - 2 * np.sign(x) * theirs.i1e(x),
    ),
    "expit": (X, lambda x: theirs.expit(x) * theirs.expit(-x), lambda x: -np.tanh(x / 2) / 4 / np.cosh(x / 2) ** 2),
    "logit": (UNIT, lambda p: 1 / (p * (1 - p)), lambda p: (2 * p - 1) / (p * (1 - p)) ** 2),
    "entr": (POSITIVE, lambda x: -np.log(x) - 1, lambda x: -1 / x),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_first_and_second_derivatives(name: str) -> None:
    function, (x, first, then) = getattr(special, name), SMOOTH[name]
    exact = x.astype(np.float64)
    slope = lx.grad(lambda x: 3 * function(x).sum())
    np.testing.assert_allclose(np.asarray(slope(x)), 3 * first(exact), rtol=2e-5, atol=1e-6)
    curvature = lx.grad(lambda x: slope(x).sum())
    np.testing.assert_allclose(np.asarray(curvature(x)), 3 * then(exact), rtol=2e-4, atol=1e-5)


def test_digamma_and_its_derivative_at_negative_numbers() -> None:
    x = np.array([-0.3, -1.5, -4.2, -20.7], F32)
    exact = x.astype(np.float64)
    slope = lx.grad(lambda x: special.lgamma(x).sum())(x)
    np.testing.assert_allclose(np.asarray(slope), theirs.digamma(exact), rtol=1e-5)
    # 6.4.7 of Abramowitz and Stegun: scipy's polygamma has no negative arguments.
    expected = (np.pi / np.sin(np.pi * exact)) ** 2 - theirs.polygamma(1, 1 - exact)
    np.testing.assert_allclose(np.asarray(lx.grad(lambda x: special.digamma(x).sum())(x)), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("x", "y", "slopes"), [(0, 2, (np.log(2), 0)), (0, 0, (-INF, 0)), (2, 3, (np.log(3), 2 / 3)), (0, -1, (0, 0))]
)
def test_the_gradient_of_xlogy(x: float, y: float, slopes: tuple[float, float]) -> None:
    found = lx.grad(special.xlogy, argnums=(0, 1))(F32.type(x), F32.type(y))
    np.testing.assert_allclose([float(one) for one in found], slopes, rtol=1e-6)
    found = lx.grad(special.xlog1py, argnums=(0, 1))(F32.type(x), F32.type(y - 1))
    np.testing.assert_allclose([float(one) for one in found], slopes, rtol=1e-6)


def test_the_gradient_of_entr_at_its_edge() -> None:
    assert float(lx.grad(special.entr)(F32.type(0))) == INF
    assert float(lx.grad(special.entr)(F32.type(-1))) == 0


def test_the_gradient_of_betaln() -> None:
    for a, b in ((0.5, 2.5), (3, 20), (20, 3), (30, 1e3)):
        found = lx.grad(special.betaln, argnums=(0, 1))(F32.type(a), F32.type(b))
        expected = theirs.digamma([a, b]) - theirs.digamma(a + b)
        np.testing.assert_allclose([float(one) for one in found], expected, rtol=1e-4, atol=1e-6)


matrices = arrays_of.arrays(
    F32, arrays_of.array_shapes(min_dims=1, max_dims=3, max_side=4), elements=st.floats(-50, 50, width=32)
)


@settings(max_examples=30)
@given(matrices, st.sampled_from([None, 0, -1]))
def test_sums_of_exponentials(x: np.ndarray, axis: int | None) -> None:
    exact = x.astype(np.float64)
    for name in ("logsumexp", "softmax", "log_softmax"):
        found, expected = getattr(special, name)(x, axis), getattr(theirs, name)(exact, axis)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=30)
@given(matrices)
def test_signed_sums_of_exponentials(x: np.ndarray) -> None:
    factors = np.where(np.arange(x.size).reshape(x.shape) % 2 == 0, 1, -2).astype(F32)
    found, sign = special.logsumexp(x, b=factors, return_sign=True)
    terms = factors * np.exp(x.astype(np.float64) - x.max())
    size = np.abs(terms).sum()
    total = float(sign) * np.exp(float(found) - float(x.max()))
    assert abs(total - terms.sum()) <= 1e-5 * size
    everything, positive = special.logsumexp(x, return_sign=True)
    assert float(positive) == 1
    np.testing.assert_allclose(float(everything), theirs.logsumexp(x.astype(np.float64)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("b", [None, np.array([1, -2, 0.5], F32)], ids=["b left out", "b"])
def test_sums_of_exponentials_where_a_mask_is_true(b: np.ndarray | None) -> None:
    x = np.array([[0.5, -1, 3], [100, 2, -7], [1, 1, 1]], F32)
    mask = np.array([[True, False, True], [False, True, True], [False, False, False]])
    terms = np.where(mask, np.exp(x.astype(np.float64)) * (1 if b is None else b), 0).sum(1)
    found, sign = special.logsumexp(x, 1, b, return_sign=True, where=mask)
    np.testing.assert_array_equal(np.asarray(sign), np.sign(terms))
    np.testing.assert_allclose(np.asarray(sign) * np.exp(np.asarray(found)), terms, rtol=1e-5)
    with np.errstate(invalid="ignore", divide="ignore"):
        np.testing.assert_allclose(np.asarray(special.logsumexp(x, 1, b, where=mask)), np.log(terms), rtol=1e-5)


def test_sums_of_nothing_and_of_opposites() -> None:
    found = special.logsumexp(np.zeros(2, F32), b=np.array([1, -1], F32), return_sign=True)
    assert [float(one) for one in found] == [-INF, 0]
    found = special.logsumexp(np.full(3, -INF, F32), return_sign=True)
    assert float(found[0]) == -INF


def test_every_public_name_is_there_and_has_a_text() -> None:
    assert lavax.scipy.special is special
    for name in special.__all__:
        assert getattr(special, name).__doc__
