"""Reflections of panels that a GPU's workgroup keeps in registers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.ir import Graph, interpret
from tests.backends.vulkan.emit.emission import dispatch_of, main_of
from tests.backends.vulkan.run.execution import backend, run_as_gpu
from tests.backends.vulkan.test_decompositions import graph

RANDOM = np.random.default_rng(29)
PANELS = [(1, 1), (2, 1), (3, 3), (17, 5), (33, 32), (2, 3, 20, 6), (300, 17), (1000, 3), (1500, 8)]
pytestmark = pytest.mark.parametrize("op", ["householder"])


def random(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(dtype)


def reflecting(matrix: np.ndarray) -> Graph:
    return graph("householder", [matrix])


def parts_of_panel(matrix: np.ndarray, **how: Any) -> tuple[np.ndarray, np.ndarray]:
    """The vectors and the triangle, as a GPU finds them, in float64."""
    (found,) = run_as_gpu(reflecting(matrix), [matrix], **how)
    *batch, rows, columns = matrix.shape
    vectors, triangle = np.split(found.astype(np.float64), [rows * columns], axis=-1)
    return vectors.reshape(*batch, rows, columns), triangle.reshape(*batch, columns, columns)


def assert_reflected(matrix: np.ndarray, **how: Any) -> None:
    """Errors are at most the rounding of as many operations as there are rows, of the largest element."""
    vectors, triangle = parts_of_panel(matrix, **how)
    (expected,) = interpret(reflecting(matrix), matrix)
    rows, columns = matrix.shape[-2:]
    first, last = np.split(expected, [rows * columns], axis=-1)
    bound = 8 * (rows * columns) ** 0.5 * np.finfo(matrix.dtype).eps
    np.testing.assert_allclose(vectors, first.reshape(vectors.shape), rtol=0, atol=bound)
    largest = np.abs(last).max()
    np.testing.assert_allclose(triangle / largest, last.reshape(triangle.shape) / largest, rtol=0, atol=bound)


@pytest.mark.parametrize("shape", PANELS, ids=str)
def test_panels(op: str, shape: tuple[int, ...]) -> None:
    assert_reflected(random(*shape))


def test_eager_programs(op: str) -> None:
    assert_reflected(random(2, 19, 11), eager=True)


@pytest.mark.parametrize("shape", [(40, 17), (300, 9)], ids=str)
def test_doubles(op: str, shape: tuple[int, ...]) -> None:
    if not backend().profile.float64:
        pytest.skip("the device has no float64")
    assert_reflected(random(*shape, dtype=np.float64))


@pytest.mark.parametrize("factor", [1e30, 1e-30])
def test_squares_neither_overflow_nor_vanish(op: str, factor: float) -> None:
    assert_reflected((random(50, 9) * factor).astype(np.float32))


def test_columns_of_zeros_stay_as_they_are(op: str) -> None:
    """The first column is zero below the diagonal, the second everywhere."""
    matrix = np.triu(random(20, 8))
    matrix[2:, 2:4] = random(18, 2)
    matrix[:, 1] = 0
    vectors, triangle = parts_of_panel(matrix)
    assert (vectors[:, [0, 1]] == 0).all()
    np.testing.assert_array_equal(triangle[:, 0], matrix[:8, 0])
    assert (triangle[:, 1] == 0).all()
    assert_reflected(matrix)


def test_what_has_no_normal_square_is_zero(op: str) -> None:
    tiny = np.zeros((20, 1), np.float32)
    tiny[0], tiny[9] = 1, 1e-18
    vectors, triangle = parts_of_panel(tiny)
    assert (vectors == 0).all()
    assert triangle == 1


def test_infinity_in_a_finished_row_stays_there(op: str) -> None:
    matrix = random(40, 6)
    matrix[1:, 0] = 0
    matrix[0, 4] = np.inf
    vectors, triangle = parts_of_panel(matrix)
    finite = matrix.copy()
    finite[0, 4] = 0
    others, rest = parts_of_panel(finite)
    assert triangle[0, 4] == np.inf
    np.testing.assert_array_equal(vectors, others)
    np.testing.assert_array_equal(np.delete(triangle, 0, 0), np.delete(rest, 0, 0))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_reaches_columns_behind_and_no_other_matrix(op: str, bad: float) -> None:
    matrices = random(3, 40, 12)
    matrices[1, 30, 5] = bad
    vectors, triangle = parts_of_panel(matrices)
    assert np.isnan(triangle[1][5:, 5:][np.triu_indices(7)]).all()
    assert np.isfinite(triangle[1][:, :5]).all()
    assert np.isfinite(vectors[1][:, :5]).all()
    assert (np.triu(vectors[1][:12], 1) == 0).all()
    for each in (vectors, triangle):
        assert np.isfinite(each[[0, 2]]).all()


def shader_of(rows: int, columns: int) -> str:
    return main_of(dispatch_of(reflecting(np.zeros((rows, columns), np.float32)), GENERIC_GPU))


def test_the_shader(op: str) -> None:
    """Three meetings a column, and none that only some invocations reach; elements in registers are numbered."""
    text = shader_of(500, 7)
    assert text.count("barrier();") == 3
    assert not re.findall(r"^ {12,}barrier\(\);", text, re.MULTILINE)
    assert "local_size_x = 256" in text
    assert "real own[16];" in text
    assert text.count("subgroupShuffleXor(") == 1 + (4 + 2 + 1) + 2


def test_panels_of_other_lengths_share_the_shader(op: str) -> None:
    assert shader_of(500, 7) == shader_of(300, 5)
    assert shader_of(500, 7) != shader_of(500, 9)
