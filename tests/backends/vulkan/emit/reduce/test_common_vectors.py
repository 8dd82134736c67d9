"""Norms of a vector that all rows of a product read: workgroups of a subgroup for each row compute them once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.emit.reduce import choose_gpu
from lavax.backends.vulkan.emit.reduce.choose import choose_schedule
from lavax.backends.vulkan.emit.reduce.common_vectors import CommonVectorRows
from lavax.backends.vulkan.plan.plan import Dispatch
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.nn.modules.quantized import QuantizedMatrix
from lavax.passes.build.inline import inline_calls
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.backends.vulkan.emit.emission import assert_shader, main_of
from tests.backends.vulkan.run.execution import run_as_gpu

RANDOM = np.random.default_rng(8)
TARGET = target_of(GENERIC_GPU, 1 << 34, 1 << 31)


def _graph(function: Any, *arguments: Any) -> Graph:
    return simplify(inline_calls(lx.trace(function)(*arguments)))


def _schedules(graph: Graph) -> list[CommonVectorRows]:
    program = schedule(prepare(graph, TARGET), target=TARGET)
    kernels = [kernel for step in steps_of(program.steps) for kernel in step.kernels if kernel.kind == "row"]
    found = [choose_schedule(kernel, GENERIC_GPU, lifted=False) for kernel in kernels]
    return [each for each in found if isinstance(each, CommonVectorRows)]


def _dispatches(graph: Graph) -> list[Dispatch]:
    return emit_program(schedule(prepare(graph, TARGET), target=TARGET), GENERIC_GPU).dispatches


def _normal(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype("f")


def _whole(*shape: int) -> Any:
    """Few different numbers, so that none of their products with a factor is near the middle of two of 16 bits."""
    return RANDOM.integers(1, 6, shape).astype("f") * RANDOM.choice(np.float32([-1, 1]), shape)


def _scaled(x: Any, weight: Any) -> Any:
    return x * lnp.reciprocal(lnp.sqrt(lnp.mean(x * x) + 1e-5)) * weight


def _rounded(x: Any, weight: Any) -> Any:
    """A norm that is rounded before it is multiplied, so that its factor is needed for each element."""
    scaled = (x * lnp.reciprocal(lnp.sqrt(lnp.mean(x * x) + 1e-5))).astype("bfloat16")
    return (scaled * weight.astype("bfloat16")).astype("float32")


def _centred(x: Any, weight: Any) -> Any:
    """The variance waits for the mean."""
    x = x - lnp.mean(x)
    return (x * lnp.reciprocal(lnp.sqrt(lnp.mean(x * x) + 1e-5))).astype("bfloat16").astype("float32") * weight


def _sixteen_bits(x: Any) -> Any:
    """Float64 numbers rounded to bfloat16, which the interpreter leaves as they are."""
    bits = x.astype("f").view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view("f").astype("d")


def _root(x: Any) -> Any:
    return np.sqrt(np.mean(x * x) + 1e-5)


# What each norm is, in float64.
EXPECTED = {
    _scaled: lambda x, weight: x / _root(x) * weight,
    _rounded: lambda x, weight: _sixteen_bits(_sixteen_bits(x / _root(x)) * weight),
    _centred: lambda x, weight: _sixteen_bits((x - x.mean()) / _root(x - x.mean())) * weight,
}


def _assert_gated(norm: Any, graph: Graph, arrays: list[Any]) -> None:
    """The device's layer is that of float64 numbers."""
    x, weight, gate, up = (each.astype("d") for each in arrays)
    normed = EXPECTED[norm](x, weight)
    opened = gate @ normed
    want = opened / (1 + np.exp(-opened)) * (up @ normed)
    np.testing.assert_allclose(run_as_gpu(graph, arrays)[0], want, rtol=2e-5, atol=1e-5)


def _gated(norm: Any) -> Any:
    def layer(x: Any, weight: Any, gate: Any, up: Any) -> Any:
        normed = norm(x, weight)
        return nn.silu(gate.astype("float32") @ normed) * (up.astype("float32") @ normed)

    return layer


def _arguments(rows: int, columns: int, dtype: str) -> tuple[Any, ...]:
    gate, up = (lnp.asarray(_normal(rows, columns) / columns**0.5).astype(dtype) for _ in range(2))
    return _whole(columns), _whole(columns), gate, up


# Rows that fill no workgroup, vectors shorter than one, rows in loops, and single vectors of four at a row's end.
SHAPES = [(64, 128), (67, 576), (70, 4096)]


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("norm", [_scaled, _rounded])
def test_results(rows: int, columns: int, dtype: str, norm: Any) -> None:
    arguments = _arguments(rows, columns, dtype)
    graph = _graph(_gated(norm), *arguments)
    assert len(_schedules(graph)) == 1
    arrays = [np.asarray(each) for each in arguments]
    _assert_gated(norm, graph, arrays)


