"""Small matrices in registers, in batches and alone, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.linalg.small import is_small
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.tracer import bind

random = np.random.default_rng(11)


def positive(*shape: int) -> Any:
    x = random.normal(size=shape)
    return (x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])).astype("f")


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (8, 8), (11, 2, 2), (3, 4, 4), (2, 3, 5, 5), (2, 16, 16)])
def test_roots(shape: tuple[int, ...]) -> None:
    x = positive(*shape)
    found = np.asarray(lx.compile(lnp.linalg.cholesky)(x))
    np.testing.assert_allclose(found, np.linalg.cholesky(x.astype("d")), rtol=0, atol=1e-5 * shape[-1])


def test_a_root_that_is_none_is_nan_for_its_matrix_alone() -> None:
    """Also where the last pivot alone has no root, or is zero."""
    one = np.eye(3, dtype="f")
    x = np.stack([one, -one, np.full_like(one, np.nan), np.diag([1, 1, -1]), np.diag([1, 1, 0]), 4 * one]).astype("f")
    found = np.asarray(lx.compile(lnp.linalg.cholesky)(x))
    below = np.tril(np.ones((3, 3), bool))
    assert np.isnan(found[1:5][:, below]).all() and (found[:, ~below] == 0).all()
    np.testing.assert_array_equal(found[[0, 5]], [np.eye(3), 2 * np.eye(3)])


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (5, 3), (8, 8), (3, 4, 4), (2, 3, 5, 5), (9, 2, 1)])
def test_elimination_gives_the_rows_in_their_order(shape: tuple[int, ...]) -> None:
    x = random.normal(size=shape).astype("f")
    x[..., 0, 0] = 0
    rows, columns = shape[-2:]
    found = np.asarray(lx.compile(lambda x: bind("lu", x))(x)).reshape(-1, rows * columns + rows + 1)
    for matrix, packed in zip(x.reshape(-1, rows, columns), found, strict=True):
        factors, order = packed[: rows * columns].reshape(rows, columns), packed[rows * columns : -1].astype(int)
        lower = np.tril(factors, -1)[:, :columns] + np.eye(rows, columns)
        np.testing.assert_allclose(lower @ np.triu(factors)[:columns], matrix[order], rtol=0, atol=1e-5)
        assert np.abs(lower).max() <= 1 and packed[-1] == round(float(np.linalg.det(np.eye(rows)[order])))


@pytest.mark.parametrize("shape", [(3, 3, 1), (16, 16, 2), (2, 4, 4, 9), (3, 5, 5, 1)])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_substitution(shape: tuple[int, ...], lower: bool, transposed: bool, unit: bool) -> None:
    *batch, rows, _, sides = shape
    x = (random.normal(size=shape[:-1], scale=0.3) + 2 * np.eye(rows)).astype("f")
    b = random.normal(size=(*batch, rows, sides)).astype("f")
    triangle = np.tril(x.astype("d")) if lower else np.triu(x.astype("d"))
    if unit:
        triangle = triangle - triangle * np.eye(rows) + np.eye(rows)
    triangle = np.swapaxes(triangle, -1, -2) if transposed else triangle
    attrs = dict(lower=lower, transposed=transposed, unit_diagonal=unit)
    found = np.asarray(lx.compile(lambda x, b: bind("triangular_solve", x, b, **attrs))(x, b))
    wanted = np.linalg.solve(triangle, b)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * (1 + np.abs(wanted).max()))


def test_only_cpu_drivers_have_small_matrices_in_registers() -> None:
    for rows, is_one in ((16, True), (17, False)):
        (step,) = schedule(prepare(lx.trace(lnp.linalg.cholesky)(positive(rows, rows)))).steps[:1]
        kernel = step.kernels[0]  # type: ignore[union-attr]
        assert is_small(kernel, CPU_DRIVER, False) == is_one and not is_small(kernel, GENERIC_GPU, False)
