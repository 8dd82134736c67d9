"""Flat maps that are dispatched one by one, through windows: the shader they share, and which stay merged."""
from __future__ import annotations

import numpy as np
import pytest

from lavax import ir
from lavax.backends.vulkan.plan.plan import Plan
from tests.backends.vulkan.emit.emission import PROFILES, assert_shader, plan_of
from tests.backends.vulkan.run.execution import run

SHADER = """
    layout(local_size_x = 8, local_size_y = 1) in;
    void main() {
        uint64_t p0 = table.address[words[0]];
        uint64_t p1 = table.address[words[1]];
        int w0 = int(table.address[words[2]]);
        int w1 = int(table.address[words[3]]);
        int group = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
        int first = group * int(words[5]) * 8 + int(gl_LocalInvocationID.x);
        for (int turn = 0; turn < int(words[5]) && first + 8 * turn < int(words[4]); ++turn) {
            int i = first + 8 * turn;
            vec4 v1 = uintBitsToFloat(texelFetch(vectors0, w0 + (i * 2)));
            vec4 v2 = (-v1);
            vec4 v3 = uintBitsToFloat(texelFetch(vectors0, w0 + (i * 2 + 1)));
            vec4 v4 = (-v3);
            eights1.data[(w1 >> 1) + i] = eight_words(uvec4(floatBitsToUint(v2)), uvec4(floatBitsToUint(v4)));
        }
    }
"""


def _negations(*shapes: tuple[int, ...]) -> str:
    types = [f"f32[{','.join(map(str, shape))}]" for shape in shapes]
    inputs = ", ".join(f"x{number}: {type}" for number, type in enumerate(types))
    lines = [f"  %{number} = negate(x{number}) : {type}" for number, type in enumerate(types)]
    results = ", ".join(f"%{number}" for number in range(len(shapes)))
    return "\n".join([f"graph ({inputs}) {{", *lines, f"  return {results}", "}"])


def _plan(*shapes: tuple[int, ...]) -> Plan:
    return plan_of(_negations(*shapes), PROFILES["cpu"])


def test_long_parts_share_a_shader_that_is_given_how_long_they_are() -> None:
    first, second = _plan((8192,), (512, 96)).dispatches
    assert_shader(first, SHADER)
    assert first.shader == second.shader
    assert (first.words, first.groups) == ((1024, 4), (32, 1, 1))
    assert (second.words, second.groups) == ((6144, 16), (48, 1, 1))
    assert (first.barrier, second.barrier) == (False, False)


def test_short_parts_are_merged() -> None:
    plan = _plan((8192,), (40,), (4100,), (3, 5))
    first, second, merged = plan.dispatches
    assert first.shader == second.shader and len(first.slots) == 4 and len(merged.slots) == 1
    assert sorted(np.frombuffer(plan.constants[0], np.uint32)[-8:].reshape(2, 4)[:, 1]) == [15, 40]


def test_elements_behind_the_last_vector_are_computed_by_the_first_workgroup() -> None:
    first, second = _plan((8192,), (4099,)).dispatches
    assert first.shader == second.shader
    assert "if (group == 0 && int(gl_LocalInvocationID.x) < int(words[6]))" in first.shader.source
    assert (first.words, second.words) == ((1024, 4, 0), (512, 2, 3))


def test_where_nothing_is_seen_in_windows_all_are_merged() -> None:
    (dispatch,) = plan_of(_negations((8192,), (512, 96)), PROFILES["gpu"]).dispatches
    assert len(dispatch.slots) == 1


@pytest.mark.parametrize(
    "shapes",
    [((4096,), (8192,), (7,)), ((64, 65), (4096,)), ((512, 96), (8192,), (1 << 16,)), ((4101,), (3, 5555))],
)
def test_results(shapes: tuple[tuple[int, ...], ...]) -> None:
    arrays = [np.random.default_rng(number).standard_normal(shape, np.float32) for number, shape in enumerate(shapes)]
    found = run(ir.parse(_negations(*shapes)), arrays)
    for result, array in zip(found, arrays, strict=True):
        np.testing.assert_array_equal(result, -array)


def test_arrays_of_one_element_and_other_types() -> None:
    graph = ir.parse("""
        graph (rate: f32[], x: f32[64,128], y: f32[4096], z: f32[5], n: i32[8192], m: i32[4096]) {
          %0 = broadcast(rate) axes=[] : f32[64,128]
          %1 = multiply(x, %0) : f32[64,128]
          %2 = broadcast(rate) axes=[] : f32[4096]
          %3 = multiply(y, %2) : f32[4096]
          %4 = broadcast(rate) axes=[] : f32[5]
          %5 = multiply(z, %4) : f32[5]
          %6 = constant() value=100 : i32[8192]
          %7 = less(n, %6) : bool[8192]
          %8 = constant() value=100 : i32[4096]
          %9 = less(m, %8) : bool[4096]
          return %1, %3, %5, %7, %9
        }
    """)
    random = np.random.default_rng(0)
    rate, *arrays = [np.float32(0.5), *(random.standard_normal(shape, np.float32) for shape in ((64, 128), 4096, 5))]
    integers = [random.integers(0, 200, length).astype(np.int32) for length in (8192, 4096)]
    assert len(plan_of(graph, PROFILES["cpu"]).dispatches) == 5
    found = run(graph, [rate, *arrays, *integers])
    for result, array in zip(found, [*(rate * array for array in arrays), *(n < 100 for n in integers)], strict=True):
        np.testing.assert_array_equal(result, array)
