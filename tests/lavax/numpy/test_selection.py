"""The greatest elements of rows: those of a stable sort, with ties, NaN, and any axis and dtype."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.lavax.numpy.arrays import F32

pytestmark = pytest.mark.usefixtures("reference_backend")
rng = np.random.default_rng(3)


def expected(x: np.ndarray, count: int) -> np.ndarray:
    """Positions along the last axis, NaN first."""
    keys = np.where(np.isnan(x.astype(np.float64)), np.inf, x.astype(np.float64))
    return np.argsort(-keys, axis=-1, kind="stable")[..., :count]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool"])
@pytest.mark.parametrize("values", [2, 5, 1000])  # few values: many ties
def test_they_are_those_of_a_stable_sort(values: int, dtype: str) -> None:
    for length, count in ((16, 1), (97, 3), (64, 16), (203, 50), (40, 40), (30, 0)):
        x = rng.integers(0, values, (2, length)).astype(dtype)
        found = lx.compile(lambda x, count=count: lnp.top_k(x, count))(x)
        order = expected(x, count)
        np.testing.assert_array_equal(np.asarray(found.indices), order)
        np.testing.assert_array_equal(np.asarray(found.values), np.take_along_axis(x, order, -1))


def test_nan_is_greatest_and_infinities_are_elements() -> None:
    x = rng.integers(0, 4, (3, 70)).astype(F32)
    x[0, ::7], x[1, 3:], x[2] = np.nan, -np.inf, -np.inf
    np.testing.assert_array_equal(np.asarray(lnp.top_k(x, 9).indices), expected(x, 9))


def test_any_axis_and_batches() -> None:
    x = rng.normal(size=(90, 3, 2)).astype(F32)
    order = np.moveaxis(expected(np.moveaxis(x, 0, -1), 5), -1, 0)
    np.testing.assert_array_equal(np.asarray(lnp.top_k(x, 5, axis=0).indices), order)
    mapped = lx.vmap(lambda row: lnp.top_k(row, 5).indices, in_axes=2, out_axes=2)(np.moveaxis(x, 0, 1))
    np.testing.assert_array_equal(np.asarray(mapped), np.moveaxis(order, 0, 1))


def test_the_gradient_goes_to_the_elements_that_were_taken() -> None:
    x, weights = rng.normal(size=(2, 80)).astype(F32), rng.normal(size=(2, 4)).astype(F32)
    gradient = lx.grad(lambda x: 3 * lnp.sum(weights * lnp.top_k(lnp.tanh(x), 4).values))(x)
    wanted = np.zeros_like(x)
    np.put_along_axis(wanted, expected(x, 4), 3 * weights, -1)
    np.testing.assert_allclose(np.asarray(gradient), wanted * (1 - np.tanh(x) ** 2), rtol=1e-5, atol=1e-6)

