"""Rows that share a vector, as of weights times a hidden state: two of them are one row group's, and words are runs."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.emit.reduce import choose_gpu
from lavax.backends.vulkan.emit.reduce.choose import choose_schedule
from lavax.backends.vulkan.emit.reduce.choose_gpu import candidates_on_gpu
from lavax.backends.vulkan.emit.reduce.neighbours import NeighbourRows
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.nn.modules.quantized import QuantizedMatrix
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.emit.emission import main_of
from tests.backends.vulkan.run.execution import run_as_gpu

RANDOM = np.random.default_rng(5)
TARGET = target_of(GENERIC_GPU, 1 << 34, 1 << 31)


def _graph(function: Any, *arguments: Any) -> Graph:
    return simplify(inline_calls(lx.trace(function)(*arguments)))


def _row_kernels(graph: Graph) -> list[Kernel]:
    program = schedule(prepare(graph, TARGET), target=TARGET)
    return [step.kernel for step in steps_of(program.steps) if step.kernel.kind == "row"]


def _schedules(graph: Graph) -> list[NeighbourRows]:
    found = [choose_schedule(kernel, GENERIC_GPU, lifted=False) for kernel in _row_kernels(graph)]
    return [each for each in found if isinstance(each, NeighbourRows)]


def _normal(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype("f")


def _gated(x: Any, weight: Any, gate: Any, up: Any) -> Any:
    """What a gated layer reads: a norm, which all rows compute, and two sums for each row."""
    normed = x * lnp.reciprocal(lnp.sqrt(lnp.mean(x * x) + 1e-5)) * weight
    return nn.silu(gate @ normed) * (up @ normed)


def _quantized(rows: int, columns: int, kind: str) -> QuantizedMatrix:
    return QuantizedMatrix.of(_normal(rows, columns), kind)


def _without_common_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that share a norm have workgroups that compute it once (test_common_vectors.py), which these are not."""
    limits = replace(choose_gpu.COMMON_VECTORS, nbytes=0)
    monkeypatch.setattr(choose_gpu, "COMMON_VECTORS", limits)


@pytest.fixture
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose_gpu, "TOGETHER", choose_gpu.RowsTogether(busy=1))
    _without_common_vectors(monkeypatch)


def test_rows_of_weights_share_a_row_group_if_enough_are_left() -> None:
    shapes = {rows: _graph(lambda w, x: w @ x, _normal(rows, 1024), _normal(1024)) for rows in (128, 1023, 1024)}
    assert {rows: [each.together for each in _schedules(graph)] for rows, graph in shapes.items()} == {
        128: [1], 1023: [1], 1024: [2]
    }


def test_rows_with_little_in_common_stay_apart() -> None:
    """A layer norm's gradient reads two rows for one vector of weights; a softmax reads nothing in common."""
    x, y, weight = _normal(8192, 1024), _normal(8192, 1024), _normal(1024)
    for function, arguments in (
        (lambda x, y, w: lnp.sum(x * y * w, axis=1) + lnp.max(x, axis=1), (x, y, weight)),
        (lambda x: lnp.max(x, axis=1), (x,)),
    ):
        assert [each.together for each in _schedules(_graph(function, *arguments))] == [1]