def test_results_of_sums_that_wait_for_others() -> None:
    arguments = _arguments(66, 192, "float32")
    graph = _graph(_gated(_centred), *arguments)
    assert len(_schedules(graph)) == 1
    (dispatch,) = _dispatches(graph)
    assert dispatch.shader.source.count("barrier();") == 3  # for the mean, the variance, and the vector
    arrays = [np.asarray(each) for each in arguments]
    _assert_gated(_centred, graph, arrays)


@pytest.mark.parametrize("columns", [128, 4096])
def test_results_of_two_vectors(columns: int) -> None:
    """Rows of one kernel read two vectors, which lie one behind the other if there is room for both."""
    arguments = _whole(columns), _normal(columns), _normal(columns), *(_normal(66, columns) for _ in range(2))
    graph = _graph(lambda x, w, v, a, b: (a @ _scaled(x, w)) * (b @ _scaled(x, v)), *arguments)
    assert len(_schedules(graph)) == (columns == 128)
    x, w, v, a, b = (each.astype("d") for each in arguments)
    want = (a @ EXPECTED[_scaled](x, w)) * (b @ EXPECTED[_scaled](x, v))
    np.testing.assert_allclose(run_as_gpu(graph, list(arguments))[0], want, rtol=2e-5, atol=2e-5 * columns)
    if columns == 128:
        (dispatch,) = _dispatches(graph)
        assert "shared vec4 scratch[64];" in dispatch.shader.source and "scratch[(k0 + 32)]" in dispatch.shader.source


@pytest.mark.parametrize("kind", ["int8", "int4"])
@pytest.mark.parametrize(("rows", "columns", "run"), [(64, 512, 4), (72, 576, 1)])
def test_results_of_integers_in_words(kind: str, rows: int, columns: int, run: int) -> None:
    matrix, x, weight = QuantizedMatrix.of(_normal(rows, columns), kind), _whole(columns), _whole(columns)
    graph = _graph(lambda matrix, x, weight: matrix.product(_scaled(x, weight)), matrix, x, weight)
    assert [each.run for each in _schedules(graph)] == [run]
    (dispatch,) = _dispatches(graph)
    places = {"scratch[k0]", *(f"scratch[(k0 + {number * columns // 4 // run})]" for number in range(1, run))}
    assert all(f" = {place};" in dispatch.shader.source for place in places)  # lanes read neighbours
    arrays = [np.asarray(leaf) for leaf in lx.tree.leaves((matrix, x, weight))]
    np.testing.assert_allclose(
        run_as_gpu(graph, arrays)[0], interpret(graph, *arrays)[0], rtol=2e-5, atol=2e-5 * columns**0.5
    )


def test_all_workgroups_add_up_in_the_same_order() -> None:
    """Equal rows have equal results, whichever workgroup has them."""
    x, weight, row = _normal(576), _normal(576), _normal(576)
    gate = np.tile(row, (83, 1))
    graph = _graph(_gated(_scaled), x, weight, gate, gate)
    assert len(_schedules(graph)) == 1
    assert len(np.unique(run_as_gpu(graph, [x, weight, gate, gate])[0])) == 1


