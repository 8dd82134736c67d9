"""Orthogonal factors of panels that a GPU's workgroup keeps in registers, products and triangular systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.emit.linalg import reflected_panel
from lavax.backends.vulkan.emit.linalg.reflected_panel import PanelLimits, panel_width
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.ir.types import float32, float64
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.prepare.decompose import linear_algebra
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.target.kernel_limits import MATRICES
from tests.backends.vulkan.run.execution import run_as_gpu

RANDOM = np.random.default_rng(30)
WITHOUT_SHUFFLES = replace(GENERIC_GPU, subgroup_shuffle=False)


def random(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(np.float32)


def assert_factored(matrix: np.ndarray, complete: bool = False) -> None:
    q, r = run_as_gpu(factoring(matrix, complete), [matrix])
    *_, rows, columns = matrix.shape
    bound = 4 * (rows * columns) ** 0.5 * np.finfo(matrix.dtype).eps
    exact, q, r = matrix.astype(np.float64), q.astype(np.float64), r.astype(np.float64)
    unit = np.eye(q.shape[-1])
    np.testing.assert_allclose(
        np.swapaxes(q, -1, -2) @ q, np.broadcast_to(unit, (*q.shape[:-2], *unit.shape)), atol=bound
    )
    largest = np.abs(exact).max()
    np.testing.assert_allclose(q @ (r / largest), exact / largest, rtol=0, atol=bound)
    assert (np.tril(r, -1) == 0).all()
    of_lapack = np.linalg.qr(exact, "complete" if complete else "reduced")[1]
    signs = [np.sign(np.diagonal(each, axis1=-2, axis2=-1)) for each in (r, of_lapack)]
    np.testing.assert_array_equal(*signs)


def factoring(matrix: np.ndarray, complete: bool = False) -> Graph:
    return lx.trace(lambda x: tuple(lx.linalg.qr(x, mode="complete" if complete else "reduced")))(matrix)


@pytest.mark.parametrize("shape", [(9, 7), (3, 12, 6), (48, 33)], ids=str)
def test_factors(shape: tuple[int, ...]) -> None:
    assert_factored(random(*shape))


@pytest.mark.parametrize("shape", [(2, 21, 13)], ids=str)
def test_factors_of_many_panels(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflected_panel, "PANEL", PanelLimits(widths=(4,)))
    assert_factored(random(*shape))


@pytest.fixture
def low_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers hold 16 columns of 32 rows, 8 of 64 and 4 of 128."""
    monkeypatch.setattr(reflected_panel, "PANEL", PanelLimits(invocations=32, words=16))
    monkeypatch.setattr(linear_algebra, "MATRICES", replace(MATRICES, reflected_rows=32))


@pytest.mark.parametrize("shape", [(2, 150, 9), (75, 20)], ids=str)
@pytest.mark.usefixtures("low_blocks")
def test_factors_of_high_panels(shape: tuple[int, ...]) -> None:
    """Blocks of rows side by side, whose triangles are blocks once more."""
    assert_factored(random(*shape))


@pytest.mark.usefixtures("low_blocks")
def test_high_panels_of_dependent_columns_and_of_nan() -> None:
    """Rows of one block alone have all of a column, or its NaN."""
    matrix = random(3, 100, 9)
    matrix[0, :, 4] = 0
    matrix[0, 70:80, 6] = matrix[0, :60, 2] = 0
    matrix[1, 90, 3] = np.nan
    q, r = (each.astype(np.float64) for each in run_as_gpu(factoring(matrix), [matrix]))
    for found in (0, 2):
        np.testing.assert_allclose(q[found].T @ q[found], np.eye(9), atol=2e-5)
        np.testing.assert_allclose(q[found] @ r[found], matrix[found], atol=2e-5)
    assert (r[0, 4:, 4] == 0).all()
    assert np.isnan(r[1, 3:, 3:][np.triu_indices(6)]).all()
    assert np.isfinite(r[1][:, :3]).all()


@pytest.mark.parametrize("shape", [(20, 9)], ids=str)
def test_whole_bases(shape: tuple[int, ...]) -> None:
    assert_factored(random(*shape), complete=True)


def test_columns_that_depend_on_each_other() -> None:
    matrix = random(80, 20)
    matrix[:, 10:] = matrix[:, :10]
    q, r = (each.astype(np.float64) for each in run_as_gpu(factoring(matrix), [matrix]))
    np.testing.assert_allclose(q.T @ q, np.eye(20), atol=2e-5)
    np.testing.assert_allclose(q @ r, matrix, atol=2e-5)


def test_wide_matrices_and_gradients() -> None:
    """A device that is no GPU computes the same in another way."""

    def factors_and_gradient(x: Any) -> Any:
        wide = lx.linalg.qr(x.T).R
        return wide, lx.grad(lambda x: lx.numpy.sum(lx.numpy.sin(lx.linalg.qr(x).Q)))(x)

    matrix = random(20, 9)
    graph = lx.trace(factors_and_gradient)(matrix)
    for got, want in zip(run_as_gpu(graph, [matrix]), interpret(graph, matrix), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


# Which kernels there are


def test_width_by_rows() -> None:
    """As many columns as fit registers; float64 takes twice as many."""
    widths = [panel_width(rows, float32, GENERIC_GPU) for rows in (1, 1024, 1025, 2048, 2049, 4096, 8192, 8193)]
    assert widths == [32, 32, 16, 16, 8, 8, 4, 0]
    assert [panel_width(rows, float64, GENERIC_GPU) for rows in (512, 513, 4097)] == [32, 16, 0]
    few = replace(GENERIC_GPU, max_workgroup_invocations=128)
    assert [panel_width(rows, float32, few) for rows in (512, 513, 4097)] == [32, 16, 0]
    for other in (CPU_DRIVER, WITHOUT_SHUFFLES, replace(GENERIC_GPU, names_subgroup_size=False, min_subgroup_size=8)):
        assert panel_width(100, float32, other) == 0


def reflected_columns(shape: tuple[int, ...], profile: Any) -> list[int]:
    """How many columns each kernel of reflections has, and 0 for a kernel of all of qr."""
    nodes = prepare(factoring(np.zeros(shape, np.float32)), target_of(profile, 1 << 30, 1 << 30)).nodes
    widths = [node.operands[0].shape[-1] for node in nodes if node.op == "householder"]
    return sorted(widths + [0] * sum(node.op == "qr" for node in nodes))


def test_cuts() -> None:
    assert reflected_columns((512, 128), GENERIC_GPU) == [32] * 4
    assert reflected_columns((2048, 64), GENERIC_GPU) == [16] * 4
    assert reflected_columns((40, 40), GENERIC_GPU) == [20, 20]
    assert reflected_columns((3, 3), GENERIC_GPU) == [0]
    assert reflected_columns((100, 3, 3), GENERIC_GPU) == [3]
    assert reflected_columns((32, 32), WITHOUT_SHUFFLES) == [0]
    assert reflected_columns((32, 32), CPU_DRIVER) == [0]


def test_long_sums_of_factors_are_in_parts() -> None:
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 31)
    prepared = prepare(factoring(np.zeros((6000, 16), np.float32)), target)
    products = [node for node in prepared.nodes if node.op == "dot"]
    assert products and all(sizes_of(node).k < 1024 for node in products)
