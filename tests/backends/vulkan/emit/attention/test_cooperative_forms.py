"""Attention by matrices in the forms of long sequences: choice, shaders and values."""
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


def test_gradients_of_long_sequences_have_two_rows_of_matrices_a_subgroup() -> None:
    """Workgroups of 128 rows, of two heads: 20 are five for two of eight processors."""
    assert forms(1280, 64) == [(4, 32, 1, 1, 0), (4, 32, 2, 2, 0), (4, 32, 1, 2, 2)]
    assert forms(1152, 64) == [(4, 32, 1, 1, 0), *[(4, 32, 2, 1, 0)] * 2]


def test_gradients_of_heads_of_128_have_twice_the_subgroups() -> None:
    assert forms(1536, 128) == [(4, 32, 1, 1, 0), (8, 32, 1, 1, 0), (8, 32, 1, 1, 0)]
    assert forms(1152, 128) == [(4, 32, 1, 1, 0)] * 3


def test_tiles_that_pass_through_shared_memory_stay_flat() -> None:
    assert forms(1536, 64, converts_matrices=False) == [(4, 32, 1, 1, 0), (4, 32, 2, 1, 0), (4, 32, 2, 1, 0)]


def test_a_matrix_of_columns_serves_each_row_of_matrices() -> None:
    graph = gradients_of(lnp.bfloat16, 1536, 1536, 64, True)
    sources = sources_with_matrices(graph, with_profile(CONVERTING))
    for source in sources[1:]:
        loop = source[source.index("for (int block") :]
        loop = loop[: loop.index("\n    }\n")]
        lines = [line.strip() for line in loop.splitlines()]
        loads = [number for number, line in enumerate(lines) if "MatrixUseB" in line]
        assert loads and loop.count("coopMatMulAdd") == 2 * len(loads)
        assert all("coopMatMulAdd" in line for number in loads for line in lines[number + 2 : number + 4])
        # Two rows of two operands, in four steps, where they stay in shared memory.
        of_rows = [line for line in lines if "MatrixUseA>" in line and "=" not in line]
        assert len(of_rows) == (16 if "attention_key_gradient" in source else 0)


def test_places_are_loaded_only_in_tiles_that_have_something_hidden() -> None:
    """Keys' gradients of long heads have no registers for them; a bias or mask needs them in every tile."""
    device = with_profile(CONVERTING)
    graph = gradients_of(lnp.bfloat16, 1536, 1536, 128, True)
    before, loop = sources_with_matrices(graph, device)[2].split("for (int block")
    assert "ahead" not in before and loop.index("ahead[e] = over[e] - down[e]") < loop.index("ahead[e] >=")
    graph = gradients_of(lnp.bfloat16, 1536, 1536, 128, True, is_biased=True)
    before, loop = sources_with_matrices(graph, device)[2].split("for (int block")
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
    monkeypatch.setattr(cooperative_shape, "_FORMS", {kind: Forms(*4 * [form]) for kind, form in chosen.items()})
    graph = gradients_of("bfloat16", queries, keys, 8, is_causal, is_biased=is_biased)
    assert [(shape.down, shape.rows_kept) for shape in schedules(graph, emulating)] == [(2, 0), (2, 0), (2, 2)]
    arrays = [node.dtype.rounded(RANDOM.standard_normal(node.shape, np.float32)) for node in graph.inputs]
    _agree(graph, arrays, emulating, 2.0**-8)
