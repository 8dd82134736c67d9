"""Elimination in one kernel: LAPACK's pivots and factors, whatever the lanes keep."""
from __future__ import annotations

import numpy as np
import pytest

from lavax.backends.vulkan.emit.linalg import lu_by_columns
from tests.backends.vulkan.run.execution import backend, run
from tests.backends.vulkan.test_decompositions import graph

RANDOM = np.random.default_rng(13)
SHAPES = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (8, 8), (9, 9), (3, 13, 13), (64, 64), (40, 7), (100, 33), (9, 4)]


def found_of(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = matrix.shape[-2:]
    (packed,) = run(graph("lu", [matrix]), [matrix])
    factors = packed[..., : rows * columns].reshape(matrix.shape)
    return factors, packed[..., rows * columns : -1].astype(int), packed[..., -1]


def assert_eliminated(matrix: np.ndarray) -> None:
    assert_factors(matrix, *found_of(matrix))


def assert_factors(matrix: np.ndarray, factors: np.ndarray, order: np.ndarray, parity: np.ndarray) -> None:
    rows, columns = matrix.shape[-2:]
    lower = np.tril(factors, -1).astype(np.float64) + np.eye(rows, columns)
    exact = np.take_along_axis(matrix.astype(np.float64), order[..., None], -2)
    rounding = (columns + 8) * np.finfo(matrix.dtype).eps * max(np.abs(factors).max(), 1)
    np.testing.assert_allclose(lower @ np.triu(factors[..., :columns, :]), exact, rtol=0, atol=rounding)
    np.testing.assert_array_equal(np.linalg.det(np.eye(rows)[order]).round(), parity)
    assert (np.abs(lower) <= 1).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors(shape: tuple[int, ...]) -> None:
    assert_eliminated(RANDOM.normal(size=shape).astype(np.float32))


def test_both_kernels_subtract_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = RANDOM.normal(size=(45, 37)).astype(np.float32)
    by_columns = found_of(matrix)
    monkeypatch.setattr(lu_by_columns, "_MOST_ELEMENTS", 0)
    for one, other in zip(by_columns, found_of(matrix), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_first_of_equal_pivots_is_taken() -> None:
    matrix = np.array([[1, 5, 2], [-2, 1, 0], [2, 3, 1], [2, 0, 7]], np.float32)
    assert found_of(matrix)[1][0] == 1
    np.testing.assert_array_equal(found_of(np.ones((6, 6), np.float32))[1], np.arange(6))


@pytest.mark.parametrize("column", [0, 3, 4, 9])
def test_columns_of_zeros(column: int) -> None:
    matrix = RANDOM.normal(size=(11, 11)).astype(np.float32)
    matrix[:, column] = 0
    factors, _, _ = found_of(matrix)
    assert (np.abs(factors[column, column])) == 0
    assert_eliminated(matrix)


def test_nan_and_infinity_stay_in_their_matrix() -> None:
    matrices = RANDOM.normal(size=(3, 12, 12)).astype(np.float32)
    matrices[1, 5, 3] = np.nan
    factors, _, _ = found_of(matrices)
    assert np.isnan(factors[1, -1, -1]) and np.isfinite(factors[[0, 2]]).all()
    matrices[1, 5, 3] = np.inf
    assert not np.isfinite(found_of(matrices)[0][1]).all()


def test_doubles() -> None:
    if not backend().profile.float64:
        pytest.skip("the device has no float64")
    assert_eliminated(RANDOM.normal(size=(2, 21, 21)))
