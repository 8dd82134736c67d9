"""The last rewrites before fusion: what they make, and that results stay."""
from __future__ import annotations

import math
from collections import Counter
from textwrap import dedent

import numpy as np
import pytest

from lavax.ir import Graph, Node, TensorType, float32, int32, interpret, parse, verify
from lavax.ir.graph import graph_of, input_node
from lavax.passes.build import builder
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.target.target import Products, Target
from tests.random_graphs import random_graph

TEXTS: dict[str, tuple[str, str]] = {
    "gradients are taken by now": (
        """
        graph (x: f32[3]) {
          %0 = stop_gradient(x) : f32[3]
          %1 = add(x, %0) : f32[3]
          return %1
        }
        """,
        """
        graph (x: f32[3]) {
          %0 = add(x, x) : f32[3]
          return %0
        }
        """,
    ),
    "a matrix times a vector is a sum over rows": (
        """
        graph (x: f32[4,3], y: f32[3]) {
          %0 = dot(x, y) contract=[1]x[0] : f32[4]
          return %0
        }
        """,
        """
        graph (x: f32[4,3], y: f32[3]) {
          %0 = broadcast(y) axes=[1] : f32[4,3]
          %1 = multiply(x, %0) : f32[4,3]
          %2 = sum(%1) axes=[1] : f32[4]
          return %2
        }
        """,
    ),
    "a vector times a matrix is a sum over leading axes": (
        """
        graph (x: f32[3], y: f32[3,4]) {
          %0 = dot(x, y) contract=[0]x[0] : f32[4]
          return %0
        }
        """,
        """
        graph (x: f32[3], y: f32[3,4]) {
          %0 = broadcast(x) axes=[0] : f32[3,4]
          %1 = multiply(y, %0) : f32[3,4]
          %2 = sum(%1) axes=[0] : f32[4]
          return %2
        }
        """,
    ),
    "a long sum is a sum of parts": (
        """
        graph (x: f32[33000]) {
          %0 = sum(x) axes=[0] : f32[]
          return %0
        }
        """,
        """
        graph (x: f32[33000]) {
          %0 = reshape(x) : f32[1,33000]
          %1 = pad(%0) low=[0,0] high=[0,3864] interior=[0,0] value=0.0 : f32[1,36864]
          %2 = reshape(%1) : f32[1,9,4096]
          %3 = sum(%2) axes=[2] : f32[1,9]
          %4 = sum(%3) axes=[1] : f32[1]
          %5 = reshape(%4) : f32[]
          return %5
        }
        """,
    ),
    "a long sum over leading axes keeps the others innermost": (
        """
        graph (x: f32[40960,3]) {
          %0 = max(x) axes=[0] : f32[3]
          return %0
        }
        """,
        """
        graph (x: f32[40960,3]) {
          %0 = reshape(x) : f32[160,256,3]
          %1 = max(%0) axes=[1] : f32[160,3]
          %2 = max(%1) axes=[0] : f32[3]
          return %2
        }
        """,
    ),
    "what is sorted beside its order is taken in that order": (
        """
        graph (x: f32[3,5]) {
          %0 = sort(x) axis=1 : f32[3,5]
          %1 = sort_order(x) axis=1 : i32[3,5]
          return %0, %1
        }
        """,
        """
        graph (x: f32[3,5]) {
          %0 = iota() axis=0 : i32[3,5]
          %1 = sort_runs(x) run=5 : i32[3,5]
          %2 = gather(x, %0, %1) axes=[0,1] : f32[3,5]
          return %2, %1
        }
        """,
    ),
    "what has no elements is a constant": (
        """
        graph (x: f32[0,3], y: f32[2,3]) {
          %0 = exp(x) : f32[0,3]
          %1 = concatenate(%0, y) axis=0 : f32[2,3]
          %2 = sum(x) axes=[0] : f32[3]
          %3 = prod(x) axes=[0] : f32[3]
          return %0, %1, %2, %3, x
        }
        """,
        """
        graph (x: f32[0,3], y: f32[2,3]) {
          %0 = constant() value=0.0 : f32[0,3]
          %1 = concatenate(%0, y) axis=0 : f32[2,3]
          %2 = constant() value=0.0 : f32[3]
          %3 = constant() value=1.0 : f32[3]
          return %0, %1, %2, %3, x
        }
        """,
    ),
    "padding of nothing reads nothing": (
        """
        graph (x: i32[0]) {
          %0 = pad(x) low=[1] high=[2] interior=[0] value=7 : i32[3]
          return %0
        }
        """,
        """
        graph (x: i32[0]) {
          %0 = constant() value=0 : i32[0]
          %1 = pad(%0) low=[1] high=[2] interior=[0] value=7 : i32[3]
          return %1
        }
        """,
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_rewrites(name: str) -> None:
    before, after = TEXTS[name]
    graph = parse(dedent(before))
    prepared = prepare(graph)
    assert str(prepared) == dedent(after).strip()
    verify(prepared)
    _assert_same(graph, prepared, 1e-12)


def _parts_of(left: str, right: str, contract: str, result: str) -> tuple[Graph, Graph]:
    """A contraction, and what it becomes for a device that wants sums in four parts."""
    text = f"""
        graph (x: f32{left}, w: f32{right}) {{
          %0 = dot(x, w) contract={contract} : f32{result}
          return %0
        }}
    """
    graph = parse(dedent(text))
    prepared = prepare(graph, Target(Products(parts=lambda dot: 4)))
    verify(prepared)
    _assert_same(graph, prepared)
    return graph, prepared


def test_a_sum_is_split_along_its_own_axes_where_they_divide() -> None:
    _, prepared = _parts_of("[8,5,3]", "[8,5,2]", "[0,1]x[0,1]", "[3,2]")
    expected = """
        graph (x: f32[8,5,3], w: f32[8,5,2]) {
          %0 = reshape(x) : f32[4,2,5,3]
          %1 = reshape(w) : f32[4,2,5,2]
          %2 = dot(%0, %1) contract=[1,2]x[1,2] batch=[0]x[0] : f32[4,3,2]
          %3 = sum(%2) axes=[0] : f32[3,2]
          return %3
        }
    """
    assert str(prepared) == dedent(expected).strip()


def test_a_sum_is_padded_where_no_part_divides_it() -> None:
    _, prepared = _parts_of("[3,37]", "[37,2]", "[1]x[0]", "[3,2]")
    expected = """
        graph (x: f32[3,37], w: f32[37,2]) {
          %0 = pad(x) low=[0,0] high=[0,11] interior=[0,0] value=0.0 : f32[3,48]
          %1 = reshape(%0) : f32[3,4,12]
          %2 = transpose(w) axes=[1,0] : f32[2,37]
          %3 = pad(%2) low=[0,0] high=[0,11] interior=[0,0] value=0.0 : f32[2,48]
          %4 = reshape(%3) : f32[2,4,12]
          %5 = dot(%1, %4) contract=[2]x[2] batch=[1]x[1] : f32[4,3,2]
          %6 = sum(%5) axes=[0] : f32[3,2]
          return %6
        }
    """
    assert str(prepared) == dedent(expected).strip()


def test_parts_with_batches_and_any_order_of_axes() -> None:
    for left, right, contract, result in [
        ("[5,8,3]", "[2,8,5]", "[1,0]x[1,2]", "[3,2]"),
        ("[7,9]", "[9,7,4]", "[1,0]x[0,1]", "[4]"),
        ("[300,2]", "[300]", "[0]x[0]", "[2]"),
    ]:
        _, prepared = _parts_of(left, right, contract, result)
        assert any(node.op == "sum" for node in prepared.nodes)


def test_a_large_matrix_times_a_vector_is_a_contraction_with_the_matrix_s_rows_side_by_side() -> None:
    text = """
        graph (w: f32[256,512], x: f32[256]) {
          %0 = dot(w, x) contract=[0]x[0] : f32[512]
          return %0
        }
    """
    graph = parse(dedent(text))
    (dot,) = prepare(graph).nodes
    assert dot.op == "dot" and dot.operands == tuple(reversed(graph.inputs))
    prepared = prepare(graph, Target(Products(vectors_as_sums=True)))
    assert [node.op for node in prepared.nodes if node.op in ("dot", "sum")] == ["sum"]
    _assert_same(graph, prepared)
    few = parse(dedent(text.replace("512", "16").replace("256", "8192")))
    few_columns = prepare(few, Target(Products(vectors_as_sums=True)))
    assert all(node.op == "dot" for node in few_columns.nodes), "columns read one by one"


def _assert_same(graph: Graph, prepared: Graph, tolerance: float = 0.0) -> None:
    random = np.random.default_rng(0)
    arrays = [random.integers(-3, 4, node.shape).astype(node.dtype.numpy) for node in graph.inputs]
    for got, want in zip(interpret(prepared, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=0)


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("dtype", [float32, int32], ids=str)
def test_long_reductions_over_any_axes(op: str, axes: tuple[int, ...], dtype: object) -> None:
    """Small whole numbers: their order does not matter."""
    shape = tuple((300, 3, 129)[axis] if axis in axes else (2, 1, 5)[axis] for axis in range(3))
    shape = tuple(extent * (40000 // math.prod(shape[a] for a in axes) + 1 if axis == axes[0] else 1)
                  for axis, extent in enumerate(shape))  # fmt: skip
    x = input_node("x", TensorType(shape, dtype))  # type: ignore[arg-type]
    graph = graph_of([x], [builder.reduce(op, x, axes)])
    prepared = prepare(graph)
    assert Counter(node.op for node in prepared.nodes)[op] == 2
    verify(prepared)
    values = np.random.default_rng(0).choice([-1, 1], shape).astype(x.dtype.numpy)
    np.testing.assert_array_equal(interpret(prepared, values)[0], interpret(graph, values)[0])


@pytest.mark.parametrize("count", [8, 9, 64, 65, 200])
def test_wide_concatenations_are_joined_in_groups(count: int) -> None:
    inputs: list[Node] = [input_node(f"x{n}", TensorType((2, n % 3), float32)) for n in range(count)]
    graph = graph_of(inputs, [builder.concatenate(inputs, 1)])
    prepared = prepare(graph)
    assert all(len(node.operands) <= 8 for node in prepared.nodes)
    _assert_same(graph, prepared)


def test_random_graphs_stay_what_they_are() -> None:
    for seed in range(100):
        graph, arrays = random_graph(seed)
        prepared = prepare(graph)
        verify(prepared)
        for got, want in zip(interpret(prepared, *arrays), interpret(graph, *arrays), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("kind", ["few values", "one infinity", "a NaN", "integers"])
def test_positions_in_long_rows_are_those_of_the_best_part(op: str, kind: str) -> None:
    """The first of equal ones, or the first NaN; the last part is shorter than the others."""
    dtype = int32 if kind == "integers" else float32
    x = np.random.default_rng(1).integers(-4, 5, (2, 50_001)).astype(dtype.numpy)
    if kind == "one infinity":
        x[...] = -np.inf if op == "argmax" else np.inf
    if kind == "a NaN":
        x[0, [49_999, 50_000]], x[1, 3] = np.nan, np.nan
    given = input_node("x", TensorType(x.shape, dtype))
    graph = graph_of([given], [builder.build(op, given, axis=1, type=TensorType((2,), int32))])
    prepared = prepare(graph)
    assert max(node.operands[0].shape[-1] for node in prepared.nodes if node.op == op) <= 4096
    (found,), (expected,) = interpret(prepared, x), interpret(graph, x)
    np.testing.assert_array_equal(found, expected)
