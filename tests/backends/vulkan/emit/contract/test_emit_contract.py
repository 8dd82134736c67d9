"""The shaders of contractions, as plain text."""
from __future__ import annotations

from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest

from lavax.backends.vulkan.emit.contract.choose import choose_parts, choose_schedule
from lavax.backends.vulkan.emit.contract.tiles import (
    BroadcastTile,
    ContractSchedule,
    RegisterTile,
    SharedTile,
    SubgroupTile,
)
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.ir import parse
from tests.backends.vulkan.emit.emission import PROFILES, assert_shader, dispatch_of

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
                float v2 = F32(p0).data[(v1 * 3 + k) + low_bits(p0)];
                vec4 v5 = uintBitsToFloat(read_unaligned_four(p1, (v4 + k * 5)));
                s0_0 += v2 * v5;
            }
            if (v4 >= (v3 * 4)) {
                F32(p2).data[(v1 * 5 + v4) + low_bits(p2)] = s0_0.x;
            }
            if ((v4 + 1) >= (v3 * 4)) {
                F32(p2).data[(v1 * 5 + v4 + 1) + low_bits(p2)] = s0_0.y;
            }
            if ((v4 + 2) >= (v3 * 4)) {
                F32(p2).data[(v1 * 5 + v4 + 2) + low_bits(p2)] = s0_0.z;
            }
            if ((v4 + 3) >= (v3 * 4)) {
                F32(p2).data[(v1 * 5 + v4 + 3) + low_bits(p2)] = s0_0.w;
            }
        }
        """,
    ),
    "lanes side by side hand on what each read of the rows, and the epilogue stands in a loop": (
        """
        graph (x: f32[6,4], w: f32[4,36], b: f32[36]) {
          %0 = dot(x, w) contract=[1]x[0] : f32[6,36]
          %1 = broadcast(b) axes=[1] : f32[6,36]
          %2 = add(%0, %1) : f32[6,36]
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
            int t = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
            int member = int(gl_LocalInvocationID.x);
            vec4 s0_0 = vec4(0);
            vec4 s1_0 = vec4(0);
            vec4 s2_0 = vec4(0);
            vec4 s3_0 = vec4(0);
            vec4 s4_0 = vec4(0);
            vec4 s5_0 = vec4(0);
            vec4 s6_0 = vec4(0);
            vec4 s7_0 = vec4(0);
            int v1 = clamp(member, 0, 5);
            vec4 v2 = uintBitsToFloat(read_four(p0, v1));
            int v3 = clamp((t * 8), 0, 1);
            vec4 v4 = uintBitsToFloat(read_four(p1, (v3 + member)));
            vec4 v5 = uintBitsToFloat(read_four(p1, (v3 + member + 9)));
            vec4 v6 = uintBitsToFloat(read_four(p1, (v3 + member + 18)));
            vec4 v7 = uintBitsToFloat(read_four(p1, (v3 + member + 27)));
            for (int k = 0; k < 1; ++k) {
                s0_0 += subgroupShuffle(v2.x, 0u) * v4;
                s0_0 += subgroupShuffle(v2.y, 0u) * v5;
                s0_0 += subgroupShuffle(v2.z, 0u) * v6;
                s0_0 += subgroupShuffle(v2.w, 0u) * v7;
                s1_0 += subgroupShuffle(v2.x, 1u) * v4;
                s1_0 += subgroupShuffle(v2.y, 1u) * v5;
                s1_0 += subgroupShuffle(v2.z, 1u) * v6;
                s1_0 += subgroupShuffle(v2.w, 1u) * v7;
                s2_0 += subgroupShuffle(v2.x, 2u) * v4;
                s2_0 += subgroupShuffle(v2.y, 2u) * v5;
                s2_0 += subgroupShuffle(v2.z, 2u) * v6;
                s2_0 += subgroupShuffle(v2.w, 2u) * v7;
                s3_0 += subgroupShuffle(v2.x, 3u) * v4;
                s3_0 += subgroupShuffle(v2.y, 3u) * v5;
                s3_0 += subgroupShuffle(v2.z, 3u) * v6;
                s3_0 += subgroupShuffle(v2.w, 3u) * v7;
                s4_0 += subgroupShuffle(v2.x, 4u) * v4;
                s4_0 += subgroupShuffle(v2.y, 4u) * v5;
                s4_0 += subgroupShuffle(v2.z, 4u) * v6;
                s4_0 += subgroupShuffle(v2.w, 4u) * v7;
                s5_0 += subgroupShuffle(v2.x, 5u) * v4;
                s5_0 += subgroupShuffle(v2.y, 5u) * v5;
                s5_0 += subgroupShuffle(v2.z, 5u) * v6;
                s5_0 += subgroupShuffle(v2.w, 5u) * v7;
                s6_0 += subgroupShuffle(v2.x, 6u) * v4;
                s6_0 += subgroupShuffle(v2.y, 6u) * v5;
                s6_0 += subgroupShuffle(v2.z, 6u) * v6;
                s6_0 += subgroupShuffle(v2.w, 6u) * v7;
                s7_0 += subgroupShuffle(v2.x, 7u) * v4;
                s7_0 += subgroupShuffle(v2.y, 7u) * v5;
                s7_0 += subgroupShuffle(v2.z, 7u) * v6;
                s7_0 += subgroupShuffle(v2.w, 7u) * v7;
            }
            vec4 v9 = uintBitsToFloat(read_four(p2, (v3 + member)));
            for (int row = 0; row < int(words[4]); ++row) {
                vec4 v8 = s0_0;
                v8 = mix(v8, s1_0, bvec4(row == 1));
                v8 = mix(v8, s2_0, bvec4(row == 2));
                v8 = mix(v8, s3_0, bvec4(row == 3));
                v8 = mix(v8, s4_0, bvec4(row == 4));
                v8 = mix(v8, s5_0, bvec4(row == 5));
                v8 = mix(v8, s6_0, bvec4(row == 6));
                v8 = mix(v8, s7_0, bvec4(row == 7));
                vec4 v10 = (v8 + v9);
                if (row < 6 && (v3 * 4 + member * 4) >= (t * 32)) {
                    write_four(p3, (v3 + member + row * 9), floatBitsToUint(v10));
                }
            }
        }
        """,
    ),
    "a workgroup stages what it reads, the next part while one is worked on": (
        """
        graph (x: f32[16,32], w: f32[32,64], b: f32[64]) {
          %0 = dot(x, w) contract=[1]x[0] : f32[16,64]
          %1 = broadcast(b) axes=[1] : f32[16,64]
          %2 = add(%0, %1) : f32[16,64]
          return %2
        }
        """,
        "gpu",
        """
        layout(local_size_x = 64, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            uint64_t p3 = table.address[words[3]];
            int t = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
            int i = int(gl_LocalInvocationID.x);
            float s0_0 = float(0), s0_1 = float(0), s0_2 = float(0), s0_3 = float(0);
            float s1_0 = float(0), s1_1 = float(0), s1_2 = float(0), s1_3 = float(0);
            float s2_0 = float(0), s2_1 = float(0), s2_2 = float(0), s2_3 = float(0);
            float s3_0 = float(0), s3_1 = float(0), s3_2 = float(0), s3_3 = float(0);
            int v1 = int(uint(i) % uint(4));
            int v2 = int(uint(i) / uint(4));
            int v10 = int(uint(i) % uint(32));
            int v11 = int(uint(v10) / uint(8));
            int v12 = int(uint(v10) % uint(8));
            int v13 = int(uint(i) / uint(32));
            int v14 = int(uint(v2) % uint(4));
            int v15 = int(uint(i) / uint(16));
            for (int turn = 0; turn <= 2; ++turn) {
                int k = min(turn, 1);
                vec4 v3 = F32x4(p0).data[(v1 + v2 * 8 + k * 4)];
                vec4 v4 = F32x4(p1).data[(i + k * 256)];
                vec4 v5 = F32x4(p1).data[(i + k * 256 + 64)];
                vec4 v6 = F32x4(p1).data[(i + k * 256 + 128)];
                vec4 v7 = F32x4(p1).data[(i + k * 256 + 192)];
                if (turn > 0) {
                    int v8 = ((turn - 1) & 1) * 72 + v11;
                    int v9 = ((turn - 1) & 1) * 256 + (v12 + v13 * 8);
                    [[unroll]] for (int step = 0; step < 16; ++step) {
                        vec4 a0 = shared_a[v8 + step * 4 + step / 4 * 2 + 0];
                        vec4 b0 = shared_b[v9 + step * 16 + 0];
                        s0_0 += a0.x * b0.x;
                        s0_1 += a0.x * b0.y;
                        s0_2 += a0.x * b0.z;
                        s0_3 += a0.x * b0.w;
                        s1_3 += a0.y * b0.w;
                        s1_2 += a0.y * b0.z;
                        s1_1 += a0.y * b0.y;
                        s1_0 += a0.y * b0.x;
                        s2_0 += a0.z * b0.x;
                        s2_1 += a0.z * b0.y;
                        s2_2 += a0.z * b0.z;
                        s2_3 += a0.z * b0.w;
                        s3_3 += a0.w * b0.w;
                        s3_2 += a0.w * b0.z;
                        s3_1 += a0.w * b0.y;
                        s3_0 += a0.w * b0.x;
                    }
                }
                shared_a[(turn & 1) * 72 + (v1 * 18 + v15)][v14] = v3.x;
                shared_a[(turn & 1) * 72 + (v1 * 18 + v15 + 4)][v14] = v3.y;
                shared_a[(turn & 1) * 72 + (v1 * 18 + v15 + 8)][v14] = v3.z;
                shared_a[(turn & 1) * 72 + (v1 * 18 + v15 + 12)][v14] = v3.w;
                shared_b[(turn & 1) * 256 + i] = v4;
                shared_b[(turn & 1) * 256 + (i + 64)] = v5;
                shared_b[(turn & 1) * 256 + (i + 128)] = v6;
                shared_b[(turn & 1) * 256 + (i + 192)] = v7;
                barrier();
            }
            vec4 v16 = vec4(s0_0, s0_1, s0_2, s0_3);
            vec4 v17 = F32x4(p2).data[(v12 + v13 * 8)];
            vec4 v18 = (v16 + v17);
            F32x4(p3).data[(v12 + v11 * 64 + v13 * 8)] = v18;
            vec4 v19 = vec4(s1_0, s1_1, s1_2, s1_3);
            vec4 v20 = (v19 + v17);
            F32x4(p3).data[(v12 + v11 * 64 + v13 * 8 + 16)] = v20;
            vec4 v21 = vec4(s2_0, s2_1, s2_2, s2_3);
            vec4 v22 = (v21 + v17);
            F32x4(p3).data[(v12 + v11 * 64 + v13 * 8 + 32)] = v22;
            vec4 v23 = vec4(s3_0, s3_1, s3_2, s3_3);
            vec4 v24 = (v23 + v17);
            F32x4(p3).data[(v12 + v11 * 64 + v13 * 8 + 48)] = v24;
        }
        """,
    ),
}


@pytest.mark.parametrize("name", SHADERS)
def test_shader(name: str) -> None:
    graph, device, expected = SHADERS[name]
    assert_shader(dispatch_of(graph, PROFILES[device]), expected)


def _product(m: int, k: int, n: int, transposed: str = "") -> str:
    left, right = (k, m) if "a" in transposed else (m, k), (n, k) if "b" in transposed else (k, n)
    contract = f"[{0 if 'a' in transposed else 1}]x[{1 if 'b' in transposed else 0}]"
    return f"""
        graph (x: f32[{left[0]},{left[1]}], w: f32[{right[0]},{right[1]}]) {{
          %0 = dot(x, w) contract={contract} : f32[{m},{n}]
          return %0
        }}
    """


def _schedule(text: str, profile: DeviceProfile) -> ContractSchedule:
    return choose_schedule(parse(dedent(text)).nodes[0], profile)


def test_tiles_grow_with_the_problem() -> None:
    """On a processor a subgroup's tile grows, on a GPU a workgroup's."""
    few, many = (_schedule(_product(n, 64, n), CPU_DRIVER) for n in (32, 256))
    assert isinstance(few, BroadcastTile) and isinstance(many, BroadcastTile)
    assert few.rows * few.columns < many.rows * many.columns
    small, middle, large = (_schedule(_product(n, 256, n), GENERIC_GPU) for n in (64, 1024, 4096))
    assert isinstance(small, SharedTile) and isinstance(middle, SharedTile) and isinstance(large, SharedTile)
    assert small.columns < middle.columns < large.columns


def test_invocations_share_the_sums_of_tiles_that_leave_processors_idle() -> None:
    """Deep tiles wait for memory as few times as they have parts; there is one that fits little shared memory."""
    large = replace(GENERIC_GPU, shared_memory_bytes=49152)

    def of(profile: DeviceProfile, *product: Any) -> tuple[int, int, int, int]:
        tile = _schedule(_product(*product), profile)
        assert isinstance(tile, SharedTile)
        return tile.rows, tile.columns, tile.depth, tile.slices

    assert of(large, 128, 576, 576, "b") == (32, 32, 64, 4)
    assert of(GENERIC_GPU, 128, 576, 576, "b") == (32, 32, 32, 4)
    assert of(large, 128, 576, 192) == (16, 32, 64, 8)
    assert of(large, 128, 60, 192)[3] == 1, "there is no second part whose loads would be waited for"
    assert of(large, 1024, 1024, 1024)[3] == 1


def test_few_rows_go_along_what_lies_side_by_side() -> None:
    """Neighbours along the sum are shared by a subgroup; neighbouring columns are an invocation's each."""
    for profile in (CPU_DRIVER, GENERIC_GPU):
        assert isinstance(_schedule(_product(2, 4096, 1024, "b"), profile), SubgroupTile)
        assert isinstance(_schedule(_product(2, 4096, 1024), profile), RegisterTile)


