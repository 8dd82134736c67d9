"""Forward mode: every operation against reverse mode along random directions, and what it costs."""
from __future__ import annotations

import numpy as np
import pytest

from lavax.ir import Graph, interpret, parse, verify
from lavax.ir.graph import graph_of
from lavax.passes.differentiate import RULES, jvp, vjp
from lavax.passes.simplify import simplify
from tests.operation_cases import Case, all_cases
from tests.random_graphs import random_graph

DIFFERENTIABLE = [
    case
    for case in all_cases()
    if case.op in RULES
    and case.node.dtype.is_float
    and any(node.dtype.is_float for node in case.graph.inputs)
    and not case.special
    and case.only_float32
]


def floats_of(graph: Graph) -> list[int]:
    return [position for position, node in enumerate(graph.inputs) if node.dtype.is_float]


def check_pairing(graph: Graph, arrays: list[np.ndarray]) -> None:
    """⟨cotangent, J·tangent⟩ is ⟨Jᵀ·cotangent, tangent⟩."""
    by = floats_of(graph)
    random = np.random.default_rng(0)
    tangents = [random.normal(size=arrays[position].shape) for position in by]
    outputs = [output for output in graph.outputs if output.dtype.is_float]
    cotangents = [random.normal(size=output.shape) for output in outputs]
    forward = jvp(graph, by)
    verify(forward)
    pushed = interpret(forward, *arrays, *tangents)[len(graph.outputs) :]
    pulled = interpret(vjp(graph, by), *arrays, *cotangents)[len(graph.outputs) :]
    left = [np.sum(c * t) for c, t in zip(cotangents, pushed, strict=True)]
    right = [np.sum(c * t) for c, t in zip(pulled, tangents, strict=True)]
    size = 1 + sum(np.sum(np.abs(c * t)) for c, t in zip(cotangents, pushed, strict=True))
    np.testing.assert_allclose(sum(left), sum(right), rtol=0, atol=1e-10 * size)


@pytest.mark.parametrize("op", sorted({case.op for case in DIFFERENTIABLE}))
def test_tangents_and_cotangents_pair(op: str) -> None:
    for case in (case for case in DIFFERENTIABLE if case.op == op):
        check_pairing(case.graph, [a.astype(np.float64) if a.dtype == np.float32 else a for a in case.arrays])


@pytest.mark.parametrize("op", sorted({case.op for case in DIFFERENTIABLE}))
def test_tangents_have_tangents(op: str) -> None:
    """The graph of the tangents is an ordinary graph: forward over forward, and reverse over forward."""
    case: Case = next(case for case in reversed(DIFFERENTIABLE) if case.op == op and case.node.type.size)
    arrays = [a.astype(np.float64) if a.dtype == np.float32 else a for a in case.arrays]
    first = jvp(case.graph, floats_of(case.graph))
    random = np.random.default_rng(3)
    arrays += [random.normal(size=node.shape) for node in first.inputs[len(arrays) :]]
    check_pairing(graph_of(first.inputs, first.outputs[1:]), arrays)


@pytest.mark.parametrize("seed", range(10))
def test_random_graphs(seed: int) -> None:
    graph, arrays = random_graph(seed)
    check_pairing(graph, arrays)


def test_constants_and_integers_have_no_tangent() -> None:
    graph = parse(
        "graph (x: f32[3], n: i32[3]) {\n  %0 = floor(x) : f32[3]\n  %1 = cast(n) : f32[3]\n  return %0, %1, n\n}"
    )
    assert str(jvp(graph, [0])) == (
        "graph (x: f32[3], n: i32[3], tangent0: f32[3]) {\n"
        "  %0 = floor(x) : f32[3]\n  %1 = cast(n) : f32[3]\n  %2 = constant() value=0.0 : f32[3]\n"
        "  %3 = constant() value=0.0 : f32[3]\n  return %0, %1, n, %2, %3\n}"
    )


def test_a_layer_costs_three_dots() -> None:
    graph = parse(
        "graph (x: f32[8,4], w: f32[4,5]) {\n"
        "  %0 = dot(x, w) contract=[1]x[0] : f32[8,5]\n  %1 = tanh(%0) : f32[8,5]\n  return %1\n}"
    )
    pushed = simplify(jvp(graph, [0, 1]))
    assert sum(node.op == "dot" for node in pushed.nodes) == 3
    assert len(pushed.nodes) <= 3 * 2 + 3
