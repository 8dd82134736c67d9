"""Products of arrays in strides: which share a shader, and what it is."""

from __future__ import annotations

import re
from functools import cache
from textwrap import dedent

import pytest

from lavax.backends.vulkan.emit.contract.tiles import BroadcastTile
from lavax.backends.vulkan.emit.strided.kernel import emit_strided_contracts
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.plan import Dispatch
from lavax.backends.vulkan.plan.profile import CPU_DRIVER
from lavax.ir import parse
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.emit.emission import PROFILES, dispatches_of

SMALL = BroadcastTile(4, 4, 1)

# The shader of one tile, in order: its parts by what they show.
PARTS = {
    # the prologues of the operands and the epilogue, which shaders may have several of
    "functions": """
    vec4 left_0(vec4 x0) {
        vec4 v1 = x0;
        return v1;
    }
    vec4 right_0(vec4 x0) {
        vec4 v1 = x0;
        return v1;
    }
    vec4 result_0(vec4 x0, vec4 x1) {
        vec4 v1 = x1;
        vec4 v2 = (x0 + v1);
        return v2;
    }
    """,
    # the pointers, and everything that differs between products as numbers
    "words": """
    void main() {
        uint64_t p0 = table.address[words[0]];
        uint64_t p1 = table.address[words[1]];
        uint64_t p2 = table.address[words[2]];
        uint64_t p3 = table.address[words[3]];
        int functions = int(words[4]);
        int across = int(words[5]);
        int down = int(words[6]);
        int last_row = int(words[7]);
        int last_column = int(words[8]);
        int rows = int(words[9]);
        int sum_end = int(words[10]);
        int parts = int(words[11]);
        int left_batch = int(words[12]);
        int left_free = int(words[13]);
        int left_lane = int(words[14]);
        int left_next = int(words[15]);
        int left_turn = int(words[16]);
        int right_batch = int(words[17]);
        int right_free = int(words[18]);
        int right_lane = int(words[19]);
        int right_next = int(words[20]);
        int right_turn = int(words[21]);
        int batch0 = int(words[22]);
        int row0 = int(words[23]);
        int batch1 = int(words[24]);
        int row1 = int(words[25]);
    """,
    # the tile of the workgroup, and the first texels of the invocation
    "tile": """
        int t = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x)), member = int(gl_LocalInvocationID.x);
        int across_at = int(uint(t) % uint(across)), others = int(uint(t) / uint(across));
        int down_at = int(uint(others) % uint(down)), batch = int(uint(others) / uint(down));
        int own_row = down_at * 4, row = min(own_row, last_row);
        int own_column = across_at * 4, column = min(own_column, last_column);
        bvec4 left_along_sum = bvec4((functions & 16777216) != 0);
        bvec4 right_along_sum = bvec4((functions & 33554432) != 0);
        int left_at = (batch * left_batch + row * left_free) / 4 + member * left_lane;
        int right_at = (batch * right_batch + column * right_free) / 4 + member * right_lane;
    """,
    # sums are scalars between iterations, because a CPU driver keeps those in registers
    "accumulators": """
        float c0_0x = 0.0, c0_0y = 0.0, c0_0z = 0.0, c0_0w = 0.0;
        float c1_0x = 0.0, c1_0y = 0.0, c1_0z = 0.0, c1_0w = 0.0;
        float c2_0x = 0.0, c2_0y = 0.0, c2_0z = 0.0, c2_0w = 0.0;
        float c3_0x = 0.0, c3_0y = 0.0, c3_0z = 0.0, c3_0w = 0.0;
        for (int k = 0; k < sum_end; k += 4) {
            vec4 s0_0 = vec4(c0_0x, c0_0y, c0_0z, c0_0w);
            vec4 s1_0 = vec4(c1_0x, c1_0y, c1_0z, c1_0w);
            vec4 s2_0 = vec4(c2_0x, c2_0y, c2_0z, c2_0w);
            vec4 s3_0 = vec4(c3_0x, c3_0y, c3_0z, c3_0w);
    """,
    # four texels per operand, transposed if neighbours in memory are along the sum
    "operands": """
            vec4 l0_read0 = uintBitsToFloat(read_four(p0, (left_at + (k >> 2) * left_turn + 0 * left_next)));
            vec4 l0_read1 = uintBitsToFloat(read_four(p0, (left_at + (k >> 2) * left_turn + 1 * left_next)));
            vec4 l0_read2 = uintBitsToFloat(read_four(p0, (left_at + (k >> 2) * left_turn + 2 * left_next)));
            vec4 l0_read3 = uintBitsToFloat(read_four(p0, (left_at + (k >> 2) * left_turn + 3 * left_next)));
            vec4 l0_made0 = left_0(l0_read0);
            vec4 l0_made1 = left_0(l0_read1);
            vec4 l0_made2 = left_0(l0_read2);
            vec4 l0_made3 = left_0(l0_read3);
            vec4 l0_0 = mix(l0_made0, vec4(l0_made0.x, l0_made1.x, l0_made2.x, l0_made3.x), left_along_sum);
            vec4 l0_1 = mix(l0_made1, vec4(l0_made0.y, l0_made1.y, l0_made2.y, l0_made3.y), left_along_sum);
            vec4 l0_2 = mix(l0_made2, vec4(l0_made0.z, l0_made1.z, l0_made2.z, l0_made3.z), left_along_sum);
            vec4 l0_3 = mix(l0_made3, vec4(l0_made0.w, l0_made1.w, l0_made2.w, l0_made3.w), left_along_sum);
            vec4 r0_read0 = uintBitsToFloat(read_four(p1, (right_at + (k >> 2) * right_turn + 0 * right_next)));
            vec4 r0_read1 = uintBitsToFloat(read_four(p1, (right_at + (k >> 2) * right_turn + 1 * right_next)));
            vec4 r0_read2 = uintBitsToFloat(read_four(p1, (right_at + (k >> 2) * right_turn + 2 * right_next)));
            vec4 r0_read3 = uintBitsToFloat(read_four(p1, (right_at + (k >> 2) * right_turn + 3 * right_next)));
            vec4 r0_made0 = right_0(r0_read0);
            vec4 r0_made1 = right_0(r0_read1);
            vec4 r0_made2 = right_0(r0_read2);
            vec4 r0_made3 = right_0(r0_read3);
            vec4 r0_0 = mix(r0_made0, vec4(r0_made0.x, r0_made1.x, r0_made2.x, r0_made3.x), right_along_sum);
            vec4 r0_1 = mix(r0_made1, vec4(r0_made0.y, r0_made1.y, r0_made2.y, r0_made3.y), right_along_sum);
            vec4 r0_2 = mix(r0_made2, vec4(r0_made0.z, r0_made1.z, r0_made2.z, r0_made3.z), right_along_sum);
            vec4 r0_3 = mix(r0_made3, vec4(r0_made0.w, r0_made1.w, r0_made2.w, r0_made3.w), right_along_sum);
    """,
    # the left elements come from the invocation that has them, by shuffles
    "products": """
            float f0_0 = subgroupShuffle(l0_0.x, 0u);
            s0_0 += f0_0 * r0_0;
            float f0_1 = subgroupShuffle(l0_1.x, 0u);
            s0_0 += f0_1 * r0_1;
            float f0_2 = subgroupShuffle(l0_2.x, 0u);
            s0_0 += f0_2 * r0_2;
            float f0_3 = subgroupShuffle(l0_3.x, 0u);
            s0_0 += f0_3 * r0_3;
            float f1_0 = subgroupShuffle(l0_0.y, 0u);
            s1_0 += f1_0 * r0_0;
            float f1_1 = subgroupShuffle(l0_1.y, 0u);
            s1_0 += f1_1 * r0_1;
            float f1_2 = subgroupShuffle(l0_2.y, 0u);
            s1_0 += f1_2 * r0_2;
            float f1_3 = subgroupShuffle(l0_3.y, 0u);
            s1_0 += f1_3 * r0_3;
            float f2_0 = subgroupShuffle(l0_0.z, 0u);
            s2_0 += f2_0 * r0_0;
            float f2_1 = subgroupShuffle(l0_1.z, 0u);
            s2_0 += f2_1 * r0_1;
            float f2_2 = subgroupShuffle(l0_2.z, 0u);
            s2_0 += f2_2 * r0_2;
            float f2_3 = subgroupShuffle(l0_3.z, 0u);
            s2_0 += f2_3 * r0_3;
            float f3_0 = subgroupShuffle(l0_0.w, 0u);
            s3_0 += f3_0 * r0_0;
            float f3_1 = subgroupShuffle(l0_1.w, 0u);
            s3_0 += f3_1 * r0_1;
            float f3_2 = subgroupShuffle(l0_2.w, 0u);
            s3_0 += f3_2 * r0_2;
            float f3_3 = subgroupShuffle(l0_3.w, 0u);
            s3_0 += f3_3 * r0_3;
    """,
    # sums leave the loop as vectors again
    "carried": """
            c0_0x = s0_0.x; c0_0y = s0_0.y; c0_0z = s0_0.z; c0_0w = s0_0.w;
            c1_0x = s1_0.x; c1_0y = s1_0.y; c1_0z = s1_0.z; c1_0w = s1_0.w;
            c2_0x = s2_0.x; c2_0y = s2_0.y; c2_0z = s2_0.z; c2_0w = s2_0.w;
            c3_0x = s3_0.x; c3_0y = s3_0.y; c3_0z = s3_0.z; c3_0w = s3_0.w;
        }
        vec4 s0_0 = vec4(c0_0x, c0_0y, c0_0z, c0_0w);
        vec4 s1_0 = vec4(c1_0x, c1_0y, c1_0z, c1_0w);
        vec4 s2_0 = vec4(c2_0x, c2_0y, c2_0z, c2_0w);
        vec4 s3_0 = vec4(c3_0x, c3_0y, c3_0z, c3_0w);
    """,
    # the epilogue takes each part of the sums, and writes what lies inside the result
    "epilogue": """
        for (int line = 0; 4 * line < rows; ++line) {
            vec4 sum0 = s0_0;
            vec4 sum1 = s1_0;
            vec4 sum2 = s2_0;
            vec4 sum3 = s3_0;
            for (int part = 0; part < parts; ++part) {
                vec4 sum = sum0;
                sum = mix(sum, sum1, bvec4(part == 1));
                sum = mix(sum, sum2, bvec4(part == 2));
                sum = mix(sum, sum3, bvec4(part == 3));
                int at = 4 * line + part / 1, at_row = row + min(at, rows - 1);
                int first = column + 4 * (member + 1 * (part % 1));
                vec4 x0 = uintBitsToFloat(read_four(p2, (batch * batch0 + at_row * row0 + first / 4)));
                vec4 result = result_0(sum, x0);
                if (at < rows && at_row >= own_row && first >= own_column) {
                    write_four(p3, (batch * batch1 + at_row * row1 + first / 4), floatBitsToUint(result));
                }
            }
        }
    }
    """,
}