def test_lanes_share_what_they_read_where_they_can() -> None:
    """Not where they cannot exchange anything, where columns are too few for them, or on a GPU."""
    wide, narrow = _product(64, 64, 64), _product(64, 64, 4)
    assert isinstance(_schedule(wide, CPU_DRIVER), BroadcastTile)
    assert isinstance(_schedule(wide, replace(CPU_DRIVER, subgroup_shuffle=False)), RegisterTile)
    assert isinstance(_schedule(wide, replace(CPU_DRIVER, subgroup_size=1)), RegisterTile)
    assert isinstance(_schedule(wide.replace("f32", "f64"), CPU_DRIVER), RegisterTile)
    assert isinstance(_schedule(narrow, CPU_DRIVER), RegisterTile)
    assert isinstance(_schedule(wide, GENERIC_GPU), SharedTile)


def test_long_sums_of_few_tiles_go_in_parts_on_a_gpu() -> None:
    def parts(text: str, profile: DeviceProfile) -> int:
        return choose_parts(parse(dedent(text)).nodes[0], profile)

    assert parts(_product(64, 1 << 16, 64), GENERIC_GPU) > 1
    assert parts(_product(4096, 4096, 4096), GENERIC_GPU) == 1
    assert parts(_product(64, 64, 64), GENERIC_GPU) == 1
    assert parts(_product(64, 1 << 16, 64), CPU_DRIVER) == 1


