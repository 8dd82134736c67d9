"""Concatenations that are dispatched part by part, and those that stay one kernel."""
from __future__ import annotations

import numpy as np
import pytest

from lavax import ir
from lavax.backends.vulkan.plan.plan import Plan
from tests.backends.vulkan.emit.emission import PROFILES, plan_of
from tests.backends.vulkan.run.execution import run


def _joined(first: int, second: int, dtype: str = "f32", result: str = "%3") -> str:
    whole = 2 * first + second
    return f"""
        graph (x: {dtype}[{first}], y: {dtype}[{second}], s: {dtype}[]) {{
          %0 = broadcast(s) axes=[] : {dtype}[{first}]
          %1 = multiply(x, %0) : {dtype}[{first}]
          %2 = multiply(x, %1) : {dtype}[{first}]
          %3 = concatenate(%1, %2, y) axis=0 : {dtype}[{whole}]
          %4 = negate(%3) : {dtype}[{whole}]
          return {result}
        }}
    """


def _plan(graph: str, device: str = "cpu") -> Plan:
    return plan_of(graph, PROFILES[device])


def test_each_part_is_a_flat_map_that_writes_where_it_begins() -> None:
    plan = _plan(_joined(32768, 40000))
    assert [dispatch.barrier for dispatch in plan.dispatches] == [False, False, False]
    assert [dispatch.words[0] for dispatch in plan.dispatches] == [0, 32768 // 4, 65536 // 4]
    assert [len(dispatch.slots) for dispatch in plan.dispatches] == [6, 6, 4]
    (group,) = [line for line in plan.dispatches[2].shader.source.splitlines() if "behind(p1" in line]
    assert group.strip() == "p1 = behind(p1, int(words[4]), 16u); w1 += int(words[4]);"


def test_parts_of_one_form_share_a_shader() -> None:
    graph = """
        graph (x: f32[32768], y: f32[128,256], z: f32[40003]) {
          %0 = negate(x) : f32[32768]
          %1 = reshape(y) : f32[32768]
          %2 = negate(%1) : f32[32768]
          %3 = negate(z) : f32[40003]
          %4 = concatenate(%0, %2) axis=0 : f32[65536]
          %5 = concatenate(%4, %3) axis=0 : f32[105539]
          return %5
        }
    """
    plan = _plan(graph)
    assert len(plan.dispatches) == 3 and len({dispatch.shader for dispatch in plan.dispatches}) == 1
    x, y, z = (np.random.default_rng(0).standard_normal(of, np.float32) for of in (32768, (128, 256), 40003))
    (found,) = run(ir.parse(graph), [x, y, z])
    np.testing.assert_array_equal(found, -np.concatenate([x, y.reshape(-1), z]))


@pytest.mark.parametrize(
    ("graph", "device"),
    [
        (_joined(4096, 4096), "cpu"),  # short parts
        (_joined(32769, 40000), "cpu"),  # a part begins within 16 bytes
        (_joined(32768, 40000, result="%4"), "cpu"),  # more than the concatenation
        (_joined(32768, 40000), "gpu"),
    ],
)
def test_others_are_one_kernel(graph: str, device: str) -> None:
    assert len(_plan(graph, device).dispatches) == 1


@pytest.mark.parametrize("dtype", ["f32", "i32", "f16", "i8"])
@pytest.mark.parametrize("sizes", [(32768, 40000), (20000, 16389)])
def test_results(dtype: str, sizes: tuple[int, int]) -> None:
    graph = ir.parse(_joined(*sizes, dtype))
    kind = graph.inputs[0].dtype.numpy
    x, y = (np.random.default_rng(size).integers(-5, 6, size).astype(kind) for size in sizes)
    (found,) = run(graph, [x, y, np.array(2, kind)])
    np.testing.assert_array_equal(found, np.concatenate([2 * x, 2 * x * x, y]))
