"""Contractions by cooperative matrices: their shaders, and when they are chosen."""
from __future__ import annotations

import itertools
import re
import struct
from dataclasses import replace
from textwrap import dedent
from typing import Any
from unittest.mock import patch

import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.compile import shader_compiler
from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS, with_brain_floats
from lavax.backends.vulkan.emit.contract import kernel as contract
from lavax.backends.vulkan.emit.contract.choose import (
    candidates,
    choose_schedule,
    leaves_idle,
    line_of,
    parts_for_maps,
    stores_rounded,
)
from lavax.backends.vulkan.emit.contract.cooperative import _spread
from lavax.backends.vulkan.emit.contract.tiles import (
    COOPERATIVE_TILES,
    CooperativeTile,
    SharedTile,
    cooperative_tile,
    fits,
)
from lavax.backends.vulkan.plan.profile import GENERIC_GPU, DeviceProfile, MatrixShape
from lavax.ir import parse
from lavax.ir.graph import graph_of
from lavax.passes.kernels.index import constant, substitute, variable
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.emission import dispatch_of, main_of
from tests.backends.vulkan.run.execution import backend_with

MATRICES = (MatrixShape("bf16", 16, 16, 16), MatrixShape("f16", 16, 16, 16))
WITH_MATRICES = replace(GENERIC_GPU, matrices=MATRICES, float16=True, storage_16bit=True, memory_model=True)
SMALL = CooperativeTile(32, 16, 16, 2, 1, MatrixShape("bf16", 16, 16, 16), 32)
PRODUCT = """
graph (x: bf16[64,32], w: bf16[32,16]) {
  %0 = dot(x, w) contract=[1]x[0] : bf16[64,16]
  return %0
}
"""


def shader_of(graph: str, tile: CooperativeTile) -> str:
    with patch.object(contract, "choose_schedule", lambda *_: tile):
        return dispatch_of(graph, WITH_MATRICES).shader.source


def main_of_tile(graph: str, tile: CooperativeTile) -> str:
    with patch.object(contract, "choose_schedule", lambda *_: tile):
        return main_of(dispatch_of(graph, WITH_MATRICES)).strip()


