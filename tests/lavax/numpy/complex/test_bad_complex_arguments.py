"""What complex arguments are refused, by which words, and what is taken where they make sense."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, random
from lavax.base.errors import DtypeError, ShapeError

pytestmark = pytest.mark.usefixtures("reference_backend")

Z = np.array([1 + 2j, -0.5 + 0.25j, 3 - 1j], "complex64")
X = np.array([0.5, 3.0, -2.0], "f")
KEY = random.key(0)

REFUSED: dict[str, tuple[str, Callable[[], Any]]] = {
    "isposinf": ("isposinf", lambda: lnp.isposinf(Z)),
    "isneginf": ("isneginf", lambda: lnp.isneginf(Z)),
    "nan_to_num": ("nan_to_num: nan", lambda: lnp.nan_to_num(Z, nan=1 + 1j)),
    "unwrap": ("unwrap", lambda: lnp.unwrap(Z)),
    "unwrap discont": ("unwrap: discont", lambda: lnp.unwrap(X, 1j)),
    "unwrap period": ("unwrap: period", lambda: lnp.unwrap(X, period=1j)),
    "bernoulli": ("bernoulli", lambda: random.bernoulli(KEY, 0.5j)),
    "categorical": ("categorical", lambda: random.categorical(KEY, Z)),
    "choice": ("choice: p", lambda: random.choice(KEY, 3, p=Z)),
    "mean": ("multivariate_normal: mean", lambda: random.multivariate_normal(KEY, Z, lnp.eye(3))),
    "cov": ("multivariate_normal: cov", lambda: random.multivariate_normal(KEY, X, 1j * lnp.eye(3))),
}


@pytest.mark.parametrize("case", REFUSED)
def test_real_numbers_are_asked_for(case: str) -> None:
    name, call = REFUSED[case]
    with pytest.raises(DtypeError, match=f"{name} takes real numbers, got c64.*: take its real part, or its abs"):
        call()


def test_infinities_of_integers_and_truth_values() -> None:
    assert not np.asarray(lnp.isposinf(np.array([1, 2]))).any()
    assert not np.asarray(lnp.isneginf(np.array([True]))).any()


def test_flags_that_are_no_truth_values() -> None:
    """As in NumPy, whatever is true asks for the result, once."""
    found = lnp.unique(X, 2, 1j)  # type: ignore[arg-type]
    assert [np.asarray(part).tolist() for part in found] == [[-2, 0.5, 3], [2, 0, 1], [1, 2, 0]]


def test_select_by_the_rows_of_an_array() -> None:
    np.testing.assert_array_equal(np.asarray(lnp.select(X[None] > 0, [Z], 1j)), np.where(X > 0, Z, 1j))


def test_positions_that_are_none() -> None:
    first, second = lnp.ix_(np.zeros(0, "complex64"), [1, 2])
    assert (first.shape, first.dtype, second.shape) == ((0, 1), np.int32, (1, 2))


@pytest.mark.parametrize("zeros", [np.zeros(0, "f"), Z, np.array([np.nan + 1j, 2.0], "complex64")])
def test_polynomials_begin_with_one(zeros: np.ndarray) -> None:
    found, right = np.asarray(lnp.poly(zeros)), np.asarray(np.poly(zeros))
    assert found.shape == right.shape
    np.testing.assert_allclose(found, right, rtol=1e-6)


def test_powers_and_spirals() -> None:
    np.testing.assert_allclose(np.asarray(lnp.logspace(0, 3, 4, base=1j)), np.logspace(0, 3, 4, base=1j), atol=1e-6)
    np.testing.assert_allclose(np.asarray(lnp.geomspace(1j, -8j, 4)), np.geomspace(1j, -8j, 4), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_running_extremes(name: str) -> None:
    matrix = np.stack([Z, Z[::-1] * 1j, Z + 0.1])
    for axis in (0, 1):
        found = getattr(lnp, name).accumulate(matrix, axis=axis)
        np.testing.assert_array_equal(np.asarray(found), getattr(np, name).accumulate(matrix, axis=axis))


def test_logarithms_of_sums_with_complex_weights() -> None:
    from scipy.special import logsumexp

    np.testing.assert_allclose(np.asarray(lx.scipy.special.logsumexp(X, b=Z)), logsumexp(X, b=Z), rtol=1e-5)
    size, sign = lx.scipy.special.logsumexp(X, b=Z, return_sign=True)
    np.testing.assert_allclose(np.exp(np.asarray(size)) * np.asarray(sign), np.sum(Z * np.exp(X)), rtol=1e-5)


@pytest.mark.parametrize("kind", ["fft", "ifft"])
def test_transforms_along_no_axes(kind: str) -> None:
    np.testing.assert_array_equal(np.asarray(lax.fft(Z, kind, ())), Z)
    with pytest.raises(ShapeError, match="RFFT of f32"):
        lax.fft(X, "rfft", ())
