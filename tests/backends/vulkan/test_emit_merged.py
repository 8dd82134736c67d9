"""The shader of merged maps, as plain text."""
from __future__ import annotations

import pytest

from tests.backends.vulkan.emission import PROFILES, assert_shader, dispatch_of

# the graph, the device, what the shader does
SHADERS: dict[str, tuple[str, str, str]] = {
    "parts are found by bisection": (
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
            uint vector = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_LocalInvocationID.x;
            if (vector >= words[2]) return;
            U32 parts = U32(table.address[words[0]]);
            uint low = 0u, high = words[1];
            while (high - low > 1u) {
                uint middle = (low + high) / 2u;
                if (parts.data[middle * 4u] <= vector) low = middle; else high = middle;
            }
            int i = int(vector - parts.data[low * 4u]);
            int size = int(parts.data[low * 4u + 1u]);
            uint64_t p0 = table.address[parts.data[low * 4u + 2u]];
            uint64_t p1 = table.address[parts.data[low * 4u + 3u]];
            vec4 v1 = uintBitsToFloat(read_four(p0, i));
            vec4 v2 = (-v1);
            if (4 * i + 4 <= size) {
                write_four(p1, i, floatBitsToUint(v2));
            }
            else {
                vec4 v3 = v2;
                if (4 * i + 0 < size) F32(p1).data[4 * i + 0] = v3.x;
                if (4 * i + 1 < size) F32(p1).data[4 * i + 1] = v3.y;
                if (4 * i + 2 < size) F32(p1).data[4 * i + 2] = v3.z;
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
            uint vector = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 128u + gl_LocalInvocationID.x;
            if (vector >= words[2]) return;
            U32 parts = U32(table.address[words[0]]);
            uint low = 0u, high = words[1];
            while (high - low > 1u) {
                uint middle = (low + high) / 2u;
                if (parts.data[middle * 4u] <= vector) low = middle; else high = middle;
            }
            int i = int(vector - parts.data[low * 4u]);
            int size = int(parts.data[low * 4u + 1u]);
            uint64_t p0 = table.address[parts.data[low * 4u + 2u]];
            uint64_t p1 = table.address[parts.data[low * 4u + 3u]];
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
    assert (few.words, many.words) == ((2, 2), (70, sum(-(-n // 4) for n in range(1, 71))))
