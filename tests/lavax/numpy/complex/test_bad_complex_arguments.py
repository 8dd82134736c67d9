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


DROPPED: dict[str, Callable[[], Any]] = {
    "sum": lambda: lnp.sum(Z, dtype="float32"),
    "prod": lambda: lnp.prod(Z, dtype="float32"),
    "mean": lambda: lnp.mean(Z, dtype="float32"),
    "cumulative_sum": lambda: lnp.cumsum(Z, dtype="float32"),
    "cumulative_prod": lambda: lnp.cumulative_prod(Z, dtype="float32"),
    "linspace": lambda: lnp.linspace(0, 1 + 1j, 3, dtype="float32"),
    "logspace": lambda: lnp.logspace(0, 1 + 1j, 3, dtype="float32"),
    "geomspace": lambda: lnp.geomspace(1, 1 + 1j, 3, dtype="float32"),
    "put": lambda: lnp.put(X, np.array([0]), Z[:1], inplace=False),
    "fill_diagonal": lambda: lnp.fill_diagonal(np.ones((2, 2), "f"), 1j, inplace=False),
    "place": lambda: lnp.place(X, X > 0, Z, inplace=False),
}


@pytest.mark.parametrize("name", DROPPED)
def test_imaginary_parts_are_not_dropped_silently(name: str) -> None:
    with pytest.warns(np.exceptions.ComplexWarning, match="the imaginary parts .*are dropped") as told:
        found = DROPPED[name]()
    assert len(told) == 1 and found.dtype == np.float32


def test_parts_that_are_asked_for_drop_nothing(recwarn: pytest.WarningsRecorder) -> None:
    assert lnp.sum(Z, dtype=bool).dtype == bool
    assert lnp.sum(Z.real, dtype="float32").dtype == np.float32
    assert lnp.var(Z).dtype == np.float32 and lnp.linspace(0, 1, 3, dtype="int32").dtype == np.int32
    assert not recwarn


@pytest.mark.parametrize(
    "call",
    [
        lambda: lnp.take(X, np.array([9]), mode="fill", fill_value=1j),
        lambda: lnp.asarray(X).at[lnp.asarray(9)].get(mode="fill", fill_value=1j),
        lambda: lnp.compress(X > 0, X, size=9, fill_value=1j),
    ],
)
def test_real_arrays_are_filled_with_real_numbers(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="fill_value: 1j has imaginary parts, which float32 cannot hold"):
        call()


def test_weights_of_wide_histograms_stay_complex() -> None:
    with lx.enable_x64():
        x, weights = X.astype("float64"), Z.astype("complex128")
        counts, *_ = lnp.histogram2d(x, x, bins=2, weights=weights)
        assert counts.dtype == np.complex128
        np.testing.assert_allclose(complex(counts.sum()), weights.sum())
