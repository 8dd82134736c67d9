"""Eigenvalues and singular values by a GPU's workgroups that keep 64 rows in shared memory: the choice, and values.

Values are computed with as many rows as the shared memory of the device at hand holds, 60 of float32 if it is 32 KB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.emit.linalg import jacobi
from lavax.backends.vulkan.emit.linalg.jacobi import LARGE_ROTATIONS, most_rotated
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph
from lavax.ir.types import DType, float32, float64
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.run.execution import backend, backend_with, run

KILOBYTES = 1 << 10
LARGE_GPU = replace(GENERIC_GPU, shared_memory_bytes=48 * KILOBYTES)


@pytest.mark.parametrize(
    ("dtype", "changes", "rows"),
    [
        (float32, {}, 64),
        (float64, {}, 32),
        (float64, {"shared_memory_bytes": 72 * KILOBYTES}, 64),
        (float32, {"shared_memory_bytes": 32 * KILOBYTES}, 32),
        (float32, {"max_workgroup_invocations": 512}, 64),
        (float32, {"max_workgroup_invocations": 256}, 32),
        (float32, {"kind": "cpu"}, 32),
    ],
)
def test_limits_say_how_many_rows_a_workgroup_keeps(dtype: DType, changes: dict[str, Any], rows: int) -> None:
    profile = replace(LARGE_GPU, **changes)
    assert most_rotated(dtype, profile) == rows
    assert target_of(profile, 1 << 34, 1 << 31).matrices.rotated(dtype) == rows


def eigh_of(array: np.ndarray) -> Graph:
    with lx.enable_x64(array.dtype == np.float64):
        return lx.trace(lambda x: tuple(lx.linalg.eigh(x)))(array)


def svd_of(array: np.ndarray) -> Graph:
    return lx.trace(lambda x: tuple(lx.linalg.svd(x, full_matrices=False)))(array)


def rotating_shaders(traced: Graph) -> list[str]:
    target = target_of(LARGE_GPU, 1 << 34, 1 << 31)
    plan = emit_program(schedule(prepare(traced, target), target=target), LARGE_GPU)
    return [each.shader.source for each in plan.dispatches if "shared real work[" in each.shader.source]


@pytest.mark.parametrize(
    ("rows", "invocations", "side"), [(16, 128, 32), (32, 128, 32), (33, 512, 64), (64, 512, 64), (65, 512, 64)]
)
def test_larger_matrices_alone_have_more_invocations(rows: int, invocations: int, side: int) -> None:
    """Blocks of 65 rows meet in pairs of 34."""
    found = rotating_shaders(eigh_of(np.zeros((rows, rows), np.float32)))
    assert found
    for source in found:
        assert f"const int LOCAL = {invocations};" in source
        assert f"local_size_x = {invocations}" in source
        assert f"const int SIDE = {side}, STRIDE = SIDE + 1;" in source


def test_one_kernel_takes_all_rows_that_fit() -> None:
    """Of 128 rows, four blocks meet each other in three rounds; so few are written out, not a loop."""
    kernels = {rows: len(rotating_shaders(eigh_of(np.zeros((rows, rows), np.float32)))) for rows in (64, 128)}
    assert kernels == {64: 1, 128: 3}


@pytest.mark.parametrize("factors", [eigh_of, svd_of])
def test_arrays_are_within_the_shared_memory_that_was_asked_for(factors: Callable[[np.ndarray], Graph]) -> None:
    sizes = {"SIDE": 64, "STRIDE": 65, "LOCAL": 512}
    found = rotating_shaders(factors(np.zeros((64, 64), np.float32)))
    assert found
    for source in found:
        declared = " ".join(re.findall(r"^shared (?:real|int) (.*);$", source, re.MULTILINE))
        lengths = re.findall(r"\[([A-Z0-9 */+]+)\]", declared)
        words = sum(eval(length.replace("/", "//"), {}, sizes) for length in lengths)
        assert 2 * 64 * 65 < words <= LARGE_ROTATIONS.shared_bytes(float32) // 4


def with_values(values: Sequence[float], dtype: type) -> np.ndarray:
    """A symmetric matrix with these eigenvalues."""
    q, _ = np.linalg.qr(np.random.default_rng(len(values)).normal(size=(len(values), len(values))))
    x = (q * np.asarray(values) @ q.T).astype(dtype)
    return (x + x.T) / 2


def spread(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=rows)


CASES = {
    "33": with_values(spread(33), np.float32)[None],
    "60": with_values(spread(60), np.float32)[None],
    "65, repeated": with_values([2.0] * 30 + [-1.0] * 35, np.float32)[None],
    "a batch of 40, zeros, repeated": np.stack(
        [
            with_values(spread(40), np.float32),
            np.zeros((40, 40), np.float32),
            with_values([2.0] * 10 + [-1.0] * 30, np.float32),
            with_values([3e30] * 20 + [1e30] * 20, np.float32),
        ]
    ),
    "128": with_values(spread(128), np.float32)[None],
    "100, positive, of many scales": with_values(np.logspace(-6, 0, 100), np.float32)[None],
    "float64 of 37": with_values(spread(37), np.float64)[None],
}


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[[DType], VulkanBackend]:
    """A GPU with the memory that such rows of the dtype take."""

    def found(dtype: DType) -> VulkanBackend:
        memory = backend().profile.shared_memory_bytes
        sizes = [replace(LARGE_ROTATIONS, rows=rows) for rows in range(LARGE_ROTATIONS.rows, 32, -2)]
        largest = next(each for each in sizes if each.shared_bytes(dtype) <= memory)
        monkeypatch.setattr(jacobi, "LARGE_ROTATIONS", largest)
        device = backend_with(kind="gpu", shared_memory_bytes=largest.shared_bytes(dtype))
        assert device.target.matrices.rotated(dtype) == largest.rows
        return device

    return found


@pytest.mark.parametrize("x", CASES.values(), ids=CASES.keys())
def test_eigenvalues_and_vectors(x: np.ndarray, gpu: Callable[[DType], VulkanBackend]) -> None:
    if x.dtype == np.float64 and not backend().profile.float64:
        pytest.skip("the device has no float64")
    values, vectors = run(eigh_of(x), [x], device=gpu(float64 if x.dtype == np.float64 else float32))
    rows, epsilon = x.shape[-1], float(np.finfo(x.dtype).eps)
    for exact, value, vector in zip(x.astype(np.longdouble), values, vectors, strict=True):
        # A method that is backward stable errs by a small multiple of the size times the norm of the matrix.
        bound = rows * epsilon * np.linalg.norm(exact.astype(np.float64), 2)
        np.testing.assert_allclose(value, np.linalg.eigvalsh(exact.astype(np.float64)), rtol=0, atol=bound)
        np.testing.assert_allclose((exact @ vector).astype(float), (vector * value).astype(float), rtol=0, atol=bound)
        product = vector.T @ vector.astype(np.longdouble)
        np.testing.assert_allclose(product.astype(float), np.eye(rows), rtol=0, atol=rows * epsilon)


def test_singular_values_and_vectors(gpu: Callable[[DType], VulkanBackend]) -> None:
    x = np.random.default_rng(5).normal(size=(58, 58)).astype(np.float32)
    left, values, right = (found.astype(np.float64) for found in run(svd_of(x), [x], device=gpu(float32)))
    bound = 58 * 2.0**-23
    exact = np.linalg.svd(x.astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(values, exact, rtol=0, atol=bound * exact[0])
    np.testing.assert_allclose(left * values @ right, x, rtol=0, atol=bound * exact[0])
    for columns in (left, right.T):
        np.testing.assert_allclose(columns.T @ columns, np.eye(58), rtol=0, atol=bound)


def test_singular_values_alone_of_blocks(gpu: Callable[[DType], VulkanBackend]) -> None:
    x = np.random.default_rng(6).normal(size=(66, 66)).astype(np.float32)
    traced = lx.trace(lambda x: lx.linalg.svd(x, compute_uv=False))(x)
    (values,) = run(traced, [x], device=gpu(float32))
    exact = np.linalg.svd(x.astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(values, exact, rtol=0, atol=66 * 2.0**-23 * exact[0])


def test_values_alone_and_nan_in_a_batch(gpu: Callable[[DType], VulkanBackend]) -> None:
    x = np.stack([with_values(spread(48), np.float32)] * 3)
    x[1, 20, 4] = np.nan
    (found,) = run(lx.trace(lx.linalg.eigvalsh)(x), [x], device=gpu(float32))
    assert np.isnan(found[1]).all()
    exact = np.linalg.eigvalsh(x[0].astype(np.float64))
    np.testing.assert_allclose(found[[0, 2]], [exact] * 2, rtol=0, atol=48 * 2.0**-23 * abs(exact).max())


def test_a_cpu_driver_has_no_large_workgroups() -> None:
    target = target_of(CPU_DRIVER, 1 << 34, 1 << 31)
    assert target.matrices.rotated(float32) == target.matrices.rotated(float64) == 32
