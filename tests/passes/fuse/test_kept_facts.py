"""What is found out once, of a graph, of products of equal extents or of a kernel, changes no program."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lavax.backends.vulkan.emit.contract import choose_gpu
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, MatrixShape
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, Node, parse
from lavax.ir.graph import topological
from lavax.ir.types import float32
from lavax.passes.fuse.extract import _computed
from lavax.passes.fuse.fuse import fuse
from lavax.passes.kernels.program import print_program
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule import rematerialization
from lavax.passes.schedule.schedule import schedule, with_results_apart
from lavax.passes.target.target import Target
from tests.random_graphs import random_graph

_SHAPES = tuple(MatrixShape(dtype, 16, 16, 16) for dtype in ("bf16", "f16"))
_WITH_MATRICES = replace(GENERIC_GPU, matrices=_SHAPES, float16=True, storage_16bit=True, memory_model=True)
TARGETS = {
    name: target_of(profile, 1 << 34, 1 << 31)
    for name, profile in {"cpu": CPU_DRIVER, "gpu": GENERIC_GPU, "matrices": _WITH_MATRICES}.items()
}
_KEPT = (choose_gpu.tiles_of_matrices, choose_gpu._of_shared_memory, choose_gpu._best_parts)
# Products whose extents are the same, of which two read what is rounded, and a short one.
PRODUCTS = """
graph (x: f32[256,4096], w: f32[4096,256], v: f32[32,64]) {
  %0 = dot(x, w) contract=[1]x[0] : f32[256,256]
  %1 = dot(x, w) contract=[1]x[0] precision="bf16" : f32[256,256]
  %2 = add(%0, %1) : f32[256,256]
  %3 = dot(x, w) contract=[1]x[0] : f32[256,256]
  %4 = multiply(%2, %3) : f32[256,256]
  %5 = dot(v, v) contract=[1]x[1] : f32[32,32]
  return %4, %5
}
"""


def _program(graph: Graph, target: Target) -> str:
    return print_program(schedule(with_results_apart(prepare(graph, target), {}), target=target))


@pytest.fixture(autouse=True)
def _recomputing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are fused twice, however little memory they take."""
    limits = replace(rematerialization.RematerializationLimits(), least_peak=0)
    monkeypatch.setattr(rematerialization, "_LIMITS", limits)


@pytest.mark.parametrize("name", TARGETS)
def test_a_program_is_the_same_whatever_was_found_out_before(name: str) -> None:
    graphs, target = [random_graph(seed)[0] for seed in range(20)] + [parse(PRODUCTS)], TARGETS[name]
    later = [_program(graph, target) for graph in (*graphs, *graphs)][len(graphs) :]  # of graphs that have been asked
    for graph, again in zip(graphs, later, strict=True):
        for kept in _KEPT:
            kept.cache_clear()
        assert _program(parse(str(graph)), target) == again


@pytest.mark.parametrize("name", TARGETS)
def test_programs_leave_what_a_graph_knows_of_itself(name: str) -> None:
    for seed in range(20):
        graph = prepare(random_graph(seed)[0], TARGETS[name])
        schedule(with_results_apart(graph, {}), target=TARGETS[name])
        readers: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            for operand in dict.fromkeys(node.operands):
                readers.setdefault(operand, []).append(node)
        assert graph.users == readers
        assert list(graph.position.items()) == [(node, place) for place, node in enumerate(graph.nodes)]


@pytest.mark.parametrize("name", TARGETS)
def test_a_kernel_computes_what_lies_between_its_arrays_and_its_results(name: str) -> None:
    found = 0
    for seed in range(30):
        fusion = fuse(with_results_apart(prepare(random_graph(seed)[0], TARGETS[name]), {}), TARGETS[name])
        for draft in fusion.all_drafts:
            order, arrays = _computed(fusion, draft, draft.results)
            assert arrays == set(fusion.cone(draft.results, draft)[1])
            assert order == topological(draft.results, stop=arrays)
            found += len(order) > 1
    assert found > 30


def test_products_of_equal_extents_differ_by_their_precision() -> None:
    exact, rounded = (
        node for node in parse(PRODUCTS).nodes[:2] if node.op == "dot" and node.dtype == float32
    )
    parts = TARGETS["matrices"].products.parts
    alone = []
    for product in (exact, rounded):
        for kept in _KEPT:
            kept.cache_clear()
        alone.append(parts(product))
    assert [parts(exact), parts(rounded)] == alone
    assert len(set(alone)) == 2, "the tiles of matrices are faster, and so are cut into more parts or fewer"
