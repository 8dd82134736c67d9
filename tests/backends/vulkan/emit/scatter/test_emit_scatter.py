"""The shaders of scatters, as plain text."""
from __future__ import annotations

import pytest

from tests.backends.vulkan.emit.emission import PROFILES, assert_shader, dispatch_of, dispatches_of, main_of

# the graph, the device, what the shader does
SHADERS: dict[str, tuple[str, str, str]] = {
    "each invocation owns a line of the result": (
        """
        graph (i: i32[4], u: f32[4,3]) {
          %0 = constant() value=0.0 : f32[5,3]
          %1 = scatter_add(%0, u, i) axes=[0] : f32[5,3]
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
            if (i >= 3) return;
            for (int k = 0; k < 5; ++k) {
                F32(p2).data[(i + k * 3) + low_bits(p2)] = 0.0;
            }
            for (int s = 0; s < 4; ++s) {
                int v1 = I32(p1).data[s + low_bits(p1)];
                float v2 = F32(p0).data[(i + s * 3) + low_bits(p0)];
                int target = (v1) * 3 + (i) * 1;
                int place = target + low_bits(p2);
                if (v1 >= 0 && v1 < 5) F32(p2).data[place + low_bits(p2)] = (F32(p2).data[target + low_bits(p2)] + v2);
            }
        }
        """,
    ),
    "larger workgroups": (
        """
        graph (i: i32[4], u: f32[4,3]) {
          %0 = constant() value=0.0 : f32[5,3]
          %1 = scatter_add(%0, u, i) axes=[0] : f32[5,3]
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
            if (i >= 3) return;
            for (int k = 0; k < 5; ++k) {
                F32(p2).data[(i + k * 3)] = 0.0;
            }
            for (int s = 0; s < 4; ++s) {
                int v1 = I32(p1).data[s];
                float v2 = F32(p0).data[(i + s * 3)];
                int target = (v1) * 3 + (i) * 1;
                if (v1 >= 0 && v1 < 5) F32(p2).data[target] = (F32(p2).data[target] + v2);
            }
        }
        """,
    ),
}


@pytest.mark.parametrize("name", SHADERS)
def test_shader(name: str) -> None:
    graph, device, expected = SHADERS[name]
    assert_shader(dispatch_of(graph, PROFILES[device]), expected)


def test_long_lines_are_copied_before() -> None:
    text = """
        graph (x: f32[4096,2], i: i32[4], u: f32[4,2]) {
          %0 = scatter_add(x, u, i) axes=[0] : f32[4096,2]
          return %0
        }
    """
    copy, join = dispatches_of(text, PROFILES["cpu"])
    assert (copy.groups, join.groups, join.barrier) == ((2048 // 64, 1, 1), (1, 1, 1), True)
    assert copy.slots == join.slots
    assert "write_four(p3, i, floatBitsToUint(v1));" in main_of(copy)
    assert "for (int s = 0; s < 4; ++s)" in main_of(join)
    assert "4096; ++" not in main_of(join)


def test_nothing_is_copied_where_the_array_is_given_up() -> None:
    text = """
        graph (x: f32[4096,2], i: i32[COUNT], u: f32[COUNT,2]) {
          %0 = scatter_add(x, u, i) axes=[0] : f32[4096,2]
          return %0
        }
    """
    for count in (4, 100):
        graph = text.replace("COUNT", str(count))
        kept, given = (dispatches_of(graph, PROFILES["cpu"], donated=donated) for donated in ((), (0,)))
        assert [dispatch.shader for dispatch in given] == [dispatch.shader for dispatch in (*kept[:-2], kept[-1])]
