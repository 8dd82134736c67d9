"""Parts that meet in memory: the same results in every run, in loops, and from dispatches that are never cut."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.emit.attention import few_queries_shape
from lavax.backends.vulkan.glsl import launch
from lavax.backends.vulkan.run.long_dispatches import with_long_dispatches_cut
from lavax.ir import Graph, interpret
from lavax.ir.graph import graph_of
from lavax.passes.build.builder import build
from lavax.passes.build.inline import inline_calls
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.attention.test_attention import gpu_schedule

HEADS, KEYS, HEAD = 5, 72, 16
PARTS = 7
rng = np.random.default_rng(13)


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = replace(few_queries_shape.FEW_QUERIES, part=KEYS // PARTS)
    monkeypatch.setattr(few_queries_shape, "FEW_QUERIES", changed)


def _attend(query: Any, key: Any, value: Any) -> Any:
    return lx.nn.dot_product_attention(query, key, value)


def _drawn(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("f")


def _operands() -> tuple[np.ndarray, ...]:
    return _drawn(1, 1, HEADS, HEAD), _drawn(1, KEYS, HEADS, HEAD), _drawn(1, KEYS, HEADS, HEAD)


def _graph(function: Any, *arrays: np.ndarray) -> Graph:
    return remove_stop_gradient(inline_calls(lx.trace(function)(*arrays)))


def _agrees(graph: Graph, *arrays: np.ndarray) -> None:
    device = gpu_schedule()
    results = device.lower(graph).compile()(*map(device.upload, arrays))
    expected = interpret(graph, *arrays, dtype=np.float64)
    for result, output, right in zip(results, graph.outputs, expected, strict=True):
        np.testing.assert_allclose(device.download(result, output.type), right, rtol=1e-5, atol=1e-5)


def test_every_run_begins_with_no_part_counted() -> None:
    arrays, device = _operands(), gpu_schedule()
    graph = _graph(_attend, *arrays)
    program = device.lower(graph).compile()
    (expected,) = interpret(graph, *arrays, dtype=np.float64)
    for number in range(4):
        scaled = [arrays[0], arrays[1], arrays[2] * number]
        (result,) = program(*(device.upload(array) for array in scaled))
        found = device.download(result, graph.outputs[0].type)
        np.testing.assert_allclose(found, expected * number, rtol=1e-5, atol=1e-5)


def test_memory_is_ordered_by_the_invocation_that_counts() -> None:
    """It counts behind all writes of its subgroup, and its subgroup reads behind its count."""
    plan = gpu_schedule().lower(_graph(_attend, *_operands())).plan
    (source,) = (each.shader.source for each in plan.dispatches if "atomicAdd" in each.shader.source)
    lines = [line.strip() for line in source.splitlines()]
    (counted,) = (at for at, line in enumerate(lines) if "atomicAdd" in line)
    parts = [at for at, line in enumerate(lines) if "Parts(memory)" in line]
    written, read = [at for at in parts if at < counted], [at for at in parts if at > counted]
    assert written and read
    barriers = [line for line in lines[written[-1] + 1 : counted] if "arrier" in line]
    assert barriers == ["subgroupBarrier();", "memoryBarrierBuffer();"]
    barriers = [line for line in lines[counted + 1 : read[0]] if "arrier" in line]
    assert barriers == ["memoryBarrierBuffer();", "subgroupBarrier();"]


def test_other_subgroups_end_one_barrier_before_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver for CPUs (Mesa 25) runs no subgroup beyond a second barrier behind the end of another."""
    monkeypatch.setattr(few_queries_shape, "FEW_QUERIES", replace(few_queries_shape.FEW_QUERIES, few_steps=1))
    plan = gpu_schedule().lower(_graph(_attend, *_operands())).plan
    (source,) = (each.shader.source for each in plan.dispatches if "atomicAdd" in each.shader.source)
    whole, first = source.split("if (gl_SubgroupID != 0u) return;")
    assert "barrier();" in whole, "it has several subgroups"
    assert len(re.findall(r"[bB]arrier\(\);", first)) == 1