def test_operands_in_memory_are_staged_as_they_lie() -> None:
    assert main_of_tile(PRODUCT, SMALL) == dedent(
        """
        layout(local_size_x = 64, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            int t = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
            int i = int(gl_LocalInvocationID.x);
            int member = int(gl_SubgroupInvocationID);
            int across = int(gl_SubgroupID) % 1;
            int down = int(gl_SubgroupID) / 1;
            coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> s0_0 = coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
            int v1 = int(uint(i) / uint(2));
            int v2 = int(uint(v1) % uint(8));
            int v3 = int(uint(v2) % uint(4));
            int v4 = int(uint(v2) / uint(4));
            int v5 = int(uint(i) % uint(2));
            int v6 = int(uint(i) / uint(16));
            int v8 = int(uint(i) % uint(32));
            int v9 = int(uint(v8) / uint(2));
            int v10 = int(uint(v9) % uint(8));
            int v11 = int(uint(v10) % uint(4));
            int v12 = int(uint(v10) / uint(4));
            int v13 = int(uint(v8) % uint(2));
            int v14 = int(uint(v8) / uint(16));
            {
                int k = 0;
                uvec4 v7 = U32x4(p0).data[(v3 * 8 + v4 * 4 + v5 + v6 * 32 + k * 2 + t * 128)];
                uvec4 v15 = U32x4(p1).data[(v11 * 4 + v12 * 2 + v13 + v14 * 16 + k * 32)];
                staged[0 + (v3 * 6 + v4 * 3 + v5 + v6 * 24)] = v7;
                if (i < 32) {
                    staged[96 + (v11 * 6 + v12 * 3 + v13 + v14 * 24)] = v15;
                }
            }
            barrier();
            for (int k = 1; k < 2; ++k) {
                uvec4 v16 = U32x4(p0).data[(v3 * 8 + v4 * 4 + v5 + v6 * 32 + k * 2 + t * 128)];
                uvec4 v17 = U32x4(p1).data[(v11 * 4 + v12 * 2 + v13 + v14 * 16 + k * 32)];
                int v18 = 0 + (down * 48);
                int v19 = 96 + 0;
                [[unroll]] for (int step = 0; step < 1; ++step) {
                    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a0;
                    coopMatLoad(a0, staged, v18 + step * 2 + 0, 3, gl_CooperativeMatrixLayoutRowMajor);
                    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b0;
                    coopMatLoad(b0, staged, v19 + step * 48 + 0, 3, gl_CooperativeMatrixLayoutRowMajor);
                    s0_0 = coopMatMulAdd(a0, b0, s0_0);
                }
                barrier();
                staged[0 + (v3 * 6 + v4 * 3 + v5 + v6 * 24)] = v16;
                if (i < 32) {
                    staged[96 + (v11 * 6 + v12 * 3 + v13 + v14 * 24)] = v17;
                }
                barrier();
            }
            int v20 = 0 + (down * 48);
            int v21 = 96 + 0;
            [[unroll]] for (int step = 0; step < 1; ++step) {
                coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a0;
                coopMatLoad(a0, staged, v20 + step * 2 + 0, 3, gl_CooperativeMatrixLayoutRowMajor);
                coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b0;
                coopMatLoad(b0, staged, v21 + step * 48 + 0, 3, gl_CooperativeMatrixLayoutRowMajor);
                s0_0 = coopMatMulAdd(a0, b0, s0_0);
            }
            barrier();
            int v22 = int(gl_SubgroupID) * 96;
            coopMatStore(s0_0, staged, v22 + 0, 6, gl_CooperativeMatrixLayoutRowMajor);
            subgroupBarrier();
            int v23 = int(uint(member) % uint(4));
            int v24 = int(uint(member) / uint(4));
            [[dont_unroll]] for (int part = 0; part < 2; ++part) {
                vec4 v25 = uintBitsToFloat(staged[v22 + (v23 + v24 * 6 + part * 48)]);
                vec4 v26 = lx_round_to_bf16(v25);
                U32x2(p2).data[(down * 64 + member + part * 32 + t * 128)] = from_halves(uvec4(lx_bf16_held_to_bits(v26)));
            }
            subgroupBarrier();
        }
        """  # noqa: E501
    ).strip()


def test_float32_operands_are_rounded_as_they_are_staged() -> None:
    """Rows along the sum: the right operand's matrices are loaded by columns. The sum's last part begins earlier."""
    text = main_of_tile(
        """
        graph (x: f32[32,24], w: f32[16,24]) {
          %0 = dot(x, w) contract=[1]x[1] precision="bf16" : f32[32,16]
          return %0
        }
        """,
        SMALL,
    )
    for line in (
        "vec4 v24 = F32x4(p0).data[(v3 * 12 + v4 * 6 + v5 * 2 + v6 * 48 + v23 * 2)];",
        "coopMatLoad(b0, staged, v29 + step * 2 + 0, 3, gl_CooperativeMatrixLayoutColumnMajor);",
        "uvec4 v30 = lx_bf16_to_bits(v24);",
        "(v5 * 8 + v23 * 8) >= (k * 16) ? uvec4(v30.xz | v30.yw << 16, v31.xz | v31.yw << 16) : uvec4(0);",
        "F32x4(p2).data[(down * 64 + member + part * 32)] = v39;",
    ):
        assert line in text, line
    assert "lx_round_to_bf16" not in text  # rounded once


def test_padded_windows_are_copied_as_they_lie() -> None:
    """Zeros take the place of vectors that lie beside the image; no number is widened and rounded again."""
    graph = """
    graph (x: bf16[2,8,8,16], w: bf16[3,3,16,16]) {
      %0 = pad(x) low=[0,1,1,0] high=[0,1,1,0] interior=[0,0,0,0] value=0.0 : bf16[2,10,10,16]
      %1 = broadcast(%0) axes=[0,1,2,3] : bf16[2,10,10,16,3,3]
      %2 = shear(%1) axes=[1,2] along=[4,5] stride=[1,1] dilation=[1,1] : bf16[2,8,8,16,3,3]
      %3 = dot(%2, w) contract=[4,5,3]x[0,1,2] : bf16[2,8,8,16]
      return %3
    }
    """
    main = main_of_tile(graph, SMALL)
    loop = main[: main.index("coopMatStore")]
    assert loop.count(": uvec4(0)") == 2  # before the loop and in it
    assert "_to_bits" not in loop and "_from_bits" not in loop


