"""Orders of rows that are sorted by counting: on a CPU driver an invocation has several elements of a row."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule

rng = np.random.default_rng(8)


def rows(length: int, dtype: str) -> np.ndarray:
    found = rng.integers(-3, 4, size=(7, length))  # with ties
    if dtype == "bool":
        return found > 0
    found = found.astype(dtype)
    if dtype.startswith("float"):
        found[rng.random(found.shape) < 0.1] = np.nan
        found[rng.random(found.shape) < 0.1] *= -0.0
        found[0, 0], found[1, -1] = np.inf, -np.inf
    return found


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "bool"])
@pytest.mark.parametrize("length", [2, 4, 5, 7, 8, 9, 15, 16, 17, 61, 64])
def test_orders_are_numpys(length: int, dtype: str) -> None:
    x = rows(length, dtype)
    found = lx.compile(lambda x: lnp.argsort(x, 1))(x)
    np.testing.assert_array_equal(np.asarray(found), np.argsort(x, 1, kind="stable"))


@pytest.mark.parametrize("length", [65, 100, 1000])
def test_long_rows_and_columns_are_sorted_alike(length: int) -> None:
    x = rows(length, "float32")[:2]
    compiled = lx.compile(lambda x: (lnp.argsort(x, 1), lnp.sort(x.T, 0)))
    order, columns = compiled(x)
    np.testing.assert_array_equal(np.asarray(order), np.argsort(x, 1, kind="stable"))
    np.testing.assert_array_equal(np.asarray(columns), np.sort(x.T, 0))


def shader_of(length: int, profile: DeviceProfile) -> Any:
    target = target_of(profile, 1 << 34, 1 << 32)
    graph = prepare(lx.trace(lambda x: lnp.argsort(x, 1))(np.zeros((16, length), "f")), target)
    dispatch, *_ = emit_program(schedule(graph, target=target), profile).commands
    return dispatch.shader.source


def test_an_invocation_of_a_cpu_driver_has_several_elements() -> None:
    counts = {length: shader_of(length, CPU_DRIVER).count("int place") for length in (3, 4, 7, 8, 64)}
    assert counts == {3: 0, 4: 4, 7: 4, 8: 8, 64: 8}
    assert "int place" not in shader_of(64, GENERIC_GPU)