def _launches(graph: str, tile: BroadcastTile) -> list[Launch]:
    """Of the contractions of a graph that share shaders, by that tile."""
    program = schedule(prepare(parse(dedent(graph))))
    contracts = [step.kernel for step in steps_of(program.steps) if step.kernel.kind == "contract"]
    found = emit_strided_contracts(dict.fromkeys(contracts, tile), (), CPU_DRIVER)
    return [found[kernel] for kernel in contracts if kernel in found]


def _contractions(graph: str) -> list[Dispatch]:
    return [dispatch for dispatch in dispatches_of(graph, PROFILES["cpu"]) if "sum_end" in dispatch.shader.source]


SUM = """
    graph (x: f32[8,4], w: f32[4,8], b: f32[8]) {
      %0 = dot(x, w) contract=[1]x[0] : f32[8,8]
      %1 = broadcast(b) axes=[1] : f32[8,8]
      %2 = add(%0, %1) : f32[8,8]
      return %2
    }
"""


@cache
def _lines_of_sum() -> list[str]:
    (launch,) = _launches(SUM, SMALL)
    source = launch.shader.source
    return _lines(source[source.index("vec4 left_0") :])


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("part", PARTS)
def test_the_shader_part_by_part(part: str) -> None:
    lines, expected = _lines_of_sum(), _lines(PARTS[part])
    begin = lines.index(expected[0]) if expected[0] in lines else 0
    assert lines[begin : begin + len(expected)] == expected


