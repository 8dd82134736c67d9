"""Cholesky's factor where lanes keep columns: rounding as of LAPACK, whatever the size, and NaN where it belongs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lavax.backends.vulkan.emit.linalg import cholesky_by_columns
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir.interpreter import interpret
from lavax.passes.prepare.pipeline import prepare
from tests.backends.vulkan.run.execution import backend, run
from tests.backends.vulkan.test_decompositions import graph

RANDOM = np.random.default_rng(14)
SHAPES = [(17, 17), (24, 24), (31, 31), (3, 33, 33), (2, 2, 20, 20), (64, 64), (100, 100), (128, 128), (150, 150)]


def positive(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    matrix = RANDOM.normal(size=shape)
    return (matrix @ np.swapaxes(matrix, -1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def factor_of(matrix: np.ndarray, *, eager: bool = False) -> np.ndarray:
    (found,) = run(graph("cholesky", [matrix]), [matrix], eager=eager)
    return found


def assert_factored(matrix: np.ndarray, *, eager: bool = False) -> None:
    found, size = factor_of(matrix, eager=eager).astype(np.float64), matrix.shape[-1]
    exact = np.tril(matrix).astype(np.float64)
    exact += np.swapaxes(np.tril(exact, -1), -1, -2)
    rounding = (size + 1) * np.finfo(matrix.dtype).eps / 2 * np.abs(exact).max()
    np.testing.assert_allclose(found @ np.swapaxes(found, -1, -2), exact, rtol=0, atol=rounding)
    assert (np.triu(found, 1) == 0).all()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors(shape: tuple[int, ...]) -> None:
    assert_factored(positive(*shape))


def test_eager_programs() -> None:
    assert_factored(positive(2, 21, 21), eager=True)


def test_doubles() -> None:
    if not backend().profile.float64:
        pytest.skip("the device has no float64")
    assert_factored(positive(2, 29, 29, dtype=np.float64))


def test_rows_above_the_diagonal_are_not_read() -> None:
    matrix = positive(41, 41)
    matrix[np.triu_indices(41, 1)] = np.nan
    assert_factored(matrix)


@pytest.mark.parametrize("place", [0, 7, 8, 30, 36])
def test_what_has_no_factor_is_nan(place: int) -> None:
    matrices = positive(3, 37, 37)
    matrices[1, place, place] = -1
    assert_without_factor(factor_of(matrices))


@pytest.mark.parametrize("size", [1, 3, 40, 200])
def test_what_has_no_factor_is_zero_above_its_triangle(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In registers, by rows, and in blocks."""
    monkeypatch.setattr(cholesky_by_columns, "_MOST_ELEMENTS", 0)
    matrices = positive(3, size, size)
    matrices[1, -1, -1] = -1
    assert_without_factor(factor_of(matrices))
    assert_without_factor(interpret(graph("cholesky", [matrices]), matrices)[0])


def assert_without_factor(found: np.ndarray) -> None:
    """The second of three matrices has none."""
    below = np.tril(np.ones(found.shape[1:], bool))
    assert np.isnan(found[1][below]).all() and (found[:, ~below] == 0).all()
    assert np.isfinite(found[[0, 2]]).all()


def test_lanes_keep_as_many_columns_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = positive(45, 45)
    by_columns = factor_of(matrix)
    monkeypatch.setattr(cholesky_by_columns, "_MOST_ELEMENTS", 0)
    np.testing.assert_allclose(factor_of(matrix), by_columns, rtol=0, atol=45 * np.finfo("f").eps)


def test_one_kernel_factors_128_rows_where_lanes_keep_columns() -> None:
    program = graph("cholesky", [positive(128, 128)])
    kernels = {
        profile.kind: [node.op for node in prepare(program, target_of(profile, 1 << 30, 1 << 30)).nodes]
        for profile in (CPU_DRIVER, GENERIC_GPU)
    }
    assert kernels["cpu"] == ["cholesky"] and kernels["gpu"].count("cholesky") == 2
