"""Attention by matrices where a subgroup has several rows of them, or peaks do not grow: choice, shaders and values."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax.numpy as lnp
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.emit.attention import cooperative_shape
from lavax.backends.vulkan.emit.attention.cooperative_shape import Form, Forms
from lavax.ir import interpret
from lavax.ir.graph import graph_of
from tests.backends.vulkan.emit.attention.test_cooperative_attention import (
    RANDOM,
    SQUARE,
    WITH_MATRICES,
    emulating,
    gradients_of,
    schedules,
    sources_with_matrices,
    with_profile,
)
from tests.backends.vulkan.run.execution import run

__all__ = ["emulating"]  # a fixture
CONVERTING = replace(WITH_MATRICES, converts_matrices=True, shared_memory_bytes=48 << 10, told_processors=8)


def forms(length: int, head: int, **changes: Any) -> list[tuple[int, int, int, int, int]]:
    """Subgroups, columns, buffers, rows of matrices and operands that stay of results, queries' and keys' gradients."""
    device = with_profile(replace(CONVERTING, **changes))
    found = schedules(gradients_of(lnp.bfloat16, length, length, head, True), device)
    return [(shape.subgroups, shape.columns, shape.buffers, shape.down, shape.rows_kept) for shape in found]


def test_long_sequences_have_two_rows_of_matrices_a_subgroup() -> None:
    """Workgroups of 128 rows, of two heads: 24 are three for each of eight processors, and 20 are five for two."""
    tall, flat = [(4, 32, 2, 2, 0), (4, 32, 1, 2, 2)], [(4, 32, 2, 1, 0)] * 2
    assert forms(1536, 64) == [(4, 32, 2, 2, 0), *tall]
    assert forms(1408, 64) == forms(1280, 64) == [(4, 32, 2, 1, 0), *tall]
    assert forms(1152, 64) == forms(640, 64) == [(4, 32, 2, 1, 0), *flat]


def test_few_workgroups_have_blocks_of_64_columns() -> None:
    """Of 64 rows: 18 of two heads are fewer than five for two processors, and 20 are as many."""
    assert [forms(length, 64)[0] for length in (576, 640)] == [(4, 64, 1, 1, 0), (4, 32, 2, 1, 0)]


def test_heads_of_128_have_twice_the_subgroups() -> None:
    assert forms(1536, 128) == [(8, 32, 2, 1, 0), (8, 32, 1, 1, 0), (8, 32, 1, 1, 0)]
    assert forms(1152, 128) == [(4, 32, 1, 1, 0)] * 3


def test_tiles_that_pass_through_shared_memory_stay_flat() -> None:
    assert forms(1536, 64, converts_matrices=False) == [(4, 32, 1, 1, 0), (4, 32, 2, 1, 0), (4, 32, 2, 1, 0)]


def test_a_matrix_of_columns_serves_each_row_of_matrices() -> None:
    graph = gradients_of(lnp.bfloat16, 1536, 1536, 64, True)
    sources = sources_with_matrices(graph, with_profile(CONVERTING))
    for source in sources:
        loop = source[source.index("for (int block") :]
        loop = loop[: loop.index("\n    }\n")]
        lines = [line.strip() for line in loop.splitlines() if ", ones, total" not in line]
        loads = [number for number, line in enumerate(lines) if "MatrixUseB" in line]
        assert loads and sum("coopMatMulAdd" in line for line in lines) == 2 * len(loads)
        assert all("coopMatMulAdd" in line for number in loads for line in lines[number + 2 : number + 4])
        # Two rows of two operands, in four steps, where they stay in shared memory.
        of_rows = [line for line in lines if "MatrixUseA>" in line and "=" not in line]
        assert len(of_rows) == (16 if "attention_key_gradient" in source else 0)


def test_sums_are_scaled_only_where_peaks_grow() -> None:
    source = sources_with_matrices(gradients_of(lnp.bfloat16, 512, 512, 64, True), with_profile(CONVERTING))[0]
    assert """
        float above = 0.0;
        [[unroll]] for (int e = 0; e < peak.length(); ++e) {
            above = max(above, max(max(s0[e], s1[e]), max(s2[e], s3[e])) - peak[e]);
        }
        if (subgroupBallot(above > 38.816242) != uvec4(0u)) {
""" in source
    assert """
                total[e] = total[e] * scale[e];
            }
            attention0 = attention0 * scale;
            attention1 = attention1 * scale;
            attention2 = attention2 * scale;
            attention3 = attention3 * scale;
        }
        [[unroll]] for (int e = 0; e < s0.length(); ++e) {
            s0[e] = exp2(0.18033688 * (s0[e] - peak[e]));
        }
