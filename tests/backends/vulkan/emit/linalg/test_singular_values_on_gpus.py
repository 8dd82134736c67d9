"""Singular values of small matrices by subgroups of a GPU, each of which has a matrix in shared memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.emit.linalg.singular_values import _lanes_of_pair
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.run.execution import backend, backend_with, run

EPSILON = float(np.finfo(np.float32).eps)


def matrices(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


def dependent(*shape: int) -> np.ndarray:
    found = matrices(*shape)
    found[..., 1], found[..., 2] = found[..., 0], 0
    return found


def factors_of(x: np.ndarray, full: bool, **changes: Any) -> list[np.ndarray]:
    with lx.enable_x64(x.dtype == np.float64):
        traced = lx.trace(lambda x: tuple(lx.linalg.svd(x, full_matrices=full)))(x)
    return run(traced, [x], device=backend_with(kind="gpu", **changes))


def assert_factors(x: np.ndarray, full: bool, **changes: Any) -> None:
    left, values, right = (each.astype(np.float64) for each in factors_of(x, full, **changes))
    exact, count = x.astype(np.float64), values.shape[-1]
    rounding = 2 * max(x.shape[-2:]) * np.finfo(x.dtype).eps
    bound = rounding * np.linalg.norm(exact, 2, (-2, -1)).max()
    np.testing.assert_allclose(values, np.linalg.svd(exact, compute_uv=False), rtol=0, atol=bound)
    whole = left[..., :count] * values[..., None, :] @ right[..., :count, :]
    np.testing.assert_allclose(whole, exact, rtol=0, atol=bound)
    for vectors in (np.swapaxes(left, -1, -2), right):
        unit = np.broadcast_to(np.eye(vectors.shape[-2]), (*vectors.shape[:-1], vectors.shape[-2]))
        np.testing.assert_allclose(vectors @ np.swapaxes(vectors, -1, -2), unit, rtol=0, atol=rounding)


# Pairs of one lane, two, four and eight, on a subgroup of eight; an odd number of columns; ranks below them.
CASES = [matrices(3, 16, 16), matrices(32, 13), matrices(2, 9, 5), dependent(4, 4), matrices(2, 2)]


@pytest.mark.parametrize("x", CASES, ids=lambda x: str(x.shape))
def test_factors(x: np.ndarray) -> None:
    assert_factors(x, False)


@pytest.mark.parametrize("x", [matrices(2, 24, 7), dependent(9, 3)])
def test_whole_bases(x: np.ndarray) -> None:
    assert_factors(x, True)


def test_doubles() -> None:
    if not backend().profile.float64:
        pytest.skip("the device has no float64")
    assert_factors(np.random.default_rng(6).normal(size=(2, 20, 6)), False)


def test_devices_without_exchanges_between_lanes() -> None:
    assert_factors(matrices(2, 9, 5), False, subgroup_shuffle=False)


def test_values_alone_and_nan_in_a_batch() -> None:
    x = matrices(3, 10, 6)
    x[1, 4, 4] = np.nan
    (values,) = run(lx.trace(lx.linalg.svdvals)(x), [x], device=backend_with(kind="gpu"))
    assert np.isnan(values[1]).all()
    expected = np.linalg.svd(x[[0, 2]].astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(values[[0, 2]], expected, rtol=0, atol=20 * EPSILON * expected.max())


def test_lanes_of_a_pair() -> None:
    """A power of two, so many that no pair of a turn waits, if the subgroup has as many lanes as pairs."""
    found = {columns: _lanes_of_pair(columns, 32) for columns in (1, 2, 3, 4, 5, 8, 11, 16)}
    assert found == {1: 32, 2: 32, 3: 16, 4: 16, 5: 8, 8: 8, 11: 4, 16: 4}
    assert _lanes_of_pair(16, 8) == 1 and _lanes_of_pair(16, 4) == 1


def sources_of(shape: tuple[int, ...], profile: DeviceProfile) -> list[str]:
    target = target_of(profile, 1 << 34, 1 << 31)
    traced = lx.trace(lambda x: tuple(lx.linalg.svd(x, full_matrices=False)))(np.zeros(shape, np.float32))
    plan = emit_program(schedule(prepare(traced, target), target=target), profile)
    return [each.shader.source for each in plan.dispatches if "players(" in each.shader.source]


def test_matrices_are_in_shared_memory_of_gpus_alone() -> None:
    (of_gpu,) = sources_of((16, 16), GENERIC_GPU)
    assert "shared real whole[528];" in of_gpu and "local_size_x = 32" in of_gpu
    assert of_gpu.count("x.data[") == 1  # the result
    for profile in (CPU_DRIVER, replace(GENERIC_GPU, subgroup_shuffle=False)):
        assert not any("shared real whole" in source for source in sources_of((4, 4), profile))