def test_products_beside_each_other_share_the_memory() -> None:
    """One array in shared memory serves the parts of a dispatch, of which a workgroup runs one."""
    arguments = _whole(128), _whole(128), _normal(64, 128) / 8, _whole(512), _whole(512), _normal(72, 512) / 8
    graph = _graph(lambda x, v, a, y, w, b: (a @ _scaled(x, v), b @ _scaled(y, w)), *arguments)
    (dispatch,) = _dispatches(graph)
    declared = [line for line in dispatch.shader.source.splitlines() if line.startswith("shared vec4")]
    assert declared == ["shared vec4 scratch[128];"]
    for got, want in zip(run_as_gpu(graph, list(arguments)), interpret(graph, *arguments), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


def test_rows_that_share_no_norm_or_are_too_few_or_too_short_or_too_long() -> None:
    def chosen(rows: int, columns: int, norm: Any = _rounded) -> int:
        return len(_schedules(_graph(_gated(norm), *_arguments(rows, columns, "float32"))))

    assert [chosen(*shape) for shape in ((64, 128), (63, 128), (64, 124), (64, 126), (64, 4096), (64, 4100))] == [
        1, 0, 0, 0, 1, 0
    ]
    assert chosen(64, 128, lambda x, weight: x * weight) == 0
    arguments = _normal(64, 128), _normal(128)
    assert not _schedules(_graph(lambda a, x: lnp.argmax(a * x / lnp.sum(x * x), axis=1), *arguments))
    assert not _schedules(_graph(lambda a, x: nn.softmax(a * x / lnp.sum(x * x), axis=1), *arguments))


def test_a_small_workgroup_has_a_power_of_two_of_rows() -> None:
    """Their sums are joined by halves."""
    graph = _graph(_gated(_rounded), *_arguments(64, 128, "float32"))
    program = schedule(prepare(graph, TARGET), target=TARGET)
    (kernel,) = [step.kernel for step in steps_of(program.steps)]
    sizes = [replace(GENERIC_GPU, max_workgroup_invocations=most) for most in (1024, 192, 32)]
    assert [choose_schedule(kernel, profile, lifted=False).local for profile in sizes[:2]] == [256, 128]
    assert not isinstance(choose_schedule(kernel, sizes[2], lifted=False), CommonVectorRows)


def test_rows_are_in_loops_where_registers_do_not_hold_them(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = _graph(_gated(_rounded), *_arguments(64, 1024, "bfloat16"))
    assert [(each.loop, each.run, each.unrolled, each.row_groups) for each in _schedules(graph)] == [(False, 2, 8, 8)]
    monkeypatch.setattr(choose_gpu, "COMMON_VECTORS", replace(choose_gpu.COMMON_VECTORS, kept=127))
    assert [(each.loop, each.run, each.unrolled, each.row_groups) for each in _schedules(graph)] == [(True, 2, 4, 4)]


def test_all_of_a_workgroup_reach_its_barriers() -> None:
    (dispatch,) = _dispatches(_graph(_gated(_rounded), *_arguments(67, 128, "float32")))
    source = main_of(dispatch)
    assert "return" not in source and source.count("\n    barrier();") == source.count("barrier();") == 2
    assert source.count("team < 67") == 1 and dispatch.groups == (9, 1, 1)


def test_the_shader() -> None:
    (dispatch,) = _dispatches(_graph(lambda x, w, a: a @ _scaled(x, w), _normal(128), _normal(128), _normal(64, 128)))
    assert_shader(dispatch, """\
        layout(local_size_x = 256, local_size_y = 1) in;
        void main() {
            uint64_t p0 = table.address[words[0]];
            uint64_t p1 = table.address[words[1]];
            uint64_t p2 = table.address[words[2]];
            uint64_t p3 = table.address[words[3]];
            int member = int(gl_SubgroupID * 32u + gl_SubgroupInvocationID);
            int team = int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * 8u + gl_SubgroupID);
            int row = min(team, 64 - 1);
            int lane_of_row = int(gl_SubgroupInvocationID);
            int c0 = min(member, 32 - 1);
            vec4 v1 = F32x4(p0).data[c0];
            vec4 v2 = F32x4(p1).data[c0];
            int k0 = lane_of_row;
            vec4 v3 = F32x4(p2).data[(k0 + row * 32)];
            vec4 v4 = vec4(float(0));
            vec4 v5 = (v1 * v2);
            if (member < 32) {
                scratch[c0] = v5;
            }
            vec4 v6 = (v1 * v1);
            if (member < 32) {
                v4 = (v4 + v6);
            }
            float v7 = ((v4.x + v4.y) + (v4.z + v4.w));
            v7 = (v7 + subgroupShuffleXor(v7, 1u));
            v7 = (v7 + subgroupShuffleXor(v7, 2u));
            v7 = (v7 + subgroupShuffleXor(v7, 4u));
            v7 = (v7 + subgroupShuffleXor(v7, 8u));
            v7 = (v7 + subgroupShuffleXor(v7, 16u));
            if (gl_SubgroupInvocationID == 0u) {
                shared_v7[gl_SubgroupID] = v7;
            }
            barrier();
            v7 = shared_v7[gl_SubgroupInvocationID % 8u];
            v7 = (v7 + subgroupShuffleXor(v7, 1u));
            v7 = (v7 + subgroupShuffleXor(v7, 2u));
            v7 = (v7 + subgroupShuffleXor(v7, 4u));
            vec4 v8 = vec4(float(0));
            vec4 v9 = scratch[k0];
            vec4 v10 = (v3 * v9);
            v8 = (v8 + v10);
            float v11 = ((v8.x + v8.y) + (v8.z + v8.w));
            v11 = (v11 + subgroupShuffleXor(v11, 1u));
            v11 = (v11 + subgroupShuffleXor(v11, 2u));
            v11 = (v11 + subgroupShuffleXor(v11, 4u));
            v11 = (v11 + subgroupShuffleXor(v11, 8u));
            v11 = (v11 + subgroupShuffleXor(v11, 16u));
            float v12 = (v7 * 0.0078125);
            float v13 = (v12 + 1e-05);
            float v14 = lx_sqrt(v13);
            float v15 = lx_divide(1.0, v14);
            float v16 = (v11 * v15);
            if (lane_of_row == 0) {
                F32(p3).data[row] = v16;
            }
        }
    """)
