"""Gates of a cell by cooperative matrices, written out in plain GLSL: against the interpreter, and their tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax.numpy as lnp
from lavax.backends.vulkan.compile import pipelines
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.gates.choose import MatrixGateTile, matrix_tile_of
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import MatrixShape
from lavax.ir import Node, interpret, parse
from tests.backends.vulkan.emit.gates.test_gates import (
    LARGE_GPU,
    case,
    graph_of,
    gru,
    lstm,
    program_of,
)
from tests.backends.vulkan.emit.matrix_emulation import emulated
from tests.backends.vulkan.run.execution import backend, backend_with, run

MATRICES = tuple(MatrixShape(dtype, 16, 16, 16) for dtype in ("bf16", "f16"))
WITH_MATRICES = replace(LARGE_GPU, matrices=MATRICES, memory_model=True)
DTYPES = {"bf16": lnp.bfloat16, "f16": np.float16}
CELLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "lstm": case(lstm, 5, 64, 4, turns=1),
    "gru": case(gru, 6, 64, 3, turns=1),
}


@pytest.fixture(autouse=True)
def _emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small loops are one dispatch otherwise."""
    monkeypatch.setattr("lavax.backends.vulkan.target.slices_of", lambda scan, profile: 0)
    lanes = backend().profile.subgroup_size
    monkeypatch.setattr(pipelines, "compile_glsl", lambda source: compile_glsl(emulated(source, lanes)))


@pytest.mark.parametrize(("name", "dtype"), [("lstm", "bf16"), ("gru", "f16")])
def test_cells_by_matrices_compute_what_the_interpreter_does(name: str, dtype: str) -> None:
    function, arguments = CELLS[name]
    given = tuple(lnp.asarray(x).astype(DTYPES[dtype]) for x in arguments)
    graph = graph_of(function, given)
    sources = [each.shader.source for each in emit_program(program_of(graph, WITH_MATRICES), WITH_MATRICES).dispatches]
    assert any("coopMatMulAdd" in source and "subgroupBarrier" in source for source in sources)
    results = run(graph, [np.asarray(x) for x in given], device=backend_with(kind="gpu", matrices=MATRICES))
    for found, right in zip(results, interpret(graph, *map(np.asarray, given)), strict=True):
        scale = max(1.0, float(np.max(np.abs(right.astype("f")))))
        np.testing.assert_allclose(found.astype("f"), right.astype("f"), rtol=0, atol=0.06 * scale)


def _products(text: str) -> list[Node]:
    return [node for node in parse(text).nodes if node.op == "dot"]


GATES = """
    graph (h: f32[{m},{k}], g: f32[{m},{k}], w: f32[512,{k}], u: f32[512,{k}]) {{
      %0 = dot(h, w) contract=[1]x[1]{precision} : f32[{m},512]
      %1 = dot({second}, u) contract=[1]x[1]{precision} : f32[{m},512]
      return %0, %1
    }}
"""
AS_THEY_ARE = {"m": 32, "k": 512, "second": "h", "precision": ' precision="bf16"'}


def test_gates_that_share_a_left_factor_are_multiplied_by_matrices() -> None:
    tile = matrix_tile_of(_products(GATES.format(**AS_THEY_ARE)), WITH_MATRICES)
    assert tile == MatrixGateTile(32, 4, 8, 2, 32, MATRICES[0])
    assert tile.threads == 256
    few = matrix_tile_of(_products(GATES.format(**AS_THEY_ARE | {"m": 5, "k": 96})), WITH_MATRICES)
    assert few is not None
    assert (few.rows, few.slices, few.steps) == (16, 3, 1)


@pytest.mark.parametrize("change", [{"second": "g"}, {"precision": ""}, {"k": 80}, {"k": 32 * 521}], ids=str)
def test_other_gates_are_not(change: dict[str, Any]) -> None:
    assert matrix_tile_of(_products(GATES.format(**AS_THEY_ARE | change)), WITH_MATRICES) is None


def test_one_product_and_devices_without_matrices_have_sums_in_registers() -> None:
    dots = _products(GATES.format(**AS_THEY_ARE))
    assert matrix_tile_of(dots[:1], WITH_MATRICES) is None
    assert matrix_tile_of(dots, LARGE_GPU) is None