def test_each_turn_of_a_loop_has_its_own_parts() -> None:
    def several(query: Any, key: Any, value: Any) -> Any:
        def turn(carried: Any, _: Any) -> Any:
            return _attend(carried, key, value), carried

        return lx.scan(turn, query, None, length=20)

    arrays = _operands()
    _agrees(_graph(several, *arrays), *arrays)


def test_turns_that_carry_nothing_do_not_meet() -> None:
    """They read and write other arrays each, but the same parts."""
    query, key, value = _operands()
    queries = np.stack([query * number for number in range(1, 9)])

    def several(queries: Any, key: Any, value: Any) -> Any:
        return lx.map(lambda each: _attend(each, key, value), queries)

    graph = _graph(several, queries, key, value)
    meeting = [each for each in gpu_schedule().lower(graph).plan.dispatches if "atomicAdd" in each.shader.source]
    assert meeting and all(each.barrier for each in meeting)
    _agrees(graph, queries, key, value)


def test_two_of_them_side_by_side_do_not_meet() -> None:
    arrays = *_operands(), *_operands()
    graph = _graph(lambda *both: (_attend(*both[:3]), _attend(*both[3:])), *arrays)
    meeting = [each for each in gpu_schedule().lower(graph).plan.dispatches if "atomicAdd" in each.shader.source]
    assert [each.barrier for each in meeting] == [False, False]
    _agrees(graph, *arrays)


def test_a_dispatch_whose_workgroups_meet_is_never_cut() -> None:
    """It could be left in the middle, and the next run would find parts counted that it has not."""
    plan = gpu_schedule().lower(_graph(_attend, *_operands())).plan
    (dispatch,) = (each for each in plan.dispatches if "atomicAdd" in each.shader.source)
    assert dispatch.groups == (HEADS * PARTS, 1, 1)
    cut = with_long_dispatches_cut(plan, lambda dispatch: 2)
    assert [each for each in cut.dispatches if "atomicAdd" in each.shader.source] == [dispatch]


def test_memory_begins_as_zeros_and_holds_all_parts() -> None:
    plan = gpu_schedule().lower(_graph(_attend, *_operands())).plan
    counts, vector = 8, 1 + HEAD // 4
    sizes = [len(constant) for constant in plan.constants if constant]
    assert sizes == [4 * (counts + 4 * HEADS * PARTS * vector)]
    assert not any(b"".join(plan.constants))


def test_a_grid_of_two_dimensions_has_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """More workgroups than a grid has in one dimension are in rows of it."""
    monkeypatch.setattr(launch, "_MOST_GROUPS", HEADS * PARTS // 2)
    arrays = _operands()
    graph = _graph(_attend, *arrays)
    (dispatch,) = (each for each in gpu_schedule().lower(graph).plan.dispatches if "atomicAdd" in each.shader.source)
    assert dispatch.groups == (HEADS * PARTS // 2, 3, 1)
    _agrees(graph, *arrays)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_in_one_part_is_that_of_one_kernel(bad: float) -> None:
    arrays, device = _operands(), gpu_schedule()
    arrays[1][0, 10, 0, :] = bad
    arrays[2][0, 30, 1, :] = bad
    graph = _graph(_attend, *arrays)
    (result,) = device.lower(graph).compile()(*map(device.upload, arrays))
    (expected,) = interpret(graph, *arrays)
    found = device.download(result, graph.outputs[0].type)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    np.testing.assert_allclose(found[np.isfinite(found)], expected[np.isfinite(expected)], rtol=1e-5, atol=1e-5)


def test_a_statistic_and_a_result_of_one_kernel_share_the_parts() -> None:
    arrays = _operands()
    graph = _graph(_attend, *arrays)
    (node,) = (each for each in graph.nodes if each.op == "attention")
    query, key, _, *others = node.operands
    both = graph_of(graph.inputs, [node, build("attention_logsumexp", query, key, *others, **node.attrs)])
    kernels = [step.kernel for step in gpu_schedule().lower(both).kernels.steps]
    assert [len(kernel.graph.outputs) for kernel in kernels] == [2]
    _agrees(both, *arrays)