def test_a_part_is_loaded_before_the_products_of_the_one_before_and_staged_behind_them() -> None:
    text = main_of_tile(PRODUCT, SMALL)
    marks = ("U32x4(p1)", "coopMatMulAdd", "barrier();", "staged[0 + ", "barrier();")
    place = text.index("for (int k")
    for mark in marks:
        place = text.index(mark, place + 1)


def test_the_epilogue_stands_once_in_a_loop_over_rows_of_matrices_and_loads_before_it_stores() -> None:
    text = main_of_tile(
        """
        graph (x: bf16[64,32], w: bf16[32,64], r: bf16[64,64]) {
          %0 = dot(x, w) contract=[1]x[0] : bf16[64,64]
          %1 = add(%0, r) : bf16[64,64]
          return %1
        }
        """,
        CooperativeTile(64, 64, 16, 2, 2, MatrixShape("bf16", 16, 16, 16), 32),
    )
    epilogue = text[text.index("[[dont_unroll]] for (int row = 0; row < 2; ++row) {") :]
    assert epilogue.count("coopMatStore") == 4 and epilogue.count("U32x2(p3)") == 4 and epilogue.count("p2") == 4
    assert epilogue.rindex("U32x2(p2)") < epilogue.index("U32x2(p3)")


def product(m: int, k: int, n: int) -> str:
    return f"""
    graph (x: bf16[{m},{k}], w: bf16[{k},{n}]) {{
      %0 = dot(x, w) contract=[1]x[0] : bf16[{m},{n}]
      return %0
    }}
    """


def test_neighbouring_products_share_a_matrix() -> None:
    tile = CooperativeTile(64, 32, 16, 2, 1, MATRICES[0], 32)
    text = main_of_tile(product(64, 16, 32), tile)
    pairs = re.findall(r"coopMatMulAdd\((a\d), (b\d)", text)
    assert sorted(set(pairs)) == [("a0", "b0"), ("a0", "b1"), ("a1", "b0"), ("a1", "b1")]
    assert all(set(one) & set(other) for one, other in itertools.pairwise(pairs))


