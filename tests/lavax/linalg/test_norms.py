"""Norms and products of lavax.linalg, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ShapeError
from tests.lavax.linalg.linear_algebra import with_condition
from tests.lavax.numpy.arrays import sample

ORDERS = ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf]


def agrees(found: Any, expected: Any, rtol: float = 4e-6) -> None:
    assert np.asarray(found).shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ord", ORDERS)
def test_matrix_norm(ord: Any, keepdims: bool) -> None:
    for shape in ((3, 3), (2, 3, 5), (5, 2)):
        x = sample(shape)
        agrees(
            lnp.linalg.matrix_norm(x, ord=ord, keepdims=keepdims),
            np.linalg.matrix_norm(x.astype("d"), ord=ord, keepdims=keepdims),
        )


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("ord", [0, 1, 2, 3, 0.5, -1, np.inf, -np.inf])
def test_vector_norm(ord: float, axis: Any, keepdims: bool) -> None:
    x = sample((3, 4, 2))
    x[0] = np.where(x[0] > 0, x[0], 0) if ord == 0 else x[0]
    expected = np.linalg.vector_norm(x.astype("d"), ord=ord, axis=axis, keepdims=keepdims)
    agrees(lnp.linalg.vector_norm(x, ord=ord, axis=axis, keepdims=keepdims), expected, rtol=2e-5)


def test_norm() -> None:
    x = sample((3, 4, 2))
    for ord, axis in ((None, None), (None, 1), (1, 0), ("fro", (0, 2)), ("nuc", (2, 0)), (2, (1, 2)), (np.inf, (1, 0))):
        for keepdims in (False, True):
            expected = np.linalg.norm(x.astype("d"), ord, axis, keepdims)
            agrees(lnp.linalg.norm(x, ord, axis, keepdims), expected)
    agrees(lnp.linalg.norm(x[0], 1), np.linalg.norm(x[0], 1))
    agrees(lnp.linalg.norm([3, 4]), 5.0)


@pytest.mark.parametrize("p", [None, *ORDERS])
def test_cond(p: Any) -> None:
    x = with_condition((2, 4, 4), 20)
    agrees(lnp.linalg.cond(x, p), np.linalg.cond(x.astype("d"), p), rtol=1e-4)


def test_norms_at_zero_have_no_slope() -> None:
    for function in (lnp.linalg.norm, lnp.linalg.vector_norm, lambda x: lnp.linalg.vector_norm(x, ord=3)):
        np.testing.assert_array_equal(np.asarray(lx.grad(function)(np.zeros(3, np.float32))), [0, 0, 0])


def test_products() -> None:
    x, y = sample((2, 3, 4)), sample((2, 4, 3), seed=1)
    agrees(lnp.linalg.matmul(x, y), np.linalg.matmul(x, y))
    agrees(lnp.linalg.trace(x, offset=1), np.linalg.trace(x, offset=1))
    agrees(lnp.linalg.diagonal(x, offset=-1), np.linalg.diagonal(x, offset=-1))
    agrees(lnp.linalg.matrix_transpose(x), np.linalg.matrix_transpose(x))
    agrees(lnp.linalg.tensordot(x, y, axes=((2,), (1,))), np.linalg.tensordot(x, y, axes=((2,), (1,))))
    agrees(lnp.linalg.vecdot(x[0], x[1]), np.linalg.vecdot(x[0], x[1]))
    agrees(lnp.linalg.cross(y[0], y[1]), np.linalg.cross(y[0], y[1]))
    agrees(lnp.linalg.outer(x[0, 0], x[1, 1]), np.linalg.outer(x[0, 0], x[1, 1]))


def test_errors() -> None:
    x = sample((3, 4))
    with pytest.raises(ShapeError, match=r"outer: vectors must have one axis each, got f32\[3,4\] and f32\[3\]"):
        lnp.linalg.outer(x, x[:, 0])
    with pytest.raises(ShapeError, match="cross: vectors must have 3 components along axis -1"):
        lnp.linalg.cross(x, x)
    with pytest.raises(ValueError, match=r"matrix_norm: ord must be .* got 3"):
        lnp.linalg.matrix_norm(x, ord=3)
    with pytest.raises(ShapeError, match=r"matrix_norm takes matrices: .* f32\[4\]"):
        lnp.linalg.matrix_norm(x[0])
    with pytest.raises(ValueError, match="norm: ord='fro' is a norm of matrices"):
        lnp.linalg.norm(x, "fro", axis=0)
    with pytest.raises(ShapeError, match="norm: ord=1 takes one axis or two, got 3"):
        lnp.linalg.norm(sample((2, 2, 2)), 1)


@pytest.mark.parametrize("p", [None, 1, "fro"])
@pytest.mark.parametrize("shape", [(0, 3), (0, 0), (2, 3, 0)])
def test_matrices_without_elements_have_no_condition_number(shape: tuple[int, ...], p: int | str | None) -> None:
    with pytest.raises(ShapeError, match=r"cond: matrices without elements .* got x f32"):
        lnp.linalg.cond(lnp.zeros(shape), p)


@pytest.mark.parametrize("ord", [1, 2, 3, np.inf, "fro", "nuc"])
def test_largest_of_nothing_is_zero(ord: Any) -> None:
    for shape in ((0, 3), (3, 0), (0, 0)):
        if ord != 3:
            agrees(lnp.linalg.norm(np.zeros(shape, np.float32), ord), 0)
        if isinstance(ord, str):
            continue
        agrees(lnp.linalg.vector_norm(np.zeros(shape, np.float32), ord=ord, axis=1), np.zeros(shape[0]))


def test_norms_of_nothing_of_negative_order_are_infinite() -> None:
    agrees(lnp.linalg.vector_norm(np.zeros((2, 0), np.float32), ord=-1, axis=1), [np.inf, np.inf])
    agrees(lnp.linalg.vector_norm(np.array([0, 2], np.float32), ord=-1), 0)


@pytest.mark.parametrize("p", [None, 2, -2, 1, np.inf, "fro"])
def test_condition_numbers_of_singular_matrices(p: Any) -> None:
    matrices = np.stack([np.zeros((3, 3)), np.diag([1, np.nan, 2])]).astype(np.float32)
    found = np.asarray(lnp.linalg.cond(matrices, p))
    assert found[0] == np.inf and np.isnan(found[1])
