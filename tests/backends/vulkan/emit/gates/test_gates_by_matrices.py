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
from lavax.backends.vulkan.emit.gates import choose
from lavax.backends.vulkan.emit.gates.choose import (
    GATE_PRODUCTS,
    MatrixGateTile,
    are_gates,
    matrix_tile_of,
    sum_of_products,
)
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import MatrixShape
from lavax.ir import Node, interpret, parse
from tests.backends.vulkan.emit.gates.test_gates import (
    LARGE_GPU,
    case,
    gradient_of,
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


@pytest.mark.parametrize("function", [lstm, gru])
def test_matrices_of_fewer_columns_have_room_for_the_sums_of_both(function: Callable[..., Any]) -> None:
    """Two of them have more rows of sums than there were staged lines."""
    narrow = tuple(MatrixShape(dtype, 8, 8, 16) for dtype in ("bf16", "f16"))
    _, arguments = case(function, 18, 64, 4 if function is lstm else 3, turns=1)
    given = tuple(np.asarray(x).astype(np.float16) for x in arguments)
    graph = graph_of(function, given)
    profile = replace(WITH_MATRICES, matrices=narrow)
    sources = [each.shader.source for each in emit_program(program_of(graph, profile), profile).dispatches]
    assert any("sum0_1" in source for source in sources)
    results = run(graph, given, device=backend_with(kind="gpu", matrices=narrow))
    for found, right in zip(results, interpret(graph, *given), strict=True):
        np.testing.assert_allclose(found.astype("f"), right.astype("f"), rtol=0, atol=0.01)


@pytest.mark.parametrize("shape", [(16, 16, 16), (8, 8, 16), (16, 8, 8), (32, 8, 16), (16, 32, 16), (8, 16, 16)])
@pytest.mark.parametrize("is_sum", [False, True])
def test_sums_have_rows_of_their_own(shape: tuple[int, int, int], is_sum: bool) -> None:
    profile = replace(WITH_MATRICES, matrices=(MatrixShape("bf16", *shape),))
    texts = [SUM.format(m=m, k=512, left="%0", right="x") if is_sum else GATES.format(**AS_THEY_ARE | {"m": m})
             for m in (5, 17, 32, 256)]  # fmt: skip
    for tile in (matrix_tile_of(_products(text), is_sum, profile) for text in texts):
        assert tile is not None
        assert 4 * tile.line_of_sums >= tile.shape.n
        assert tile.across * tile.rows * tile.line_of_sums <= tile.staged
        assert 16 * tile.staged * tile.slices <= profile.shared_memory_bytes


@pytest.mark.parametrize(("function", "dtype"), [(lstm, "bf16"), (gru, "f16")])
def test_gradients_multiply_the_sum_of_their_products_by_matrices(function: Callable[..., Any], dtype: str) -> None:
    """Gates' gradients have a left factor each, and one matrix holds the sum of their products."""
    _, arguments = case(function, 18, 64, 4 if function is lstm else 3, turns=2)
    given = tuple(lnp.asarray(x).astype(DTYPES[dtype]) for x in arguments)
    graph = graph_of(gradient_of(function), given)
    plan = emit_program(program_of(graph, WITH_MATRICES), WITH_MATRICES)
    (turn,) = {each.shader.source for each in plan.dispatches if ".turns.body." in each.name}
    assert "coopMatMulAdd" in turn and "sum1" not in turn
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
    tile = matrix_tile_of(_products(GATES.format(**AS_THEY_ARE)), False, WITH_MATRICES)
    assert tile == MatrixGateTile(32, 4, 8, 2, 32, MATRICES[0])
    assert tile.threads == 256
    few = matrix_tile_of(_products(GATES.format(**AS_THEY_ARE | {"m": 5, "k": 96})), False, WITH_MATRICES)
    assert few is not None
    assert (few.rows, few.slices, few.steps) == (16, 3, 1)


@pytest.mark.parametrize("change", [{"second": "g"}, {"precision": ""}, {"k": 80}, {"k": 32 * 521}], ids=str)
def test_other_gates_are_not(change: dict[str, Any]) -> None:
    assert matrix_tile_of(_products(GATES.format(**AS_THEY_ARE | change)), False, WITH_MATRICES) is None


def test_large_cells_have_two_matrices_across_and_a_kernel_beside_others_larger_tiles() -> None:
    dots = _products(GATES.format(**AS_THEY_ARE | {"m": 256}))
    wide = matrix_tile_of(dots, False, WITH_MATRICES)
    assert wide == MatrixGateTile(32, 16, 8, 2, 32, MATRICES[0], across=2)
    assert wide.lines == 32 and 16 * wide.staged * wide.slices <= WITH_MATRICES.shared_memory_bytes
    few = _products(GATES.format(**AS_THEY_ARE))
    columns = [tile.columns for beside in (1, 2, 4) if (tile := matrix_tile_of(few, False, WITH_MATRICES, beside))]
    assert columns == [4, 8, 16]
    sums = [(m, beside, _sum_tile(m, beside)) for m, beside in ((32, 1), (32, 2), (256, 1), (256, 2))]
    assert sums == [(32, 1, (16, 8)), (32, 2, (16, 16)), (256, 1, (32, 16)), (256, 2, (32, 16))]


def test_long_sums_have_tiles_of_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is one for each processor; others have two for each, or half the rows."""
    monkeypatch.setattr(choose, "GATE_PRODUCTS", replace(GATE_PRODUCTS, long_sum=3 * 1024))
    rows = WITH_MATRICES.processors  # 32 columns of tiles
    assert [_sum_tile(rows, 1, k) for k in (768, 1024)] == [(16, 16), (32, 16)]


def test_tiles_are_as_many_as_a_device_says_it_has_processors() -> None:
    dots = _products(GATES.format(**AS_THEY_ARE))
    tiles = [matrix_tile_of(dots, False, replace(WITH_MATRICES, told_processors=told)) for told in (None, 60, 16)]
    assert [tile.columns for tile in tiles if tile is not None] == [4, 8, 16]


@pytest.mark.parametrize(("told", "expected"), [(None, True), (32, True), (31, False)])
def test_large_products_have_two_tiles_for_each_processor(told: int | None, expected: bool) -> None:
    product = "%0 = dot(h, w) contract=[1]x[1] : bf16[64,1024]"
    (dot,) = _products(f"graph (h: bf16[64,1024], w: bf16[1024,1024]) {{\n  {product}\n  return %0\n}}")
    assert are_gates(dot, replace(WITH_MATRICES, told_processors=told)) is expected


def _sum_tile(m: int, beside: int, k: int = 512) -> tuple[int, int]:
    tile = matrix_tile_of(_products(SUM.format(m=m, k=k, left="%0", right="x")), True, WITH_MATRICES, beside)
    assert tile is not None
    return tile.rows, tile.columns


def test_one_product_is_by_matrices_if_it_is_large() -> None:
    large = _products(GATES.format(**AS_THEY_ARE | {"m": 160}))
    assert matrix_tile_of(large[:1], False, WITH_MATRICES) == MatrixGateTile(32, 16, 8, 2, 32, MATRICES[0])


@pytest.mark.parametrize(("right", "expected"), [("w", True), ("%0", False)])
def test_a_large_product_has_a_factor_that_a_loop_keeps_in_order(right: str, expected: bool) -> None:
    product = f"%0 = tanh(w) : bf16[1024,1024]\n  %1 = dot(h, {right}) contract=[1]x[1] : bf16[64,1024]"
    graph = f"graph (h: bf16[64,1024], w: bf16[1024,1024]) {{\n  {product}\n  return %0, %1\n}}"
    (dot,) = _products(graph)
    assert are_gates(dot, WITH_MATRICES) is expected


def test_one_product_and_devices_without_matrices_have_sums_in_registers() -> None:
    dots = _products(GATES.format(**AS_THEY_ARE))
    assert matrix_tile_of(dots[:1], False, WITH_MATRICES) is None
    assert matrix_tile_of(dots, False, LARGE_GPU) is None


SUM = """
    graph (a: f32[{m},{k}], b: f32[{m},{k}], c: f32[{m},{k}], w: f32[512,{k}], x: f32[{m},512]) {{
      %0 = dot(a, w) contract=[1]x[1] precision="bf16" : f32[{m},512]
      %1 = dot(b, w) contract=[1]x[1] precision="bf16" : f32[{m},512]
      %2 = dot(c, w) contract=[1]x[1] precision="bf16" : f32[{m},512]
      %3 = add({left}, %1) : f32[{m},512]
      %4 = add(%2, %3) : f32[{m},512]
      %5 = multiply(%4, {right}) : f32[{m},512]
      return %5
    }}
"""


def test_products_of_which_only_the_sum_is_read_are_one_product() -> None:
    graph = parse(SUM.format(m=32, k=512, left="%0", right="x"))
    total = sum_of_products(graph)
    assert total is graph.nodes[4]
    tile = matrix_tile_of(_products(SUM.format(m=32, k=512, left="%0", right="x")), True, WITH_MATRICES)
    assert tile == MatrixGateTile(16, 8, 8, 2, 32, MATRICES[0], sums=3)
    many = matrix_tile_of(_products(SUM.format(m=64, k=512, left="%0", right="x")), True, WITH_MATRICES)
    assert many == replace(tile, columns=16)
    # A longer sum than is written out.
    assert matrix_tile_of(_products(SUM.format(m=32, k=2048, left="%0", right="x")), True, WITH_MATRICES) is None


@pytest.mark.parametrize("change", [{"left": "x"}, {"right": "%1"}], ids=str)
def test_products_that_something_else_reads_are_apart(change: dict[str, str]) -> None:
    assert sum_of_products(parse(SUM.format(**{"m": 32, "k": 512, "left": "%0", "right": "x"} | change))) is None


@pytest.mark.parametrize(
    ("m", "n", "k", "by_matrices", "by_numbers"),
    [
        (128, 512, 512, True, True),
        (256, 256, 1024, True, False),
        (256, 256, 768, True, False),
        (256, 512, 2048, True, False),
        (256, 1024, 256, True, False),
        (256, 512, 512, True, False),
        (256, 1024, 4096, False, False),
        (256, 4096, 1024, False, False),
        (64, 4096, 1024, True, False),
        (256, 1024, 1024, False, False),
        (256, 2048, 512, False, False),  # many results
    ],
)
def test_sums_of_several_gates_by_matrices_have_as_many_more_products(
    m: int, n: int, k: int, by_matrices: bool, by_numbers: bool
) -> None:
    for dtype, profile, expected in (
        ("bf16", WITH_MATRICES, by_matrices), ("f32", WITH_MATRICES, by_numbers), ("bf16", LARGE_GPU, by_numbers),
    ):  # fmt: skip
        inputs = f"h: {dtype}[{m},{k}], w: {dtype}[{n},{k}]"
        product = f"%0 = dot(h, w) contract=[1]x[1] : {dtype}[{m},{n}]"
        (dot,) = _products(f"graph ({inputs}) {{\n  {product}\n  return %0\n}}")
        assert are_gates(dot, profile) is expected