def test_the_shader_is_its_parts_in_order() -> None:
    assert _lines_of_sum() == [line for text in PARTS.values() for line in _lines(text)]


def test_the_words_and_groups() -> None:
    (launch,) = _launches(SUM, SMALL)
    assert launch.words == (16777216, 2, 2, 4, 4, 4, 4, 4, 0, 4, 4, 1, 1, 0, 1, 1, 2, 8, 0, 0, 0, 2)
    assert launch.groups == (4, 1, 1)
    assert launch.order == (0, 1, 2, 3)  # the operands, what the sum meets, the result


STEP = """
    graph (x: f32[64,128], w: f32[128,256], b: f32[256], y: f32[64,256]) {
      %0 = dot(x, w) contract=[1]x[0] : f32[64,256]
      %1 = broadcast(b) axes=[1] : f32[64,256]
      %2 = add(%0, %1) : f32[64,256]
      %3 = constant() value=0.0 : f32[64,256]
      %4 = maximum(%2, %3) : f32[64,256]
      %5 = dot(y, w) contract=[1]x[1] : f32[64,128]
      %6 = multiply(%5, x) : f32[64,128]
      %7 = dot(x, %4) contract=[0]x[0] : f32[128,256]
      %8 = subtract(w, %7) : f32[128,256]
      return %2, %6, %8
    }
"""


