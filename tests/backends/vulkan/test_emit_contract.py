"""The shaders of contractions, as plain text."""
from __future__ import annotations

import pytest

from tests.backends.vulkan.emission import PROFILES, assert_shader, dispatch_of

# the graph, the device, what the shader does
SHADERS: dict[str, tuple[str, str, str]] = {
    "bias in the epilogue, four columns at once": (
        """
        graph (x: f32[2,4], w: f32[4,4], b: f32[4]) {
          %0 = dot(x, w) contract=[1]x[0] : f32[2,4]
          %1 = broadcast(b) axes=[1] : f32[2,4]
          %2 = add(%0, %1) : f32[2,4]
          return %2
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            uint64_t p3 = table.address[words[3]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_LocalInvocationID.x);
            if (i >= 2) return;
            vec4 s0_0 = vec4(0);
            vec4 v1 = uintBitsToFloat(read_four(p0, i));
            vec4 v2 = uintBitsToFloat(read_four(p1, 0));
            vec4 v3 = uintBitsToFloat(read_four(p1, 1));
            vec4 v4 = uintBitsToFloat(read_four(p1, 2));
            vec4 v5 = uintBitsToFloat(read_four(p1, 3));
            for (int k = 0; k < 1; ++k) {
                s0_0 += v1.x * v2;
                s0_0 += v1.y * v3;
                s0_0 += v1.z * v4;
                s0_0 += v1.w * v5;
            }
            vec4 v6 = uintBitsToFloat(read_four(p2, 0));
            vec4 v7 = (s0_0 + v6);
            write_four(p3, i, floatBitsToUint(v7));
        }
        """,
    ),
    "the last tile is moved back and writes what is its own": (
        """
        graph (x: f32[3,3], w: f32[3,5]) {
          %0 = dot(x, w) contract=[1]x[0] : f32[3,5]
          return %0
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
            if (i >= 6) return;
            vec4 s0_0 = vec4(0);
            int v1 = int(uint(i) / uint(2));
            int v3 = int(uint(i) % uint(2));
            int v4 = clamp((v3 * 4), 0, 1);
            for (int k = 0; k < 3; ++k) {
                float v2 = F32(p0).data[(v1 * 3 + k)];
                vec4 v5 = F32x4u(p1 + 4ul * uint64_t((v4 + k * 5))).data[0];
                s0_0 += v2 * v5;
            }
            if (v4 >= (v3 * 4)) {
                F32(p2).data[(v1 * 5 + v4)] = s0_0.x;
            }
            if ((v4 + 1) >= (v3 * 4)) {
                F32(p2).data[(v1 * 5 + v4 + 1)] = s0_0.y;
            }
            if ((v4 + 2) >= (v3 * 4)) {
                F32(p2).data[(v1 * 5 + v4 + 2)] = s0_0.z;
            }
            if ((v4 + 3) >= (v3 * 4)) {
                F32(p2).data[(v1 * 5 + v4 + 3)] = s0_0.w;
            }
        }
        """,
    ),
}


@pytest.mark.parametrize("name", SHADERS)
def test_shader(name: str) -> None:
    graph, device, expected = SHADERS[name]
    assert_shader(dispatch_of(graph, PROFILES[device]), expected)


def test_tiles_grow_with_the_problem() -> None:
    """Rows of the tile are sums side by side; on a GPU many small tiles keep more invocations busy."""
    text = """
        graph (x: f32[256,64], w: f32[64,256]) {
          %0 = dot(x, w) contract=[1]x[0] : f32[256,256]
          return %0
        }
    """
    assert "s7_3" in dispatch_of(text, PROFILES["cpu"]).shader.source
    assert "s1_0" not in dispatch_of(text, PROFILES["gpu"]).shader.source


def test_sums_of_integers() -> None:
    text = """
        graph (x: i32[2,3], w: i32[3,4]) {
          %0 = dot(x, w) contract=[1]x[0] : i32[2,4]
          return %0
        }
    """
    assert "ivec4 s0_0 = ivec4(0);" in dispatch_of(text, PROFILES["cpu"]).shader.source
