"""Rows that are neighbours in memory: what they share, what is read ahead, and how members' results become one."""
from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from lavax.backends.vulkan.emit.reduce.choose import choose_schedule
from lavax.backends.vulkan.emit.reduce.interleaved import MOST_LEFT, InterleavedRows, folds
from lavax.backends.vulkan.emit.reduce.shared_results import shared_results
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.ir import Graph, interpret, parse
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.backends.vulkan.emit.emission import dispatch_of
from tests.backends.vulkan.run.execution import run_as_gpu

RANDOM = np.random.default_rng(11)
FLOAT = 2.0**-24


def weighted(queries: int, keys: int, elements: int) -> Graph:
    """Of each query and each element of a value: the greatest score, the sum of weights, and of weighted values."""
    scores, values, every = f"f32[{queries},{keys}]", f"f32[{keys},{elements}]", f"f32[{queries},{keys},{elements}]"
    result = f"f32[{queries},{elements}]"
    return parse(f"""
        graph (scores: {scores}, values: {values}) {{
          %0 = broadcast(scores) axes=[0,1] : {every}
          %1 = max(%0) axes=[1] : {result}
          %2 = broadcast(%1) axes=[0,2] : {every}
          %3 = subtract(%0, %2) : {every}
          %4 = exp(%3) : {every}
          %5 = broadcast(values) axes=[1,2] : {every}
          %6 = multiply(%4, %5) : {every}
          %7 = sum(%6) axes=[1] : {result}
          %8 = sum(%4) axes=[1] : {result}
          %9 = divide(%7, %8) : {result}
          return %9, %8, %1
        }}
    """)


def kernel_of(graph: Graph) -> Kernel:
    (step,) = steps_of(schedule(prepare(graph)).steps)
    return step.kernel


@pytest.mark.parametrize("queries, keys, elements", [(9, 1024, 64), (3, 70, 16), (2, 5000, 12), (5, 33, 6), (1, 16, 4)])
def test_results_that_rows_share_are_those_of_each_row(queries: int, keys: int, elements: int) -> None:
    graph = weighted(queries, keys, elements)
    arrays = [RANDOM.normal(size=node.shape).astype("f") for node in graph.inputs]
    exact = interpret(graph, *arrays, dtype=np.float64)
    mixed, totals, peaks = run_as_gpu(graph, arrays)
    np.testing.assert_array_equal(peaks, exact[2])
    np.testing.assert_allclose(totals, exact[1], rtol=16 * FLOAT)
    scale = np.exp(arrays[0].astype("d") - exact[2][:, :1]) @ np.abs(arrays[1]) / exact[1]  # of weighted values
    assert (np.abs(mixed - exact[0]) <= 64 * FLOAT * scale).all()


def test_shared_results_are_found() -> None:
    kernel = kernel_of(weighted(9, 1024, 64))
    assert sorted(node.op for node in shared_results(kernel)) == ["max", "sum"]
    assert not shared_results(kernel_of(weighted(9, 1024, 6))), "four neighbours may belong to two queries"
    counted = parse("""
        graph (x: f32[8,40]) {
          %0 = iota() axis=0 : f32[8,40,64]
          %1 = iota() axis=2 : f32[8,40,64]
          %2 = sum(%0) axes=[1] : f32[8,64]
          %3 = sum(%1) axes=[1] : f32[8,64]
          return %2, %3
        }
    """)
    found = shared_results(kernel_of(counted))
    assert all(node.operands[0].attrs["axis"] == 0 for node in found), "elements count along the vector"


def test_values_are_read_before_members_wait_for_each_other() -> None:
    shared, source = dispatch_of(weighted(9, 1024, 64), GENERIC_GPU).shader.source.split("void main()")
    assert shared.count("shared float") == 2 and shared.count("shared vec4") == 1
    assert "F32x4(p1)" in source and "F32x4(p1)" not in source[source.index("barrier();") :]
    assert source.count("barrier();") == 6, "in each of two walks, one behind each step of joining, and one before"


def schedule_of(rows: int, length: int) -> Any:
    text = f"graph (x: f32[{length},{rows}]) {{\n  %0 = sum(x) axes=[0] : f32[{rows}]\n  return %0\n}}"
    return choose_schedule(kernel_of(parse(text)), GENERIC_GPU, lifted=False)