def test_layouts_sizes_and_functions_share_a_shader() -> None:
    """Operands in either order, an epilogue each, and one prologue."""
    launches = _launches(STEP, BroadcastTile(32, 64, 8))
    assert len(launches) == 3
    assert len({launch.shader for launch in launches}) == 1
    functions = re.findall(r"^vec4 (\w+)_\d", launches[0].shader.source, re.MULTILINE)
    assert functions == ["left", "right", "right", "result", "result", "result"]


def test_an_emitted_program_shares_them() -> None:
    contractions = _contractions(STEP.replace("64", "256"))
    assert len(contractions) == 3
    assert len({dispatch.shader for dispatch in contractions}) == 1


HEADS = """
    graph (x: f32[2,64,192], w: f32[64,64]) {
      %0 = slice(x) start=[0,0,0] limit=[2,64,96] stride=[1,1,1] : f32[2,64,96]
      %1 = reshape(%0) : f32[2,64,3,32]
      %2 = slice(x) start=[0,0,96] limit=[2,64,192] stride=[1,1,1] : f32[2,64,96]
      %3 = reshape(%2) : f32[2,64,3,32]
      %4 = dot(%1, %3) contract=[3]x[3] batch=[0,2]x[0,2] : f32[2,3,64,64]
      %5 = dot(w, w) contract=[1]x[0] : f32[64,64]
      return %4, %5
    }
"""


