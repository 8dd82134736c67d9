"""The shader of merged maps, as plain text."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.backends.vulkan.emit.emission import PROFILES, assert_shader, dispatch_of, plan_of

# the graph, the device, what the shader does
SHADERS: dict[str, tuple[str, str, str]] = {
    "whole vectors": (
        """
        graph (x: f32[8], y: f32[2,4]) {
          %0 = negate(x) : f32[8]
          %1 = negate(y) : f32[2,4]
          return %0, %1
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            U32 parts = U32(table.address[words[0]]);
            uint group = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
            uint part = parts.data[group];
            int start = int((group - parts.data[part]) * words[1]);
            int size = int(parts.data[part + 1u]);
            int first = start + int(gl_LocalInvocationID.x);
            int end = min(start + int(words[1]), (size + 3) / 4);
            uint64_t p0 = table.address[parts.data[part + 2u]];
            uint64_t p1 = table.address[parts.data[part + 3u]];
            for (int i = first; i < end; i += 8) {
                vec4 v1 = uintBitsToFloat(read_four(p0, i));
                vec4 v2 = (-v1);
                write_four(p1, i, floatBitsToUint(v2));
            }
        }
        """,
    ),
    "sizes that are no multiples of four": (
        """
        graph (x: f32[7], y: f32[2,3]) {
          %0 = negate(x) : f32[7]
          %1 = negate(y) : f32[2,3]
          return %0, %1
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            U32 parts = U32(table.address[words[0]]);
            uint group = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
            uint part = parts.data[group];
            int start = int((group - parts.data[part]) * words[1]);
            int size = int(parts.data[part + 1u]);
            int first = start + int(gl_LocalInvocationID.x);
            int end = min(start + int(words[1]), (size + 3) / 4);
            uint64_t p0 = table.address[parts.data[part + 2u]];
            uint64_t p1 = table.address[parts.data[part + 3u]];
            for (int i = first; i < end; i += 8) {
                vec4 v1 = uintBitsToFloat(read_four(p0, i));
                vec4 v2 = (-v1);
                if (4 * i + 4 <= size) {
                    write_four(p1, i, floatBitsToUint(v2));
                }
                else {
                    vec4 v3 = v2;
                    if (4 * i + 0 < size) F32(p1).data[4 * i + 0 + low_bits(p1)] = v3.x;
                    if (4 * i + 1 < size) F32(p1).data[4 * i + 1 + low_bits(p1)] = v3.y;
                    if (4 * i + 2 < size) F32(p1).data[4 * i + 2 + low_bits(p1)] = v3.z;
                }
            }
        }
        """,
    ),
    "larger workgroups": (
        """
        graph (x: f32[7], y: f32[2,3]) {
          %0 = negate(x) : f32[7]
          %1 = negate(y) : f32[2,3]
          return %0, %1
        }
        """,
        "gpu",
        """
        layout(local_size_x = 128, local_size_y = 1) in;
        void main() {
            U32 parts = U32(table.address[words[0]]);
            uint group = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
            uint part = parts.data[group];
            int start = int((group - parts.data[part]) * words[1]);
            int size = int(parts.data[part + 1u]);
            int first = start + int(gl_LocalInvocationID.x);
            int end = min(start + int(words[1]), (size + 3) / 4);
            uint64_t p0 = table.address[parts.data[part + 2u]];
            uint64_t p1 = table.address[parts.data[part + 3u]];
            for (int i = first; i < end; i += 128) {
                vec4 v1 = F32x4(p0).data[i];
                vec4 v2 = (-v1);
                if (4 * i + 4 <= size) {
                    F32x4(p1).data[i] = v2;
                }
                else {
                    vec4 v3 = v2;
                    if (4 * i + 0 < size) F32(p1).data[4 * i + 0] = v3.x;
                    if (4 * i + 1 < size) F32(p1).data[4 * i + 1] = v3.y;
                    if (4 * i + 2 < size) F32(p1).data[4 * i + 2] = v3.z;
                }
            }
        }
        """,
    ),
}


@pytest.mark.parametrize("name", SHADERS)
def test_shader(name: str) -> None:
    graph, device, expected = SHADERS[name]
    assert_shader(dispatch_of(graph, PROFILES[device]), expected)


def test_the_shader_is_the_same_for_any_number_of_parts() -> None:
    def graph(count: int) -> str:
        inputs = ", ".join(f"x{n}: f32[{n + 1}]" for n in range(count))
        lines = [f"  %{n} = negate(x{n}) : f32[{n + 1}]" for n in range(count)]
        return "\n".join([f"graph ({inputs}) {{", *lines, f"  return {', '.join(f'%{n}' for n in range(count))}", "}"])

    few, many = dispatch_of(graph(2), PROFILES["cpu"]), dispatch_of(graph(70), PROFILES["cpu"])
    assert few.shader == many.shader
    assert few.words == many.words == (8,)
    assert (few.groups, many.groups) == ((2, 1, 1), (sum(-(-n // 32) for n in range(1, 71)), 1, 1))


def test_large_parts_have_longer_stretches() -> None:
    """The table has a word a workgroup, so a workgroup has more where there would be too many."""
    graph = """
        graph (x: f32[1048576], y: f32[40]) {
          %0 = negate(x) : f32[1048576]
          %1 = negate(y) : f32[40]
          return %0, %1
        }
    """
    (dispatch,) = (plan := plan_of(graph, replace(PROFILES["cpu"], descriptor_bytes=0))).dispatches
    assert (dispatch.words, dispatch.groups) == ((32,), (8193, 1, 1))
    owners, first, last = np.split(np.frombuffer(plan.constants[0], np.uint32), [8193, 8197])
    assert owners.tolist() == [8193] * 8192 + [8197]
    assert first.tolist() == [0, 1048576, 0, 2]
    assert last.tolist() == [8192, 40, 1, 3]
