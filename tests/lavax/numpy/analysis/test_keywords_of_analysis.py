"""Weights of quantiles, dtypes of covariances and convolutions, axes of trimming, and padding by a function."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(4, 7)).astype(np.float32)
W = RANDOM.integers(0, 4, size=(4, 7)).astype(np.float32)
W[:, 0] = 1.0


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_quantiles_by_weights(axis: Any, keepdims: bool) -> None:
    q = [0.0, 0.1, 0.35, 0.5, 0.9, 1.0]
    settings = {"axis": axis, "method": "inverted_cdf", "keepdims": keepdims}
    found = lnp.quantile(X, q, weights=W, **settings)
    np.testing.assert_array_equal(found, np.quantile(X, q, weights=W, **settings))
    np.testing.assert_array_equal(lnp.quantile(X, q, **settings), np.quantile(X, q, **settings))
    hundredths = lnp.percentile(X, 35, weights=W, **settings)
    np.testing.assert_array_equal(hundredths, np.percentile(X, 35, weights=W, **settings))


def test_quantiles_have_the_dtype_of_the_array() -> None:
    """Whatever the fractions have, as in JAX; these are real."""
    with lx.enable_x64(True):
        for dtype in (np.float16, np.float32, np.float64):
            x = lnp.asarray(X.astype(dtype))
            for q in (40, 40.0, np.float64(40), np.array([40]), np.array([40.0])):
                for name in ("percentile", "nanpercentile", "quantile", "nanquantile"):
                    found = getattr(lnp, name)(x, q if name.endswith("percentile") else np.asarray(q) / 100)
                    assert found.dtype == dtype
                    expected = np.quantile(X.astype(dtype).astype(np.float64), 0.4)
                    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=2e-3)
    for name in ("percentile", "nanpercentile", "quantile", "nanquantile"):
        with pytest.raises(lx.DtypeError, match="takes real numbers, got c64"):
            getattr(lnp, name)(X, 0.5j)


def test_weights_of_an_axis_count_in_all_rows() -> None:
    found = lnp.quantile(X, 0.4, axis=1, weights=W[1], method="inverted_cdf")
    np.testing.assert_array_equal(found, np.quantile(X, 0.4, axis=1, weights=W[1], method="inverted_cdf"))


def test_weights_of_what_is_missing_do_not_count() -> None:
    x = X.copy()
    x[0, 2] = x[1, 3:] = x[2] = np.nan
    found = lnp.nanquantile(x, 0.6, axis=1, weights=W, method="inverted_cdf")
    wanted = [np.nanquantile(x[k], 0.6, weights=W[k], method="inverted_cdf") for k in (0, 1, 3)]
    np.testing.assert_array_equal(found[np.array([0, 1, 3])], wanted)
    assert np.isnan(found[2])
    assert lnp.isnan(lnp.quantile(x, 0.6, axis=1, weights=W, method="inverted_cdf")).tolist() == [True] * 3 + [False]
    wrong = lnp.array(W).at[3, 1].set(-1.0)
    found = lnp.quantile(X, 0.6, axis=1, weights=wrong, method="inverted_cdf")
    assert lnp.isnan(found).tolist() == [False] * 3 + [True]


def test_the_gradient_of_a_quantile_by_weights_is_at_its_element() -> None:
    gradient = lx.grad(lambda x: 3.0 * lnp.sum(lnp.quantile(x, 0.5, axis=1, weights=W, method="inverted_cdf")))(X)
    chosen = np.quantile(X, 0.5, axis=1, weights=W, method="inverted_cdf", keepdims=True)
    np.testing.assert_array_equal(gradient, 3.0 * (chosen == X))


def test_weights_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="weights need method='inverted_cdf', got 'linear'"):
        lnp.quantile(X, 0.5, weights=W)
    with pytest.raises(lx.ShapeError, match="must have the shape"):
        lnp.quantile(X, 0.5, axis=1, weights=W[:, 0], method="inverted_cdf")


def test_covariances_are_computed_in_their_dtype() -> None:
    far = (X + 10_000.0).astype(np.float32)
    for function in (lnp.cov, lnp.corrcoef):
        found = function(far, dtype="float64")
        assert found.dtype == np.float64
        reference = getattr(np, function.__name__)(far, dtype=np.float64)
        np.testing.assert_allclose(found, reference, rtol=1e-12)
    with pytest.raises(lx.DtypeError, match="dtype must be one of floats"):
        lnp.cov(X, dtype="int32")


@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_are_summed_in_the_preferred_dtype(name: str, mode: str) -> None:
    a, v = np.full(400, 100, np.int8), np.full(300, 100, np.int8)
    found = getattr(lnp, name)(a, v, mode, preferred_element_type="int32")
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, getattr(np, name)(a.astype(np.int32), v.astype(np.int32), mode))


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), -1, ()])
@pytest.mark.parametrize("trim", ["fb", "f", "b", ""])
def test_zeros_are_trimmed_along_axes(axis: Any, trim: str) -> None:
    x = np.zeros((5, 6), np.float32)
    x[1:3, 2:4] = [[0, 1], [2, 0]]
    chosen = (0, 1) if axis is None else (axis,) if isinstance(axis, int) else axis
    front, back = "f" in trim, "b" in trim
    rows, columns = slice(1 if front else 0, 3 if back else 5), slice(2 if front else 0, 4 if back else 6)
    wanted = x[rows if 0 in chosen else slice(None)][:, columns if {1, -1} & set(chosen) else slice(None)]
    np.testing.assert_array_equal(lnp.trim_zeros(x, trim, axis), wanted)
    assert lnp.trim_zeros(np.zeros((2, 3), "f"), "fb", 1).shape == (2, 0)


def _mirrored(line: Any, widths: tuple[int, int], axis: int, kwargs: dict[str, Any]) -> Any:
    before, after = widths
    inner = line[before : line.shape[0] - after]
    return lnp.concatenate([kwargs["factor"] * inner[:before][::-1], inner, (axis + 2.0) * inner[-1:].repeat(after)])


def test_padding_by_a_function() -> None:
    def of_numpy(line: np.ndarray, widths: tuple[int, int], axis: int, kwargs: dict[str, Any]) -> None:
        line[:] = np.asarray(_mirrored(lnp.array(line), widths, axis, kwargs))

    widths = ((1, 2), (2, 0))
    wanted = np.pad(X, widths, of_numpy, factor=-3.0)  # type: ignore[call-overload]
    np.testing.assert_allclose(lnp.pad(X, widths, _mirrored, factor=-3.0), wanted, rtol=1e-6)
    gradient = lx.grad(lambda x: lnp.sum(lnp.pad(x, widths, _mirrored, factor=-3.0)[0] ** 2))(X)
    first = np.pad(X, widths, of_numpy, factor=-3.0)[0]  # type: ignore[call-overload]
    np.testing.assert_allclose(np.sum(np.asarray(gradient) * X), 2.0 * np.sum(first**2), rtol=1e-5)
    with pytest.raises(TypeError, match="factor is no argument of mode 'edge'"):
        lnp.pad(X, 1, "edge", factor=1.0)


@pytest.mark.parametrize(
    ("variables", "weights", "wanted"),
    [
        ("float16", "float32", "float32"),
        ("float16", "float16", "float16"),
        ("float16", "int32", "float16"),
        ("float32", "float16", "float32"),
        ("int32", "float16", "float32"),
        ("complex64", "float32", "complex64"),
    ],
)
def test_the_covariance_has_the_wider_dtype_of_variables_and_weights(variables: str, weights: str, wanted: str) -> None:
    """As in JAX, also where the dtype of the variables is given."""
    x, w = np.float32([[1, 2, 5], [0, 3, 1]]).astype(variables), np.float32([1, 3, 2]).astype(weights)
    for found in (lnp.cov(x, aweights=w), lnp.cov(x, aweights=w, dtype=lnp.cov(x).dtype)):
        assert found.dtype == wanted
        np.testing.assert_allclose(np.asarray(found), np.cov(x.astype(complex), aweights=w), rtol=2e-3)
    times = np.array([1, 3, 2])
    assert lnp.cov(x, fweights=times).dtype == lnp.cov(x).dtype


def test_weights_of_covariances_that_do_not_fit_say_so() -> None:
    x = np.ones((2, 3), "f")
    with pytest.raises(ShapeError, match="aweights must be one for each of 3 observations"):
        lnp.cov(x, aweights=np.ones(2, "f"))
    with pytest.raises(ShapeError, match="fweights must be one for each of 3 observations"):
        lnp.cov(x, fweights=np.ones((1, 3), int))
    with pytest.raises(DtypeError, match="fweights are numbers of times"):
        lnp.cov(x, fweights=np.ones(3, "f"))
