"""The text of kernels of attention for GPUs."""
from __future__ import annotations

from dataclasses import replace
from math import inf
from textwrap import dedent

import pytest

from lavax.backends.vulkan.emit.attention import choose
from lavax.backends.vulkan.emit.attention.problem import Problem, Stage
from lavax.backends.vulkan.emit.attention.subgroup_shape import broadcast_shapes
from lavax.backends.vulkan.emit.attention.workgroup_shape import WorkgroupShape, choose_workgroup_shape, fitted
from lavax.backends.vulkan.emit.candidates import schedules_of
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir import TensorType, float32, parse
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.emit.emission import dispatch_of, main_of

PLAIN = "fill=-inf biased=false masked=false empty=false"
CAUSAL = f"""
    graph (q: f32[2,32,4], k: f32[2,64,4], v: f32[2,64,4]) {{
      %0 = attention(q, k, v) scale=0.5 lowest=-63 highest=0 {PLAIN} : f32[2,32,4]
      return %0
    }}
"""


def _main(monkeypatch: pytest.MonkeyPatch) -> str:
    shape = WorkgroupShape(4, 8, 4, 1, depth=4, share=32, chunk=32)
    given = lambda profile, problem, stages, *_: fitted(shape, profile, stages)  # noqa: E731
    monkeypatch.setattr(choose, "choose_workgroup_shape", given)
    return main_of(dispatch_of(CAUSAL, GENERIC_GPU))


def test_blocks_that_no_row_sees_are_left_out_and_long_rows_start_first(monkeypatch: pytest.MonkeyPatch) -> None:
    main = _main(monkeypatch)
    assert "group = 3 - group;" in main
    assert "int end = (v1 * 16) + 15 < 0 ? 0 : min(2, ((v1 * 16) + 15) / 32 + 1);" in main
    assert "for (int block = 0; block < end; ++block) {" in main


def test_the_next_step_is_loaded_before_the_one_at_hand_is_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    main = _main(monkeypatch)
    product = main[main.index("        for (int d = 0;") : main.index("        s0_0 = s0_0 * 0.5;")]
    assert dedent(product) == dedent("""\
        for (int d = 0; d < 1; ++d) {
            barrier();
            if (member < 16) {
                staged[member] = fetched0;
            }
            {
                staged[(member + 16)] = fetched1;
            }
            barrier();
            {
                int next_block = block, next_part = 0;
                int v9 = clamp((v5 * 4 + v6 + next_block * 32), 0, 63);
                vec4 v10 = F32x4(p2).data[(v2 * 64 + v9)];
                fetched0 = v10;
            }
            int rows_at = line * 1, columns_at = 16 + place * 1;
            [[unroll]] for (int k = 0; k < 1; ++k) {
                vec4 c0_0 = staged[columns_at + 0 + k];
                vec4 c0_1 = staged[columns_at + 8 + k];
                vec4 c0_2 = staged[columns_at + 16 + k];
                vec4 c0_3 = staged[columns_at + 24 + k];
                vec4 x0 = vec4(c0_0.x, c0_1.x, c0_2.x, c0_3.x);
                vec4 y0 = vec4(c0_0.y, c0_1.y, c0_2.y, c0_3.y);
                vec4 z0 = vec4(c0_0.z, c0_1.z, c0_2.z, c0_3.z);
                vec4 w0 = vec4(c0_0.w, c0_1.w, c0_2.w, c0_3.w);
                vec4 r0 = staged[rows_at + 0 + k];
                s0_0 += r0.x * x0;
                s0_0 += r0.y * y0;
                s0_0 += r0.z * z0;
                s0_0 += r0.w * w0;
                vec4 r1 = staged[rows_at + 4 + k];
                s1_0 += r1.x * x0;
                s1_0 += r1.y * y0;
                s1_0 += r1.z * z0;
                s1_0 += r1.w * w0;
                vec4 r2 = staged[rows_at + 8 + k];
                s2_0 += r2.x * x0;
                s2_0 += r2.y * y0;
                s2_0 += r2.z * z0;
                s2_0 += r2.w * w0;
                vec4 r3 = staged[rows_at + 12 + k];
                s3_0 += r3.x * x0;
                s3_0 += r3.y * y0;
                s3_0 += r3.z * z0;
                s3_0 += r3.w * w0;
            }
        }
    """)


def _shape(batch: int, positions: int, head: int) -> WorkgroupShape | None:
    type = f"f32[{batch},{positions},{head}]"
    graph = parse(
        f"graph (q: {type}, k: {type}, v: {type}) {{\n"
        f"  %0 = attention(q, k, v) scale=1.0 lowest={1 - positions} highest={positions - 1} {PLAIN} : {type}\n"
        "  return %0\n}"
    )
    stages = choose.stages_of({"attention": graph.outputs[0]})
    return choose_workgroup_shape(GENERIC_GPU, Problem((batch,), positions, positions, by_keys=False), stages)


def test_lines_grow_with_heads_and_tiles_with_the_work() -> None:
    large = {head: _shape(64, 1024, head) for head in (32, 64, 128, 256)}
    assert {head: shape and shape.across for head, shape in large.items()} == {32: 8, 64: 16, 128: 16, 256: 32}
    small, middle = _shape(1, 64, 64), large[64]
    assert small is not None and middle is not None and small.rows < middle.rows
    assert _shape(1, 64, 300) is None


def test_lanes_of_a_cpu_driver_hand_each_other_what_all_need() -> None:
    main = main_of(dispatch_of(CAUSAL, replace(CPU_DRIVER, subgroup_size=2, min_subgroup_size=2, max_subgroup_size=2)))
    assert "subgroup" not in main[: main.index("for (int block")]
    product = main[main.index("        for (int d = 0;") : main.index("        s0_0 = s0_0 * 0.5;")]
    assert "s5_0 += " in product
    assert main.count("F32x4") == 0, "vectors are read and written by pairs"


def test_the_tallest_tiles_that_leave_enough_subgroups_come_first() -> None:
    def rows(batch: int, rows: int, head: int) -> list[int]:
        query = input_node("q", TensorType((batch, rows, head), float32))
        shapes = broadcast_shapes(CPU_DRIVER, Problem((batch,), rows, 64, False), [Stage(query)])
        return [shape.rows for shape in shapes]

    assert rows(4, 512, 64) == [32, 16, 8]
    assert rows(4, 512, 128) == [16, 32, 8]
    assert rows(3, 40, 64) == [16, 32, 8]
    assert rows(1, 20, 64) == [8, 32, 16]
    assert rows(8, 3, 64) == [4]
    assert rows(8, 1, 64) == [1]


@pytest.mark.parametrize("head", [64, 80, 256])
def test_tuning_tries_the_tiles_whose_lines_suit_the_heads(head: int) -> None:
    query = input_node("q", TensorType((2, 512, head), float32))
    attrs = dict(scale=1.0, fill=-inf, lowest=-511, highest=511, biased=False, masked=False, empty=False)
    graph = graph_of((query,), (make_node("attention", (query, query, query), attrs),))
    (step,) = schedule(graph).steps
    stages = choose.stages_of({node.op: node for node in step.kernel.graph.outputs})
    shapes = schedules_of(step.kernel, GENERIC_GPU)
    assert shapes[0] == choose_workgroup_shape(GENERIC_GPU, Problem((2,), 512, 512, False), stages)
    assert len(set(shapes)) == len(shapes) > 4
    assert all(fitted(shape, GENERIC_GPU, stages) == shape for shape in shapes)