@pytest.mark.parametrize("line", [2, 4, 8, 16])
def test_eight_neighbours_stage_to_all_banks(line: int) -> None:
    """Vectors of 128 bits: eight banks of four words. Lines are longer by one vector than what they hold."""
    lines = [
        substitute(_spread(variable("number", 32), line), {"number": constant(number)}).constant for number in range(32)
    ]
    assert sorted(lines) == list(range(32))
    places = [lines[vector // line] * (line + 1) + vector % line for vector in range(32 * line)]
    for start in range(0, len(places), 8):
        assert len({place % 8 for place in places[start : start + 8]}) == 8


def test_a_shader_says_that_its_floats_are_bfloat16() -> None:
    half = PRODUCT.replace("bf16", "f16")
    assert BRAIN_FLOATS in shader_of(PRODUCT, SMALL)
    assert BRAIN_FLOATS not in shader_of(half, replace(SMALL, shape=MATRICES[1]))


def dot_of(m: int, k: int, n: int, dtype: str = "bf16") -> Any:
    text = f"""
    graph (x: f32[{m},{k}], w: f32[{k},{n}]) {{
      %0 = dot(x, w) contract=[1]x[0]{f' precision="{dtype}"' if dtype else ''} : f32[{m},{n}]
      return %0
    }}
    """
    return parse(dedent(text)).nodes[0]


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_products_of_what_the_device_has_matrices_of_are_made_with_them(dtype: str) -> None:
    chosen = choose_schedule(dot_of(1024, 1024, 1024, dtype), WITH_MATRICES)
    assert isinstance(chosen, CooperativeTile) and chosen.shape.dtype == dtype


@pytest.mark.parametrize(
    "sizes, dtype, changes",
    [
        ((1024, 1024, 1024), "", {}),  # strict float32
        ((1024, 1024, 1024), "bf16", {"matrices": MATRICES[1:]}),
        ((1024, 1024, 1024), "bf16", {"matrices": ()}),
        ((1024, 8, 1024), "bf16", {}),
        ((12, 1024, 1024), "bf16", {}),
    ],
)
def test_other_products_are_made_without(sizes: tuple[int, int, int], dtype: str, changes: dict[str, Any]) -> None:
    chosen = choose_schedule(dot_of(*sizes, dtype), replace(WITH_MATRICES, **changes))
    assert not isinstance(chosen, CooperativeTile)


def test_tiles_are_deep_where_operands_are_staged_as_they_lie() -> None:
    """What is rounded on its way takes twice the registers."""
    profile = replace(WITH_MATRICES, shared_memory_bytes=48 << 10)
    held = parse(dedent(product(4096, 4096, 4096)))
    rounding = dot_of(4096, 4096, 4096)
    graphs = {64: prepare(held), 32: prepare(graph_of(rounding.operands, [rounding]))}
    for depth, graph in graphs.items():
        (dot,) = (node for node in graph.nodes if node.op == "dot")
        chosen = choose_schedule(dot, profile)
        assert isinstance(chosen, CooperativeTile) and (chosen.rows, chosen.columns, chosen.depth) == (128, 128, depth)
    (dot,) = (node for node in prepare(held).nodes if node.op == "dot")
    small = choose_schedule(dot, replace(profile, shared_memory_bytes=32 << 10))
    assert isinstance(small, CooperativeTile) and (small.rows, small.depth) == (128, 32)


@pytest.mark.parametrize(
    "sizes, sides",
    [
        ((1024, 1024, 1024), [True, True]),
        ((512, 256, 512), [False, False]),  # small
        ((16384, 4096, 256), [False, True]),  # a row is read by two tiles
    ],
)
def test_roundings_are_stored_where_they_are_read_often(sizes: tuple[int, int, int], sides: list[bool]) -> None:
    dot = dot_of(*sizes)
    assert [stores_rounded(dot, side, WITH_MATRICES) for side in range(2)] == sides
    assert not any(stores_rounded(dot, side, replace(WITH_MATRICES, matrices=())) for side in range(2))


@pytest.mark.parametrize(
    "weights, axes, is_stored",
    [
        ("w", (2, 3, 1, 0), True),  # elements of a window are neighbours in memory, and neither sum nor columns
        ("w", (1, 2, 3, 0), False),  # neighbours along the sum
        ("computed", (2, 3, 1, 0), False),
    ],
)
def test_roundings_of_weights_that_lie_apart_are_stored_sooner(
    weights: str, axes: tuple[int, ...], is_stored: bool
) -> None:
    """From 2^25 products on, not 2^27."""
    order = [(128, 64, 3, 3)[axis] for axis in axes]
    graph = parse(f"""
        graph (x: f32[1024,{",".join(map(str, order[:3]))}], w: f32[128,64,3,3], v: f32[128,64,3,3]) {{
          %0 = {"cast(w) : bf16[128,64,3,3]" if weights == "w" else "add(w, v) : f32[128,64,3,3]"}
          %1 = {"cast(%0) : f32[128,64,3,3]" if weights == "w" else "multiply(%0, v) : f32[128,64,3,3]"}
          %2 = transpose(%1) axes=[{",".join(map(str, axes))}] : f32[{",".join(map(str, order))}]
          %3 = dot(x, %2) contract=[1,2,3]x[0,1,2] precision="bf16" : f32[1024,128]
          return %3
        }}
    """)
    (dot,) = (node for node in graph.nodes if node.op == "dot")
    assert stores_rounded(dot, 1, WITH_MATRICES) == is_stored


@pytest.mark.parametrize(
    "sizes, line",
    [
        ((1024, 1025, 1024), 8),
        ((511, 2048, 1024), 1),  # few rows
        ((1024, 511, 1024), 1),  # a short sum
        ((512, 512, 511), 1),
    ],
)
def test_lines_are_whole_vectors_for_large_products_by_matrices(sizes: tuple[int, int, int], line: int) -> None:
    assert line_of(dot_of(*sizes), WITH_MATRICES) == line
    assert line_of(dot_of(*sizes), replace(WITH_MATRICES, matrices=())) == 1


@pytest.mark.parametrize("rows", [16, 19, 20, 32])
def test_few_rows_have_a_tile_as_deep_as_those_that_fill_it(rows: int) -> None:
    """Sixteen rows fill half of the smallest tiles, of which several have the same extents."""
    chosen = choose_schedule(dot_of(rows, 2048, 8192), WITH_MATRICES)
    assert isinstance(chosen, CooperativeTile) and (chosen.rows, chosen.columns, chosen.depth) == (32, 32, 128)


@pytest.mark.parametrize("summed, depth", [(2048, 128), (192, 64), (96, 32)])
def test_small_tiles_are_as_deep_as_long_sums_allow(summed: int, depth: int) -> None:
    chosen = choose_schedule(dot_of(192, summed, 128), WITH_MATRICES)
    assert isinstance(chosen, CooperativeTile) and (chosen.rows, chosen.columns, chosen.depth) == (32, 32, depth)


@pytest.mark.parametrize(
    ("sizes", "profile", "idle"),
    [
        ((2048, 576, 1536), WITH_MATRICES, True),  # 192 tiles of 128 x 128
        ((2048, 1024, 4096), WITH_MATRICES, False),  # 512
        ((2048, 576, 1536), replace(WITH_MATRICES, told_processors=132), True),  # 264 of 96 x 128, all at once
        ((2048, 576, 1536), replace(WITH_MATRICES, told_processors=80), False),
        ((2048, 576, 1536), GENERIC_GPU, False),
        ((2048, 576, 1536), replace(WITH_MATRICES, kind="cpu"), False),
    ],
)
def test_few_tiles_of_matrices_leave_processors_idle(
    sizes: tuple[int, int, int], profile: DeviceProfile, idle: bool
) -> None:
    assert leaves_idle(dot_of(*sizes), profile) is idle


@pytest.mark.parametrize(
    ("sizes", "together", "parts"),
    [
        ((576, 2048, 576), 1, 4),  # 25 tiles of 128 x 128, of 512 terms each
        ((576, 2048, 1536), 1, 2),  # 3 do not divide the sum
        ((1536, 2048, 576), 2, 1),  # 120 in one dispatch
        ((192, 2048, 576), 1, 1),  # 40 tiles of parts would be too few
        ((576, 768, 576), 1, 1),
        ((1024, 2048, 4096), 1, 1),
    ],
)
def test_sums_that_maps_add_have_parts_where_large_tiles_are_few(
    sizes: tuple[int, int, int], together: int, parts: int
) -> None:
    assert parts_for_maps(dot_of(*sizes), together, WITH_MATRICES) == parts
    for profile in (GENERIC_GPU, replace(WITH_MATRICES, kind="cpu")):
        assert parts_for_maps(dot_of(*sizes), together, profile) == 1


@pytest.mark.parametrize(
    ("sizes", "together", "tile"),
    [
        ((2048, 576, 576), 1, (64, 96)),  # 192 tiles, all at once
        ((2048, 1536, 576), 1, (96, 128)),  # 110 in place of 192, which take longer than their ends
        ((2048, 1536, 576), 2, (96, 128)),  # 384
        ((1576, 3072, 768), 1, (96, 128)),
        ((3200, 256, 256), 1, (64, 64)),  # a short sum, beside which the ends of a large tile are long
        ((8192, 576, 576), 1, (128, 128)),
    ],
)
def test_small_tiles_that_all_run_at_once(sizes: tuple[int, int, int], together: int, tile: tuple[int, int]) -> None:
    chosen = choose_schedule(dot_of(*sizes), WITH_MATRICES, together=together)
    assert (chosen.rows, chosen.columns) == tile


def test_a_tile_a_processor_has_slices_and_reads_ahead() -> None:
    """128 tiles of 64 x 96 on as many processors: each waits for its own loads alone."""
    profile = replace(WITH_MATRICES, shared_memory_bytes=49152)
    chosen = choose_schedule(dot_of(1024, 3072, 768), profile)
    assert isinstance(chosen, CooperativeTile)
    assert (chosen.rows, chosen.columns, chosen.slices, chosen.reads_ahead) == (64, 96, 2, True)
    two = choose_schedule(dot_of(1024, 3072, 768), profile, together=2)
    assert isinstance(two, CooperativeTile) and not two.reads_ahead


def test_tiles_are_timed_as_they_would_be_chosen() -> None:
    """Each that has a processor to itself reads ahead, not only the one that the rules prefer."""
    profile = replace(WITH_MATRICES, shared_memory_bytes=49152)
    dot = dot_of(1024, 3072, 768)
    tiles = candidates(dot, profile)
    assert tiles[0] == choose_schedule(dot, profile) and len(set(map(repr, tiles))) == len(tiles)
    ahead = {(tile.rows, tile.columns): tile.reads_ahead for tile in tiles if isinstance(tile, CooperativeTile)}
    assert ahead == {(128, 128): True, (96, 128): True, (64, 96): True, (64, 64): False, (32, 32): False}


def test_a_cpu_driver_makes_none() -> None:
    profile = replace(WITH_MATRICES, kind="cpu")
    assert not isinstance(choose_schedule(dot_of(1024, 1024, 1024), profile), (CooperativeTile, SharedTile))


def test_the_tiles_fit_the_least_shared_memory_that_devices_have() -> None:
    for numbers in COOPERATIVE_TILES:
        tile = cooperative_tile(numbers, "bf16", WITH_MATRICES)
        assert tile.divides()
    assert any(fits(cooperative_tile(n, "bf16", WITH_MATRICES), WITH_MATRICES) for n in COOPERATIVE_TILES)


def test_modules_of_16_bit_floats_become_modules_of_bfloat16() -> None:
    def instruction(operation: int, *operands: int) -> list[int]:
        return [(len(operands) + 1) << 16 | operation, *operands]

    def words_of(text: bytes) -> tuple[int, ...]:
        return struct.unpack(f"<{len(text) // 4}I", text)

    header = [0x07230203, 0x00010600, 0, 9, 0]
    matrix = words_of(b"SPV_KHR_cooperative_matrix\0\0".ljust(28, b"\0"))
    kept = [*instruction(22, 2, 32), *instruction(21, 3, 16, 0)]
    before = [*header, *instruction(17, 1), *instruction(17, 9), *instruction(10, *matrix), *instruction(22, 1, 16)]
    after = [
        *header,
        *instruction(17, 1),
        *instruction(17, 5116),  # BFloat16TypeKHR
        *instruction(17, 5118),  # BFloat16CooperativeMatrixKHR
        *instruction(10, *matrix),
        *instruction(10, *words_of(b"SPV_KHR_bfloat16".ljust(20, b"\0"))),
        *instruction(22, 1, 16, 0),
    ]
    pack = lambda words: struct.pack(f"<{len(words)}I", *words)  # noqa: E731
    assert with_brain_floats(pack(before + kept)) == pack(after + kept)


def test_the_compiler_is_asked_once_what_it_knows(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("LAVAX_CACHE", str(tmp_path))
    assert shader_compiler.accepts_extension("GL_EXT_buffer_reference2")
    assert not shader_compiler.accepts_extension("GL_LAVAX_no_such_extension")
    compiler = shader_compiler._compiler()
    deaf = replace(compiler, compile=lambda source: pytest.fail("asked again"))
    monkeypatch.setattr(shader_compiler, "_compiler", lambda: deaf)
    assert shader_compiler.accepts_extension("GL_EXT_buffer_reference2")
    assert not shader_compiler.accepts_extension("GL_LAVAX_no_such_extension")


@pytest.mark.parametrize("length, groups", [(2048, 2 * 12 * 5), (512, 2 * 24 * 9)])
def test_products_of_one_dispatch_have_one_choice_of_tiles_if_sums_are_long(length: int, groups: int) -> None:
    """Two gradients of 1536 x 576 fill the device with tiles that would leave half of it idle for one of them."""

    def both(x: Any, first: Any, second: Any) -> Any:
        return x.T @ first, x.T @ second

    x, y = (lx.ShapeDtype((length, width), lnp.bfloat16) for width in (1536, 576))
    graph = remove_stop_gradient(lx.trace(both)(x, y, y))
    (dispatch,) = backend_with(**vars(WITH_MATRICES)).lower(graph).plan.dispatches
    assert dispatch.groups[0] == groups
    alone = choose_schedule(dot_of(1536, length, 576), WITH_MATRICES)
    assert (alone.rows, alone.columns) == (64, 64)