@pytest.mark.parametrize(("rows", "columns"), [(64, 1024), (6, 512), (12, 4096), (10, 576)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.usefixtures("few_are_enough")
def test_results_of_rows_together(rows: int, columns: int, dtype: str) -> None:
    x, weight = _normal(columns), _normal(columns)
    gate, up = (lnp.asarray(_normal(rows, columns) / columns**0.5).astype(dtype) for _ in range(2))
    graph = _graph(lambda x, w, g, u: _gated(x, w, g.astype("float32"), u.astype("float32")), x, weight, gate, up)
    assert [each.together for each in _schedules(graph)].count(2) >= 1
    arrays = [np.asarray(each) for each in (x, weight, gate, up)]
    for got, want in zip(run_as_gpu(graph, arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


@pytest.mark.usefixtures("few_are_enough")
def test_invocations_with_a_row_each_have_no_second_one() -> None:
    graph = _graph(lambda w, x: lnp.max(w * x, axis=1), _normal(6, 4), _normal(4))
    assert [(each.members, each.together) for each in _schedules(graph)] == [(1, 1)]
    arrays = [_normal(6, 4), _normal(4)]
    np.testing.assert_allclose(run_as_gpu(graph, arrays)[0], interpret(graph, *arrays)[0], rtol=1e-6)


@pytest.mark.parametrize("kind", ["int8", "int4"])
@pytest.mark.parametrize(("rows", "columns", "run"), [(1024, 2048, 4), (2048, 1024, 4), (10, 576, 1)])
@pytest.mark.usefixtures("few_are_enough")
def test_results_of_integers_in_words(kind: str, rows: int, columns: int, run: int) -> None:
    """The words of four neighbouring vectors are one load where they fill a row group."""
    matrix, x = _quantized(rows, columns, kind), _normal(columns)
    graph = _graph(lambda matrix, x: matrix.product(x), matrix, x)
    (found,) = [each for each in _schedules(graph) if each.is_shared]
    assert (found.together, found.run) == (2, run)
    arrays = [np.asarray(leaf) for leaf in lx.tree.leaves((matrix, x))]
    want = np.asarray(matrix.dequantized(), np.float64) @ x.astype(np.float64)
    (got,) = run_as_gpu(graph, arrays)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6 * columns**0.5)


@pytest.mark.parametrize("rows", [1024, 2048])
@pytest.mark.parametrize("kind", ["int8", "int4", "bfloat16"])
def test_schedules_that_tuning_tries_have_whole_runs(kind: str, rows: int) -> None:
    """A loop that steps by no run does not end, and a part of a run that is not written out is not added."""
    x = _normal(2048)
    if kind == "bfloat16":
        weights = lnp.asarray(_normal(rows, 2048)).astype(kind)
        graph = _graph(lambda weights, x: weights.astype("float32") @ x, weights, x)
    else:
        graph = _graph(lambda matrix, x: matrix.product(x), _quantized(rows, 2048, kind), x)
    (kernel,) = [each for each in _row_kernels(graph) if choose_schedule(each, GENERIC_GPU, lifted=False).is_shared]
    tried = candidates_on_gpu(kernel, GENERIC_GPU)
    assert {each.run for each in tried} == {2 if kind == "bfloat16" else 4} and len(tried) > 3
    for each in tried:
        assert each.unrolled >= each.run and each.unrolled % each.run == 0
        assert each.loop or each.unrolled * each.members >= each.steps(2048)


def _main(graph: Graph) -> str:
    """What the shader of the first kernel of rows does."""
    program = schedule(prepare(graph, TARGET), target=TARGET)
    number = [step.kernel.kind for step in steps_of(program.steps)].index("row")
    return main_of(emit_program(program, GENERIC_GPU).dispatches[number])


@pytest.mark.usefixtures("few_are_enough")
def test_the_shader_of_rows_together() -> None:
    """Two rows have accumulators of their own, and the vector is read once, and its square summed once."""
    arguments = _normal(128), _normal(128), _normal(64, 128), _normal(64, 128)
    text = _main(_graph(_gated, *arguments))
    assert "int row = i / 32 * 2;" in text and "int row1 = row + 1;" in text
    assert text.count(".data[k0];") == 2  # the vector and the norm's weights
    assert text.count(".data[(k0 + row") == 4
    assert text.count("subgroupShuffleXor") == 5 * (4 + 1)  # two sums for each row, and one for both, over 32 lanes


@pytest.mark.usefixtures("few_are_enough")
def test_the_shader_of_integers_in_words() -> None:
    """A load of four words and one scale serve sixteen elements of a row."""
    text = _main(_graph(lambda matrix, x: matrix.product(x), _quantized(2048, 1024, "int8"), _normal(1024)))
    start = text.index("int k0 = lane_of_row;")
    assert text[start : text.index("    uvec4 v16")].rstrip() == dedent("""\
        int k0 = lane_of_row;
            uvec4 v3 = U32x4(p0).data[(k0 + row * 64)];
            int v4 = int(v3.x);
            ivec4 v5 = ivec4((ivec4(0) + ivec4(0, 1, 2, 3)));
            ivec4 v6 = (v5 * ivec4(8));
            ivec4 v7 = (ivec4(24) - v6);
            ivec4 v8 = ivec4(lx_shift_left(uvec4(ivec4(v4)), uvec4(v7)));
            ivec4 v9 = ivec4(lx_shift_right_arithmetic(ivec4(v8), uvec4(ivec4(24))));
            vec4 v10 = vec4(v9);
            int v11 = int(uint(k0) / uint(4));
            float v12 = F32(p1).data[(v11 + row * 16)];
            vec4 v13 = (v10 * vec4(v12));
            vec4 v14 = F32x4(p2).data[(k0 * 4)];
            vec4 v15 = (v13 * v14);
            v1 = (v1 + v15);""")
    assert text.count("U32x4(p0)") == 2 and text.count("F32(p1)") == 2


def _rounded_norm(x: Any, weight: Any, gate: Any, up: Any) -> Any:
    """The same with a norm that is rounded before it is multiplied, so that its factor is needed for each element."""
    normed = (x * lnp.reciprocal(lnp.sqrt(lnp.mean(x * x) + 1e-5))).astype("bfloat16").astype("float32") * weight
    return nn.silu(gate @ normed) * (up @ normed)


def test_what_all_rows_multiply_by_is_read_before_members_wait_for_the_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_common_vectors(monkeypatch)
    graph = _graph(_rounded_norm, *(_normal(*shape) for shape in ((256,), (256,), (64, 256), (64, 256))))
    program = schedule(prepare(graph, TARGET), target=TARGET)
    (dispatch,) = emit_program(program, GENERIC_GPU).dispatches
    source = main_of(dispatch)
    before = source[: source.index("barrier();")]
    loads = [f"(p{number}).data" for number in range(4)]
    assert all(source.count(load) == before.count(load) > 0 for load in loads)