def test_few_columns_are_spread_over_workgroups_that_read_whole_sectors() -> None:
    few, many = schedule_of(256, 2048), schedule_of(1 << 15, 2048)
    assert isinstance(few, InterleavedRows) and isinstance(many, InterleavedRows)
    assert 4 * few.row_width * few.row_groups == 32 and 4 * many.row_width * many.row_groups == 128
    assert few.local >= GENERIC_GPU.subgroup_size


@pytest.mark.parametrize("members", [1 << power for power in range(11)])
def test_folds_leave_few(members: int) -> None:
    left = members // prod(folds(members))
    assert prod(folds(members)) * left == members and 1 <= left <= MOST_LEFT
    assert all(2 <= fold <= MOST_LEFT for fold in folds(members))


def _moments(parts: int, columns: int) -> Graph:
    """What joins the parts of columns: their totals, and squares within and between them."""
    every, row = f"f32[{parts},{columns}]", f"f32[{columns}]"
    return parse(f"""
        graph (totals: {every}, means: {every}, squares: {every}) {{
          %0 = sum(totals) axes=[0] : {row}
          %1 = constant() value={parts}.0 : {row}
          %2 = divide(%0, %1) : {row}
          %3 = broadcast(%2) axes=[1] : {every}
          %4 = subtract(means, %3) : {every}
          %5 = multiply(%4, %4) : {every}
          %6 = add(squares, %5) : {every}
          %7 = sum(%6) axes=[0] : {row}
          return %2, %7
        }}
    """)


@pytest.mark.parametrize("parts, columns, members", [(49, 64, 16), (196, 64, 64), (196, 1024, 16)])
def test_few_rows_that_are_walked_twice_are_kept(parts: int, columns: int, members: int) -> None:
    """By more members than columns that are walked once have, unless they keep a device busy."""
    graph = _moments(parts, columns)
    chosen = choose_schedule(kernel_of(graph), GENERIC_GPU, lifted=False)
    assert isinstance(chosen, InterleavedRows)
    assert (chosen.members, chosen.loop) == (members, columns == 1024)
    arrays = [RANDOM.normal(size=node.shape).astype("f") for node in graph.inputs]
    exact = interpret(graph, *arrays, dtype=np.float64)
    for got, want in zip(run_as_gpu(graph, arrays), exact, strict=True):
        np.testing.assert_allclose(got, want, rtol=32 * FLOAT, atol=32 * FLOAT)


def _gradient(elements: int, columns: int) -> Graph:
    """Of a batch norm's operand: two sums, and what each element gets of both."""
    every, row = f"f32[{elements},{columns}]", f"f32[{columns}]"
    return parse(f"""
        graph (given: {every}, x: {every}) {{
          %0 = sum(given) axes=[0] : {row}
          %1 = multiply(given, x) : {every}
          %2 = sum(%1) axes=[0] : {row}
          %3 = broadcast(%0) axes=[1] : {every}
          %4 = broadcast(%2) axes=[1] : {every}
          %5 = multiply(x, %4) : {every}
          %6 = add(%3, %5) : {every}
          %7 = subtract(given, %6) : {every}
          return %7
        }}
    """)


@pytest.mark.parametrize(
    "elements, columns, members, row_groups, loop",
    [(784, 256, 128, 2, False), (1568, 128, 256, 2, False), (1568, 1024, 128, 2, True), (3136, 64, 128, 2, True)],
)
def test_few_workgroups_keep_two_arrays(elements: int, columns: int, members: int, row_groups: int, loop: bool) -> None:
    """By more members, unless a workgroup would have more than 512 or there are enough workgroups."""
    graph = _gradient(elements, columns)
    chosen = choose_schedule(kernel_of(graph), GENERIC_GPU, lifted=False)
    assert isinstance(chosen, InterleavedRows)
    assert (chosen.members, chosen.row_groups, chosen.loop) == (members, row_groups, loop)
    arrays = [RANDOM.normal(size=node.shape).astype("f") for node in graph.inputs]
    ((got,), (want,)) = run_as_gpu(graph, arrays), interpret(graph, *arrays, dtype=np.float64)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("limit", [{"max_workgroup_invocations": 256}, {"shared_memory_bytes": 8192}])
def test_more_members_are_no_more_than_a_device_has(limit: dict[str, int]) -> None:
    chosen = choose_schedule(kernel_of(_gradient(1568, 128)), replace(GENERIC_GPU, **limit), lifted=False)
    assert isinstance(chosen, InterleavedRows) and chosen.local <= 256 and chosen.loop
