"""The shaders of map kernels, as plain text."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.backends.vulkan.emit.emission import PROFILES, assert_shader, dispatch_of

# the graph, the device, what the shader does
SHADERS: dict[str, tuple[str, str, str]] = {
    "four neighbours at once": (
        """
        graph (x: f32[2,4], y: f32[4]) {
          %0 = broadcast(y) axes=[1] : f32[2,4]
          %1 = multiply(x, %0) : f32[2,4]
          return %1
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_LocalInvocationID.x);
            if (i >= 2) return;
            vec4 v1 = uintBitsToFloat(read_four(p1, i));
            vec4 v2 = uintBitsToFloat(read_four(p0, 0));
            vec4 v3 = (v1 * v2);
            write_four(p2, i, floatBitsToUint(v3));
        }
        """,
    ),
    "many vectors, of which an invocation has several": (
        """
        graph (x: f32[65536]) {
          %0 = negate(x) : f32[65536]
          return %0
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int w0 = int(table.address[words[2]]);
            int w1 = int(table.address[words[3]]);
            int group = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
            for (int turn = 0; turn < int(words[4]); ++turn) {
                int i = (group * 16 + turn) * 8 + int(gl_LocalInvocationID.x);
                vec4 v1 = uintBitsToFloat(texelFetch(vectors0, w0 + (i * 2)));
                vec4 v2 = (-v1);
                vec4 v3 = uintBitsToFloat(texelFetch(vectors0, w0 + (i * 2 + 1)));
                vec4 v4 = (-v3);
                eights1.data[(w1 >> 1) + i] = eight_words(uvec4(floatBitsToUint(v2)), uvec4(floatBitsToUint(v4)));
            }
        }
        """,
    ),
    "four neighbours at once, larger workgroups": (
        """
        graph (x: f32[2,4], y: f32[4]) {
          %0 = broadcast(y) axes=[1] : f32[2,4]
          %1 = multiply(x, %0) : f32[2,4]
          return %1
        }
        """,
        "gpu",
        """
        layout(local_size_x = 128, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 128u + gl_LocalInvocationID.x);
            if (i >= 2) return;
            vec4 v1 = F32x4(p1).data[i];
            vec4 v2 = F32x4(p0).data[0];
            vec4 v3 = (v1 * v2);
            F32x4(p2).data[i] = v3;
        }
        """,
    ),
    "one element at a time where four do not divide them": (
        """
        graph (x: f32[3,5]) {
          %0 = transpose(x) axes=[1,0] : f32[5,3]
          %1 = exp(%0) : f32[5,3]
          return %1
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_LocalInvocationID.x);
            if (i >= 15) return;
            int v1 = int(uint(i) % uint(3));
            int v2 = int(uint(i) / uint(3));
            float v3 = F32(p0).data[(v1 * 5 + v2) + low_bits(p0)];
            float v4 = lx_exp(v3);
            F32(p1).data[i + low_bits(p1)] = v4;
        }
        """,
    ),
    "a gather of a pad: indices are clamped, each lane by itself": (
        """
        graph (x: i32[6], i: i32[8]) {
          %0 = pad(x) low=[1] high=[1] interior=[0] value=7 : i32[8]
          %1 = gather(%0, i) axes=[0] : i32[8]
          return %1
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_LocalInvocationID.x);
            if (i >= 2) return;
            ivec4 v1 = ivec4(read_four(p1, i));
            int v2 = clamp(v1.x, 0, 7);
            int v3 = clamp((v2 + -1), 0, 5);
            int v4 = clamp(v1.y, 0, 7);
            int v5 = clamp((v4 + -1), 0, 5);
            int v6 = clamp(v1.z, 0, 7);
            int v7 = clamp((v6 + -1), 0, 5);
            int v8 = clamp(v1.w, 0, 7);
            int v9 = clamp((v8 + -1), 0, 5);
            ivec4 v10 = ivec4(I32(p0).data[v3 + low_bits(p0)], I32(p0).data[v5 + low_bits(p0)], I32(p0).data[v7 + low_bits(p0)], I32(p0).data[v9 + low_bits(p0)]);
            ivec4 v11 = mix(ivec4(7), v10, bvec4((v2 >= 1 && v2 <= 6), (v4 >= 1 && v4 <= 6), (v6 >= 1 && v6 <= 6), (v8 >= 1 && v8 <= 6)));
            write_four(p2, i, uvec4(v11));
        }
        """,  # noqa: E501
    ),
}


@pytest.mark.parametrize("name", SHADERS)
def test_shader(name: str) -> None:
    graph, device, expected = SHADERS[name]
    assert_shader(dispatch_of(graph, PROFILES[device]), expected)


def test_one_invocation_an_element_or_four() -> None:
    for count, groups in ((1, 1), (8, 1), (9, 2), (32, 1), (33, 5), (4 * 8 * 63, 63)):
        text = f"graph (x: f32[{count}]) {{\n  %0 = exp(x) : f32[{count}]\n  return %0\n}}"
        assert dispatch_of(text, PROFILES["cpu"]).groups == (groups, 1, 1)


def test_grids_too_long_for_one_dimension_use_two() -> None:
    whole = 4 * 8 * 64 * 65536
    for count, groups in ((whole // 2 + 4, (32769, 1, 1)), (whole - 4, (65535, 2, 1)), (whole, (65535, 2, 1))):
        text = f"graph (x: f32[{count}]) {{\n  %0 = exp(x) : f32[{count}]\n  return %0\n}}"
        assert dispatch_of(text, PROFILES["cpu"]).groups == groups


def test_invocations_of_a_cpu_driver_have_several_vectors_where_many_are_left() -> None:
    cases = ((1 << 12, 32), (1 << 13, 32), (1 << 15, 32), (1 << 20, 256), (64 * 513, 33), (8193, 32))
    for count, groups in cases:
        text = f"graph (x: f32[{count}]) {{\n  %0 = exp(x) : f32[{count}]\n  return %0\n}}"
        assert dispatch_of(text, PROFILES["cpu"]).groups == (groups, 1, 1)


def test_the_last_workgroup_may_have_fewer_vectors_than_others() -> None:
    text = "graph (x: f32[65544]) {\n  %0 = exp(x) : f32[65544]\n  return %0\n}"
    dispatch = dispatch_of(text, PROFILES["cpu"])
    number = "(group * 16 + turn) * 8 + int(gl_LocalInvocationID.x)"
    assert f"for (int turn = 0; turn < int(words[4]) && {number} < 8193; ++turn) {{" in dispatch.shader.source
    assert dispatch.groups == (65, 1, 1)


@pytest.mark.parametrize("count", [4 * 8 * 1024 + 4, 4 * 8 * 1024 * 3 - 4, 8193, 8194, 99_999])
def test_maps_of_a_ragged_last_workgroup_write_each_element_once(count: int) -> None:
    """Added in place again and again: an element that two invocations write would be counted twice."""
    x = np.arange(count, dtype=np.int32)
    counted = lx.compile(lambda x: lx.lax.fori_loop(0, 5, lambda _, value: value * 3 + x, x))
    expected = x
    for _ in range(5):
        expected = expected * 3 + x
    np.testing.assert_array_equal(np.asarray(counted(x)), expected)


@pytest.mark.parametrize("count", [4097, 5002, 40_003])
def test_elements_behind_the_last_whole_vector_are_computed_by_themselves(count: int) -> None:
    """Whatever a map reads and writes: neighbours, others, rows of odd length, and several results."""
    x = np.random.default_rng(count).normal(size=count + 1).astype("f")

    def results(xp: Any, x: Any) -> tuple[Any, ...]:
        return x[1:] - x[:-1], x[:0:-1] * 2, xp.where(xp.arange(count) % 3 == 0, x[1:], x[0])

    found = lx.compile(lambda x: results(lnp, x))(x)
    for mine, expected in zip(found, results(np, x), strict=True):
        np.testing.assert_array_equal(mine, expected)
    rows = x[:4097].reshape(17, 241)
    np.testing.assert_array_equal(lx.compile(lambda x: lnp.flip(x, 1) + x[:1])(rows), np.flip(rows, 1) + rows[:1])
    text = dispatch_of(lx.trace(lambda x: x + x)(lx.ShapeDtype((count,), "float32")), PROFILES["cpu"]).shader.source
    assert "eights1.data[" in text and f"gl_LocalInvocationID.x < {count % 8})" in text


def test_a_shader_has_what_it_uses_and_no_more() -> None:
    for device, used, unused in (("cpu", "U64", "F32x4"), ("gpu", "F32x4", "U64")):
        source = dispatch_of(SHADERS["four neighbours at once"][0], PROFILES[device]).shader.source
        assert source.startswith("#version 460\n") and "lx_" not in source and "subgroup" not in source
        assert f"buffer {used} {{" in source and unused not in source
        assert "buffer F32 {" not in source and "buffer I32" not in source
