"""Pseudoinverses and least squares of oblong matrices: by factors Q·R where the rank is surely full, else by singular
values; against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.linalg.inverses import _FEW_VALUES, _surely_has_full_rank
from lavax.linalg.solving import solve_triangular
from tests.lavax.linalg.linear_algebra import EPSILON, with_condition

COLUMNS = _FEW_VALUES + 1


def exact(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


def of_rank(rank: int, rows: int, columns: int) -> np.ndarray:
    values = np.concatenate([np.linspace(1, 3, rank), np.zeros(min(rows, columns) - rank)])
    random = np.random.default_rng(rank)
    left, right = (np.linalg.qr(random.normal(size=(size, len(values))))[0] for size in (rows, columns))
    return (left * values @ right.T).astype(np.float32)


def assert_inverse(matrix: np.ndarray) -> None:
    """Values of the matrix are from 1 to 3, or zeros."""
    expected = np.linalg.pinv(exact(matrix), rcond=max(matrix.shape[-2:]) * EPSILON)
    bound = 8 * EPSILON * 3 * max(matrix.shape[-2:]) ** 0.5 * np.abs(expected).max()
    np.testing.assert_allclose(exact(lnp.linalg.pinv(matrix)), expected, rtol=0, atol=bound)


@pytest.mark.parametrize("shape", [(40, COLUMNS), (COLUMNS, 40)])
@pytest.mark.parametrize("missing", [0, 3])
def test_ranks(shape: tuple[int, int], missing: int) -> None:
    rank = min(shape) - missing
    matrix = of_rank(rank, *shape)
    assert_inverse(matrix)
    right = np.random.default_rng(1).normal(size=(shape[0], 2)).astype(np.float32)
    x, squares, found_rank, values = lnp.linalg.lstsq(matrix, right)
    expected = np.linalg.lstsq(exact(matrix), exact(right), rcond=max(shape) * EPSILON)
    np.testing.assert_allclose(exact(x), expected[0], rtol=0, atol=1e-5)
    assert int(found_rank) == rank
    np.testing.assert_allclose(exact(values), expected[3], rtol=0, atol=3e-6)
    np.testing.assert_allclose(exact(squares), ((exact(matrix) @ expected[0] - right) ** 2).sum(0), rtol=0, atol=1e-4)


def test_a_stack_of_full_and_of_lower_rank() -> None:
    assert_inverse(np.stack([of_rank(COLUMNS, 40, COLUMNS), of_rank(COLUMNS - 2, 40, COLUMNS)]))


@pytest.mark.parametrize("batch", [(), (1,)], ids=str)
def test_several_tolerances_of_one_matrix(batch: tuple[int, ...]) -> None:
    matrix = of_rank(COLUMNS, 40, COLUMNS).reshape(*batch, 40, COLUMNS)
    tolerances = np.array([1e-3, 0.61], np.float32)
    expected = [np.linalg.pinv(exact(matrix.reshape(40, COLUMNS)), rcond=tolerance) for tolerance in tolerances]
    np.testing.assert_allclose(lnp.linalg.pinv(matrix, tolerances), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1e18, 1e30])
def test_numbers_whose_squares_are_none(scale: float) -> None:
    matrix = (scale * of_rank(COLUMNS, 40, COLUMNS)).astype(np.float32)
    found = exact(lnp.linalg.pinv(matrix)) * scale
    np.testing.assert_allclose(found, np.linalg.pinv(exact(matrix) / scale), rtol=0, atol=1e-5)


@pytest.mark.parametrize("rtol", [0.52, np.array([0.52, 1e-5], np.float32)], ids=["one", "each"])
def test_a_tolerance_counts_values_as_zeros(rtol: Any) -> None:
    """Of values from 1 to 3, those up to 1.5, which are below 0.52 times 3."""
    matrix = of_rank(COLUMNS, 40, COLUMNS)
    whole, cut = (np.linalg.pinv(exact(matrix), rcond=each) for each in (1e-5, 0.52))
    found = exact(lnp.linalg.pinv(np.stack([matrix, matrix]), rtol))
    assert np.abs(whole - cut).max() > 1e-2
    np.testing.assert_allclose(found, np.stack([cut, cut if np.ndim(rtol) == 0 else whole]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_has_no_inverse(bad: float) -> None:
    matrix = of_rank(COLUMNS, 40, COLUMNS)
    matrix[5, 3] = bad
    assert np.isnan(exact(lnp.linalg.pinv(matrix))).all()


def test_surely_of_full_rank() -> None:
    """A bound of the condition, which is no less than the condition and little more for diagonal triangles."""

    def surely(values: np.ndarray, relative: float) -> bool:
        triangle = np.diag(values).astype(np.float32)
        inverse = solve_triangular(triangle, np.eye(len(values), dtype=np.float32))
        return bool(_surely_has_full_rank(lnp.asarray(triangle), inverse, relative, 100))

    falling = np.linspace(1, 1e-2, 30)
    assert surely(falling, 0.0) and surely(falling, 4.9e-3) and not surely(falling, 5.1e-3)
    assert not surely(np.linspace(1, 1.9 * 100 * EPSILON, 30), 0.0)
    assert surely(np.linspace(1, 2.1 * 100 * EPSILON, 30), 0.0)
    assert not surely(np.append(falling, 0), 0.0) and not surely(np.append(falling, np.nan), 0.0)


def test_one_at_a_time_and_all_together() -> None:
    stack = np.stack([of_rank(COLUMNS, 40, COLUMNS), of_rank(COLUMNS - 1, 40, COLUMNS)])
    found = lx.compile(lx.vmap(lnp.linalg.pinv))(stack)
    for one, matrix in zip(exact(found), stack, strict=True):
        np.testing.assert_allclose(one, exact(lnp.linalg.pinv(matrix)), rtol=0, atol=1e-5)


def test_gradients() -> None:
    matrix, right = with_condition((40, COLUMNS), 8), np.ones((40, 2), np.float32)
    by_matrix, by_right = lx.grad(lambda a, b: (lnp.linalg.lstsq(a, b)[0] ** 2).sum(), (0, 1))(matrix, right)
    step = 1e-6
    for number, (given, found) in enumerate(((matrix, by_matrix), (right, by_right))):
        direction = np.random.default_rng(3).normal(size=given.shape)
        ends = []
        for sign in (1, -1):
            arrays = [exact(matrix), exact(right)]
            arrays[number] = arrays[number] + sign * step * direction
            ends.append((np.linalg.lstsq(*arrays, rcond=None)[0] ** 2).sum())
        expected = (ends[0] - ends[1]) / (2 * step)
        scale = np.linalg.norm(exact(found)) * np.linalg.norm(direction)
        assert abs((exact(found) * direction).sum() - expected) < 1e-4 * scale