""" in source
    assert source.count(", ones, total);") == 2 * 4  # in blocks that hide nothing, and in the others


def test_peaks_follow_every_block_where_subgroups_have_no_ballots() -> None:
    device = with_profile(replace(CONVERTING, subgroup_ballot=False))
    sources = sources_with_matrices(gradients_of(lnp.bfloat16, 512, 512, 64, True), device)
    assert len(sources) == 3 and not any("above" in source for source in sources)
    assert "peak[e] = higher[e];" in sources[0]


def test_places_are_loaded_only_in_tiles_that_have_something_hidden() -> None:
    """Two rows of matrices leave the forward kernel no registers for them; a bias or mask needs them in every tile."""
    device = with_profile(CONVERTING)
    source = sources_with_matrices(gradients_of(lnp.bfloat16, 1536, 1536, 64, True), device)[0]
    *before, loop = source.split("for (int block")
    assert not any("ahead" in part for part in before)
    assert loop.index("ahead[e] = over[e] - down[e]") < loop.index("ahead[e] <=")
    biased = sources_with_matrices(gradients_of(lnp.bfloat16, 1536, 1536, 64, True, is_biased=True), device)[0]
    before, loop = biased.split("for (int block")
    assert "ahead[e] = over[e] - down[e]" in before and "ahead[e] = over[e]" not in loop


def _agree(graph: Any, arrays: list[np.ndarray], device: VulkanBackend, unit: float) -> None:
    exact = interpret(graph, *arrays, dtype=np.float64)
    for got, want in zip(run(graph, arrays, device=device), exact, strict=True):
        assert np.abs(np.asarray(got, np.float64) - want).max() <= 3 * unit * np.abs(want).max()


@pytest.mark.parametrize("emulating", [(SQUARE, True)], indirect=True)
@pytest.mark.parametrize("queries, keys, is_causal, is_biased", [(37, 37, True, False), (9, 21, False, True)])
def test_several_rows_of_matrices_give_attention_and_its_gradients(
    emulating: VulkanBackend,
    monkeypatch: pytest.MonkeyPatch,
    queries: int,
    keys: int,
    is_causal: bool,
    is_biased: bool,
) -> None:
    columns = cooperative_shape._SHAPES[0][1]
    tall = Form(2, columns, 2, down=2, loads_places=True)
    kept = Form(2, columns, down=2, keeps_rows=True)
    chosen = {"forward": tall, "query": tall, "keys": kept}
    monkeypatch.setattr(cooperative_shape, "_FORMS", {kind: Forms(1, *4 * [form]) for kind, form in chosen.items()})
    graph = gradients_of("bfloat16", queries, keys, 8, is_causal, is_biased=is_biased)
    assert [(shape.down, shape.rows_kept) for shape in schedules(graph, emulating)] == [(2, 0), (2, 0), (2, 2)]
    arrays = [node.dtype.rounded(RANDOM.standard_normal(node.shape, np.float32)) for node in graph.inputs]
    _agree(graph, arrays, emulating, 2.0**-8)


@pytest.mark.parametrize("emulating", [(SQUARE, True)], indirect=True)
@pytest.mark.parametrize("step", [0.25, 3.0, 60.0])
def test_peaks_that_grow_with_every_key(emulating: VulkanBackend, step: float) -> None:
    """By little, so that most stay, by much, so that sums are scaled in every block, or by more than weights have."""
    graph = gradients_of(lnp.float16, 9, 37, 8, False, scale=1.0)
    arrays = [node.dtype.rounded(RANDOM.standard_normal(node.shape, np.float32)) for node in graph.inputs]
    arrays[0][..., 0] = 1.0
    arrays[1][..., 0] = step * np.arange(37, dtype=np.float32)[:, None]
    arrays[0][..., 1:] *= 0.25
    # The gradient of queries adds up keys of up to `step * 36`, which cancel.
    kept = graph_of(graph.inputs, graph.outputs[:1])
    _agree(kept, arrays, emulating, 2.0**-11)


@pytest.mark.parametrize("emulating", [(SQUARE, True)], indirect=True)
@pytest.mark.parametrize("buffers", [1, 2])
def test_blocks_that_hide_nothing_have_a_loop_of_their_own(
    emulating: VulkanBackend, monkeypatch: pytest.MonkeyPatch, buffers: int
) -> None:
    """Of 45 queries and keys: subgroups' parts of shared memory lie where columns are staged."""
    columns = cooperative_shape._SHAPES[0][1]
    form = Form(2, columns, buffers, down=2, loads_places=True, phases=True, overlaps=True)
    monkeypatch.setitem(cooperative_shape._FORMS, "forward", Forms(0, form, form, form, form))
    graph = gradients_of(lnp.float16, 45, 45, 8, True)
    graph = graph_of(graph.inputs, graph.outputs[:1])
    source, = sources_with_matrices(graph, emulating)
    loops = source.split("for (int block")[1:]
    assert ["ahead" in loop for loop in loops] == [False, True]
    arrays = [node.dtype.rounded(RANDOM.standard_normal(node.shape, np.float32)) for node in graph.inputs]
    _agree(graph, arrays, emulating, 2.0**-11)
