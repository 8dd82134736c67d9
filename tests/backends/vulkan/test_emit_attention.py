"""The text of kernels of attention for GPUs."""
from __future__ import annotations

from textwrap import dedent

import pytest

from lavax.backends.vulkan.emit import attention as emitter
from lavax.backends.vulkan.emit.attention_shape import Shape, choose_shape, fitted
from lavax.backends.vulkan.emit.attention_tiles import Problem
from lavax.backends.vulkan.profile import GENERIC_GPU
from lavax.ir import parse
from tests.backends.vulkan.emission import dispatch_of, main_of

PLAIN = "fill=-inf biased=false masked=false empty=false"
CAUSAL = f"""
    graph (q: f32[2,32,4], k: f32[2,64,4], v: f32[2,64,4]) {{
      %0 = attention(q, k, v) scale=0.5 lowest=-63 highest=0 {PLAIN} : f32[2,32,4]
      return %0
    }}
"""


def _main(monkeypatch: pytest.MonkeyPatch) -> str:
    shape = Shape(4, 8, 4, 1, depth=4, share=32, chunk=32)
    monkeypatch.setattr(emitter, "choose_shape", lambda profile, problem, stages: fitted(shape, profile, stages))
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
                vec4 v10 = F32x4(p2).data[(v4 * 64 + v9)];
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


def _shape(batch: int, positions: int, head: int) -> Shape | None:
    type = f"f32[{batch},{positions},{head}]"
    graph = parse(
        f"graph (q: {type}, k: {type}, v: {type}) {{\n"
        f"  %0 = attention(q, k, v) scale=1 lowest={1 - positions} highest={positions - 1} {PLAIN} : {type}\n"
        "  return %0\n}"
    )
    stages = emitter.stages_of({"attention": graph.outputs[0]})
    return choose_shape(GENERIC_GPU, Problem((batch,), positions, positions, by_keys=False), stages)


def test_lines_grow_with_heads_and_tiles_with_the_work() -> None:
    large = {head: _shape(64, 1024, head) for head in (32, 64, 128, 256)}
    assert {head: shape and shape.across for head, shape in large.items()} == {32: 8, 64: 16, 128: 16, 256: 32}
    small, middle = _shape(1, 64, 64), large[64]
    assert small is not None and middle is not None and small.rows < middle.rows
    assert _shape(1, 64, 300) is None
