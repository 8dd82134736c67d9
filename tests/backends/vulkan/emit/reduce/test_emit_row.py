"""The shaders of row kernels, as plain text."""
from __future__ import annotations

import pytest

from tests.backends.vulkan.emit.emission import PROFILES, assert_shader, dispatch_of

# the graph, the device, what the shader does
SHADERS: dict[str, tuple[str, str, str]] = {
    "a subgroup a row, several a workgroup": (
        """
        graph (x: f32[64,64]) {
          %0 = max(x) axes=[1] : f32[64]
          %1 = broadcast(%0) axes=[0] : f32[64,64]
          %2 = subtract(x, %1) : f32[64,64]
          return %2
        }
        """,
        "cpu",
        """
        layout(local_size_x = 16, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int w0 = int(table.address[words[2]]);
            int w1 = int(table.address[words[3]]);
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 16u + gl_SubgroupID * 8u + gl_SubgroupInvocationID);
            if (i >= 512) return;
            int row = i / 8;
            int lane_of_row = i % 8;
            vec4 v1 = vec4(uintBitsToFloat(4286578688u));
            int k0 = lane_of_row;
            vec4 v2 = uintBitsToFloat(texelFetch(vectors0, w0 + (k0 + row * 16)));
            v1 = lx_maximum(v1, v2);
            int k1 = lane_of_row + 8;
            vec4 v3 = uintBitsToFloat(texelFetch(vectors0, w0 + (k1 + row * 16)));
            v1 = lx_maximum(v1, v3);
            float v4 = lx_maximum(lx_maximum(v1.x, v1.y), lx_maximum(v1.z, v1.w));
            v4 = lx_maximum(v4, subgroupShuffleXor(v4, 1u));
            v4 = lx_maximum(v4, subgroupShuffleXor(v4, 2u));
            v4 = lx_maximum(v4, subgroupShuffleXor(v4, 4u));
            vec4 v5 = (v2 - vec4(v4));
            stores1.data[w1 + (k0 + row * 16)] = floatBitsToUint(v5);
            vec4 v6 = (v3 - vec4(v4));
            stores1.data[w1 + (k1 + row * 16)] = floatBitsToUint(v6);
        }
        """,  # noqa: E501
    ),
    "a subgroup a row, in loops where there are few elements": (
        """
        graph (x: f32[3,64]) {
          %0 = max(x) axes=[1] : f32[3]
          %1 = broadcast(%0) axes=[0] : f32[3,64]
          %2 = subtract(x, %1) : f32[3,64]
          return %2
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_LocalInvocationID.x);
            if (i >= 24) return;
            int row = i / 8;
            int lane_of_row = i % 8;
            vec4 v1 = vec4(uintBitsToFloat(4286578688u));
            for (int k = lane_of_row; k < 16; k += 8) {
                vec4 v2 = uintBitsToFloat(read_four(p0, (k + row * 16)));
                v1 = lx_maximum(v1, v2);
            }
            float v3 = lx_maximum(lx_maximum(v1.x, v1.y), lx_maximum(v1.z, v1.w));
            v3 = lx_maximum(v3, subgroupShuffleXor(v3, 1u));
            v3 = lx_maximum(v3, subgroupShuffleXor(v3, 2u));
            v3 = lx_maximum(v3, subgroupShuffleXor(v3, 4u));
            for (int k = lane_of_row; k < 16; k += 8) {
                vec4 v4 = uintBitsToFloat(read_four(p0, (k + row * 16)));
                vec4 v5 = (v4 - vec4(v3));
                write_four(p1, (k + row * 16), floatBitsToUint(v5));
            }
        }
        """,
    ),
    "part of a subgroup a row, which it keeps in registers": (
        """
        graph (x: f32[3,64]) {
          %0 = max(x) axes=[1] : f32[3]
          %1 = broadcast(%0) axes=[0] : f32[3,64]
          %2 = subtract(x, %1) : f32[3,64]
          return %2
        }
        """,
        "gpu",
        """
        layout(local_size_x = 128, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 128u + gl_SubgroupID * 32u + gl_SubgroupInvocationID);
            if (i >= 48) return;
            int row = i / 16;
            int lane_of_row = i % 16;
            vec4 v1 = vec4(uintBitsToFloat(4286578688u));
            int k0 = lane_of_row;
            vec4 v2 = F32x4(p0).data[(k0 + row * 16)];
            v1 = lx_maximum(v1, v2);
            float v3 = lx_maximum(lx_maximum(v1.x, v1.y), lx_maximum(v1.z, v1.w));
            v3 = lx_maximum(v3, subgroupShuffleXor(v3, 1u));
            v3 = lx_maximum(v3, subgroupShuffleXor(v3, 2u));
            v3 = lx_maximum(v3, subgroupShuffleXor(v3, 4u));
            v3 = lx_maximum(v3, subgroupShuffleXor(v3, 8u));
            vec4 v4 = (v2 - vec4(v3));
            F32x4(p1).data[(k0 + row * 16)] = v4;
        }
        """,  # noqa: E501
    ),
    "four neighbouring rows an invocation": (
        """
        graph (x: f32[5,64]) {
          %0 = sum(x) axes=[0] : f32[64]
          return %0
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_LocalInvocationID.x);
            if (i >= 16) return;
            vec4 v1 = vec4(float(0));
            for (int k = 0; k < 5; k += 1) {
                vec4 v2 = uintBitsToFloat(read_four(p0, (i + k * 16)));
                v1 = (v1 + v2);
            }
            write_four(p1, i, floatBitsToUint(v1));
        }
        """,
    ),
    "one row an invocation where there are few, written out": (
        """
        graph (x: f32[5,64]) {
          %0 = sum(x) axes=[0] : f32[64]
          return %0
        }
        """,
        "gpu",
        """
        layout(local_size_x = 128, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 128u + gl_LocalInvocationID.x);
            if (i >= 64) return;
            float v1 = float(float(0));
            int k0 = 0;
            float v2 = F32(p0).data[(i + k0 * 64)];
            v1 = (v1 + v2);
            int k1 = 1;
            float v3 = F32(p0).data[(i + k1 * 64)];
            v1 = (v1 + v3);
            int k2 = 2;
            float v4 = F32(p0).data[(i + k2 * 64)];
            v1 = (v1 + v4);
            int k3 = 3;
            float v5 = F32(p0).data[(i + k3 * 64)];
            v1 = (v1 + v5);
            int k4 = 4;
            float v6 = F32(p0).data[(i + k4 * 64)];
            v1 = (v1 + v6);
            F32(p1).data[i] = v1;
        }
        """,
    ),
    "columns in strips": (
        """
        graph (x: f32[80,256]) {
          %0 = max(x) axes=[0] : f32[256]
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
            int i0 = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 16u + gl_LocalInvocationID.x);
            if (i0 >= 64) return;
            int i1 = i0 + 8;
            vec4 v1 = vec4(uintBitsToFloat(4286578688u));
            vec4 v2 = vec4(uintBitsToFloat(4286578688u));
            for (int k = 0; k < 80; k += 1) {
                vec4 v3 = uintBitsToFloat(texelFetch(vectors0, w0 + (i0 + k * 64)));
                v1 = lx_maximum(v1, v3);
                vec4 v4 = uintBitsToFloat(texelFetch(vectors0, w0 + (i1 + k * 64)));
                v2 = lx_maximum(v2, v4);
            }
            stores1.data[w1 + i0] = floatBitsToUint(v1);
            stores1.data[w1 + i1] = floatBitsToUint(v2);
        }
        """,
    ),
    "long sums, whose rounding errors are kept from chunk to chunk": (
        """
        graph (x: f32[80,256]) {
          %0 = sum(x) axes=[0] : f32[256]
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
            int i0 = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 16u + gl_LocalInvocationID.x);
            if (i0 >= 64) return;
            int i1 = i0 + 8;
            vec4 v1 = vec4(float(0));
            vec4 v1_lost = vec4(0);
            vec4 v2 = vec4(float(0));
            vec4 v2_lost = vec4(0);
            for (int chunk = 0; chunk < 80; chunk += 32) {
                vec4 v1_chunk = vec4(0);
                vec4 v2_chunk = vec4(0);
                int chunk_end = min(chunk + 32, 80);
                for (int k = chunk; k < chunk_end; k += 1) {
                    vec4 v3 = uintBitsToFloat(texelFetch(vectors0, w0 + (i0 + k * 64)));
                    v1_chunk = (v1_chunk + v3);
                    vec4 v4 = uintBitsToFloat(texelFetch(vectors0, w0 + (i1 + k * 64)));
                    v2_chunk = (v2_chunk + v4);
                }
                vec4 v7 = v1_chunk;
                precise vec4 v5 = v1 + v7;
                precise vec4 v6 = v5 - v1;
                precise vec4 v8 = (v1 - (v5 - v6)) + (v7 - v6);
                v1_lost += v8;
                v1 = v5;
                vec4 v11 = v2_chunk;
                precise vec4 v9 = v2 + v11;
                precise vec4 v10 = v9 - v2;
                precise vec4 v12 = (v2 - (v9 - v10)) + (v11 - v10);
                v2_lost += v12;
                v2 = v9;
            }
            v1.x += mix(0.0, v1_lost.x, abs(v1.x) < uintBitsToFloat(0x7f800000u));
            v1.y += mix(0.0, v1_lost.y, abs(v1.y) < uintBitsToFloat(0x7f800000u));
            v1.z += mix(0.0, v1_lost.z, abs(v1.z) < uintBitsToFloat(0x7f800000u));
            v1.w += mix(0.0, v1_lost.w, abs(v1.w) < uintBitsToFloat(0x7f800000u));
            v2.x += mix(0.0, v2_lost.x, abs(v2.x) < uintBitsToFloat(0x7f800000u));
            v2.y += mix(0.0, v2_lost.y, abs(v2.y) < uintBitsToFloat(0x7f800000u));
            v2.z += mix(0.0, v2_lost.z, abs(v2.z) < uintBitsToFloat(0x7f800000u));
            v2.w += mix(0.0, v2_lost.w, abs(v2.w) < uintBitsToFloat(0x7f800000u));
            stores1.data[w1 + i0] = floatBitsToUint(v1);
            stores1.data[w1 + i1] = floatBitsToUint(v2);
        }
        """,
    ),
    "a position": (
        """
        graph (x: f32[3,5]) {
          %0 = argmax(x) axis=1 : i32[3]
          return %0
        }
        """,
        "cpu",
        """
        layout(local_size_x = 8, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int i = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_LocalInvocationID.x);
            if (i >= 3) return;
            float v1_best;
            int v1 = int(-1);
            for (int k = 0; k < 5; k += 1) {
                float v2 = F32(p0).data[(i * 5 + k) + low_bits(p0)];
                float v3 = v2;
                int v4 = k;
                if (v1 < 0 || (v3 > v1_best || (lx_isnan(v3) && !lx_isnan(v1_best)))) { v1_best = v3; v1 = v4; }
            }
            I32(p1).data[i + low_bits(p1)] = v1;
        }
        """,
    ),
    "few columns, whose members fold four partial results at a time": (
        """
        graph (x: f32[128,32]) {
          %0 = max(x) axes=[0] : f32[32]
          return %0
        }
        """,
        "gpu",
        """
        layout(local_size_x = 32, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            int team = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 2u + gl_LocalInvocationID.x % 2u);
            int row = min(team, 8 - 1);
            int lane_of_row = int(gl_LocalInvocationID.x / 2u);
            vec4 v1 = vec4(uintBitsToFloat(4286578688u));
            int k0 = lane_of_row;
            vec4 v2 = F32x4(p0).data[(k0 * 8 + row)];
            v1 = lx_maximum(v1, v2);
            int k1 = lane_of_row + 16;
            vec4 v3 = F32x4(p0).data[(k1 * 8 + row)];
            v1 = lx_maximum(v1, v3);
            int k2 = lane_of_row + 32;
            vec4 v4 = F32x4(p0).data[(k2 * 8 + row)];
            v1 = lx_maximum(v1, v4);
            int k3 = lane_of_row + 48;
            vec4 v5 = F32x4(p0).data[(k3 * 8 + row)];
            v1 = lx_maximum(v1, v5);
            int k4 = lane_of_row + 64;
            vec4 v6 = F32x4(p0).data[(k4 * 8 + row)];
            v1 = lx_maximum(v1, v6);
            int k5 = lane_of_row + 80;
            vec4 v7 = F32x4(p0).data[(k5 * 8 + row)];
            v1 = lx_maximum(v1, v7);
            int k6 = lane_of_row + 96;
            vec4 v8 = F32x4(p0).data[(k6 * 8 + row)];
            v1 = lx_maximum(v1, v8);
            int k7 = lane_of_row + 112;
            vec4 v9 = F32x4(p0).data[(k7 * 8 + row)];
            v1 = lx_maximum(v1, v9);
            shared_v1[gl_LocalInvocationID.x] = v1;
            barrier();
            if (lane_of_row < 4) {
                v1 = lx_maximum(v1, shared_v1[gl_LocalInvocationID.x + 8u]);
                v1 = lx_maximum(v1, shared_v1[gl_LocalInvocationID.x + 16u]);
                v1 = lx_maximum(v1, shared_v1[gl_LocalInvocationID.x + 24u]);
                shared_v1[gl_LocalInvocationID.x] = v1;
            }
            barrier();
            v1 = shared_v1[gl_LocalInvocationID.x % 2u];
            v1 = lx_maximum(v1, shared_v1[gl_LocalInvocationID.x % 2u + 2u]);
            v1 = lx_maximum(v1, shared_v1[gl_LocalInvocationID.x % 2u + 4u]);
            v1 = lx_maximum(v1, shared_v1[gl_LocalInvocationID.x % 2u + 6u]);
            if (team < 8 && lane_of_row == 0) {
                F32x4(p1).data[row] = v1;
            }
        }
        """,  # noqa: E501
    ),
}


@pytest.mark.parametrize("name", SHADERS)
def test_shader(name: str) -> None:
    graph, device, expected = SHADERS[name]
    assert_shader(dispatch_of(graph, PROFILES[device]), expected)


def test_a_subgroup_shader_is_run_in_full_subgroups() -> None:
    for device, size, groups in (("cpu", 8, 32), ("gpu", 32, 8)):
        dispatch = dispatch_of(SHADERS["a subgroup a row, several a workgroup"][0], PROFILES[device])
        assert dispatch.shader.subgroup_size == size
        assert dispatch.groups == (groups, 1, 1)
    assert dispatch_of(SHADERS["a position"][0], PROFILES["cpu"]).shader.subgroup_size is None