def test_a_batch_in_two_axes_and_where_an_operand_begins_are_numbers() -> None:
    heads, plain = _launches(HEADS, BroadcastTile(32, 64, 8))
    assert heads.shader == plain.shader
    assert "int outer = int(uint(batch) / uint(inner))" in heads.shader.source
    # the inner axis and the steps of both operands along it, where they begin, and the result's step, in vectors
    assert heads.words[-6:] == (3, 32, 32, 0, 96, 64 * 64 // 4)
    assert plain.words[-6:] == (1, 0, 0, 0, 0, 0)


def test_without_such_batches_there_are_no_numbers_for_them() -> None:
    assert all("outer" not in launch.shader.source for launch in _launches(STEP, BroadcastTile(32, 64, 8)))


def _function(epilogue: str) -> str:
    return f"""
        graph (x: f32[64,64], w: f32[64,64], y: f32[64,64]) {{
          %0 = dot(x, w) contract=[1]x[0] : f32[64,64]
          %1 = dot(y, w) contract=[1]x[0] : f32[64,64]
          %2 = {epilogue}(%1) : f32[64,64]
          return %0, %2
        }}
    """


@pytest.mark.parametrize(("epilogue", "shaders"), [("negate", 1), ("tan", 2)])
def test_what_costs_much_has_a_shader_of_its_own(epilogue: str, shaders: int) -> None:
    """Every function of a shader is computed for all of its products."""
    assert len({launch.shader for launch in _launches(_function(epilogue), BroadcastTile(32, 32, 8))}) == shaders


def test_few_functions_share_a_shader() -> None:
    """All of a shader's are computed for each of its products."""
    rows = "\n".join(
        f"""
          %{3 * number} = dot(x{number}, w{number}) contract=[1]x[0] : f32[64,64]
          %{3 * number + 1} = constant() value={number}.5 : f32[64,64]
          %{3 * number + 2} = add(%{3 * number}, %{3 * number + 1}) : f32[64,64]"""
        for number in range(9)
    )
    results = ", ".join(f"%{3 * number + 2}" for number in range(9))
    arrays = ", ".join(f"x{number}: f32[64,64], w{number}: f32[64,64]" for number in range(9))
    launches = _launches(f"graph ({arrays}) {{\n{rows}\n  return {results}\n}}", BroadcastTile(32, 32, 8))
    assert len(launches) == 9
    assert len({launch.shader for launch in launches}) == 3


OTHERS = {
    "a result of another type": "%1 = cast(%0) : i32[64,64]\n return %1",
    "a function of the place": "%1 = iota() axis=0 : f32[64,64]\n %2 = add(%0, %1) : f32[64,64]\n return %2",
    "an array that lies otherwise": """%1 = flip(y) axes=[0] : f32[64,64]
                                       %2 = add(%0, %1) : f32[64,64]
                                       return %2""",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_contractions_have_shaders_of_their_own(name: str) -> None:
    graph = f"""
        graph (x: f32[64,64], w: f32[64,64], y: f32[64,64]) {{
          %0 = dot(x, w) contract=[1]x[0] : f32[64,64]
          {OTHERS[name]}
        }}
    """
    assert _launches(graph, BroadcastTile(32, 32, 8)) == []


# Rows, columns and sum of a product, and how its operands and the result are accessed: in vectors (vectors, stores), in
# texels of a word (elements), or by address (F32).
ACCESSES = {
    (64, 64, 64): ("vectors0", "vectors1", "stores2"),
    (60, 64, 66): ("elements0", "elements1", "F32"),  # small: not of several forms
    (33, 35, 37): ("F32", "F32", "F32"),  # not in windows
    (20, 64, 64): ("elements0", "elements1", "F32"),  # fewer rows than a tile has
    (128, 128, 130): ("vectors0", "elements1", "F32"),
    (128, 130, 128): ("elements0", "elements1", "stores2"),
    (129, 128, 128): ("vectors0", "vectors1", "stores2"),
}


@pytest.mark.parametrize("sizes", ACCESSES, ids=str)
def test_arrays_are_accessed_in_vectors_where_they_can_be(sizes: tuple[int, int, int]) -> None:
    """Not where there are fewer rows than a tile has, where lines begin anywhere, or where a sum leaves a rest."""
    m, k, n = sizes
    (launch,) = _launches(
        f"""
        graph (x: f32[{m},{k}], w: f32[{k},{n}]) {{
          %0 = dot(x, w) contract=[1]x[0] : f32[{m},{n}]
          return %0
        }}
        """,
        BroadcastTile(32, 32, 8),
    )
    lines = launch.shader.source.splitlines()
    reads = [next(line for line in lines if f"vec4 {name}0_read0 =" in line) for name in ("l", "r")]
    (write, *_) = (line for line in lines if "result" in line and "data[" in line)
    found = [re.search(r"F32|(vectors|elements|stores)\d", line) for line in (*reads, write)]
    assert tuple(match.group() for match in found if match) == ACCESSES[sizes]
    addresses = sum(form == "F32" for form in ACCESSES[sizes])
    assert launch.by_descriptor == 3 - addresses


def test_texels_of_a_word_are_read_within_an_array() -> None:
    """Places are held below the last row, column and element of the sum."""
    (launch,) = _launches(
        """
        graph (x: f32[99,101], w: f32[101,103]) {
          %0 = dot(x, w) contract=[1]x[0] : f32[99,103]
          return %0
        }
        """,
        BroadcastTile(32, 32, 8),
    )
    source = launch.shader.source
    row, column = "row + 4 * (member + 0) + 1", "column + 4 * (member + 0) + 2"
    assert f"int left_at1 = batch * left_batch + min({row}, left_end - 1) * left_free;" in source
    assert f"int right_at2 = batch * right_batch + min({column}, right_end - 1) * right_free;" in source
    (read,) = (line.strip() for line in source.splitlines() if "vec4 r0_read3 =" in line)
    texels = [
        f"uintBitsToFloat(texelFetch(elements1, 4 * w1 + right_at{n} + min(k + 3, sum_end - 1) * right_sum).x)"
        for n in range(4)
    ]
    assert read == f"vec4 r0_read3 = vec4({', '.join(texels)});"