def test_tiles_are_no_wider_than_the_result_and_parts_as_many_as_fill_a_device() -> None:
    def of(*product: Any) -> tuple[tuple[int, int], int]:
        text = _product(*product)
        tile = _schedule(text, GENERIC_GPU)
        assert isinstance(tile, SharedTile)
        return (tile.rows, tile.columns), choose_parts(parse(dedent(text)).nodes[0], GENERIC_GPU)

    assert of(65536, 256, 64) == ((64, 64), 1)
    assert of(64, 4096, 65536) == ((64, 128), 1)
    assert of(8192, 1024, 1024) == ((128, 256), 1)
    assert of(8192, 256, 8192) == ((64, 128), 1), "short sums, and large tiles begin and end with nothing else to do"
    assert of(8192, 1024, 8192) == ((128, 256), 1)
    assert of(131072, 1024, 64) == ((128, 64), 1), "eight tiles for each processor, one after the other"
    assert of(4096, 8192, 1024, "a") == ((128, 256), 1), "128 tiles are one for each processor"
    assert of(1024, 8192, 1024, "a")[1] == 4
    assert of(4097, 4095, 4099)[1] == 1, "a few tiles more than come out even are not worth more memory"


def test_what_an_epilogue_reads_is_under_way_before_it_is_needed() -> None:
    """Loads and stores keep their order, so a load right before its store would be waited for by itself."""
    text = """
        graph (x: f32[1024,512], w: f32[512,4096], mask: f32[1024,4096]) {
          %0 = dot(x, w) contract=[1]x[0] : f32[1024,4096]
          %1 = multiply(%0, mask) : f32[1024,4096]
          return %1
        }
    """
    lines = [line.strip() for line in dispatch_of(text, GENERIC_GPU).shader.source.splitlines()]
    later = [line for line in lines if "(p2)" in line or "(p3)" in line]
    accesses = ["store" if line.startswith("F32x4(p3)") else "load" for line in later]
    ahead = [accesses[:place].count("load") for place, access in enumerate(accesses) if access == "store"]
    assert ahead == [min(number + 16, len(ahead)) for number in range(len(ahead))]


def test_sums_of_integers() -> None:
    text = """
        graph (x: i32[2,3], w: i32[3,4]) {
          %0 = dot(x, w) contract=[1]x[0] : i32[2,4]
          return %0
        }
    """
    assert "ivec4 s0_0 = ivec4(0);" in dispatch_of(text, PROFILES["cpu"]).shader.source
