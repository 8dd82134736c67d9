"""When scores of attention go to memory, and that the results stay what they were."""
from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.attention.choose import block_of_parts
from lavax.backends.vulkan.emit.attention.scores import (
    has_few_keys,
    pays_in_parts,
    stores_scores,
    stores_short_scores,
    suits_products,
)
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, MatrixShape
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, Node, TensorType, float32, interpret
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.ops.attention import OPERANDS
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Attention, Target
from tests.passes.lowering import f32

WITH_MATRICES = replace(GENERIC_GPU, matrices=(MatrixShape("bf16", 16, 16, 16),), float16=True, storage_16bit=True)
GRADIENTS = tuple(op for op in OPERANDS if op.endswith("gradient"))


def gradients(batch: int, queries: int, keys: int, head: int, causal: bool = False) -> Graph:
    """All three gradients over inputs."""
    by_query, by_key = (batch, queries), (batch, keys)
    shapes = {"query": (*by_query, head), "key": (*by_key, head), "value": (*by_key, head)}
    shapes |= {"cotangent": (*by_query, head), "delta": by_query, "logsumexp": by_query}
    inputs = {name: input_node(name, TensorType(shape, float32)) for name, shape in shapes.items()}
    highest = 0 if causal else keys - 1
    attrs = dict(scale=0.5, fill=-inf, lowest=1 - queries, highest=highest, biased=False, masked=False)
    nodes = [make_node(op, [inputs[name] for name in OPERANDS[op]], attrs) for op in GRADIENTS]
    return graph_of(inputs.values(), nodes)


def test_what_is_in_common_is_computed_once() -> None:
    graph = gradients(2, 5, 7, 4, causal=True)
    prepared = prepare(graph, Target(attention=Attention(stores_scores=lambda node: True)))
    ops = [node.op for node in prepared.nodes]
    assert ops.count("dot") == 5
    assert ops.count("exp") == 1
    random = np.random.default_rng(0)
    arrays = [random.normal(size=node.shape) for node in graph.inputs]
    for got, want in zip(interpret(prepared, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("graph", "gibibytes", "stored"),
    [
        pytest.param(gradients(16, 2048, 2048, 128), 24, True, id="long heads"),
        pytest.param(gradients(16, 2048, 2048, 128), 4, False, id="no memory for the scores"),
        pytest.param(gradients(16, 2048, 2048, 64, causal=True), 24, False, id="half of the pairs"),
        pytest.param(gradients(1, 256, 256, 128), 24, False, id="little to compute"),
    ],
)
def test_scores_are_stored_where_that_is_faster_and_memory_is_there(graph: Graph, gibibytes: int, stored: bool) -> None:
    def is_stored(node: Node) -> bool:
        return stores_scores(node, gibibytes << 30)

    assert [is_stored(node) for node in graph.outputs] == [stored] * 3


@pytest.mark.parametrize(
    ("graph", "gibibytes", "block"),
    [
        pytest.param(gradients(32, 2048, 2048, 64, causal=True), 24, 128, id="half of the pairs"),
        pytest.param(gradients(64, 1024, 1024, 32), 24, 64, id="short heads"),
        pytest.param(gradients(32, 2048, 2048, 128, causal=True), 48, 64, id="long heads"),
        pytest.param(gradients(32, 2048, 2048, 256, causal=True), 96, None, id="no tile for so long ones"),
        pytest.param(gradients(32, 2048, 2048, 60, causal=True), 24, None, id="heads that lines do not divide"),
        pytest.param(gradients(32, 2048, 2048, 64, causal=True), 4, None, id="no memory for the parts"),
        pytest.param(gradients(8, 512, 512, 64, causal=True), 24, None, id="little to compute"),
    ],
)
def test_the_gradient_of_queries_is_made_of_parts_where_memory_is_there(
    graph: Graph, gibibytes: int, block: int | None
) -> None:
    def block_of(node: Node) -> int | None:
        found = block_of_parts(node, GENERIC_GPU)
        return found if found is not None and pays_in_parts(node, found, gibibytes << 30) else None

    nodes = prepare(graph, Target(attention=Attention(query_parts=block_of))).nodes
    assert [node.attrs["block"] for node in nodes if "block" in node.attrs] == [block] * (block is not None)


@pytest.mark.parametrize("causal", [False, True])
def test_by_rows_delta_is_the_sum_of_weights_and_their_cotangents(causal: bool) -> None:
    """Where scores wait for derivatives of the attention whose result delta is made of; else delta is what it is."""
    stores_scores: Any = lambda node: "gradient" in node.op  # noqa: E731
    by_rows = Target(attention=Attention(stores_scores, scores_by_rows=True, kept_bytes=1 << 20))

    def loss(q: Any, k: Any, v: Any) -> Any:
        return lnp.sum(lnp.sin(nn.dot_product_attention(q, k, v, is_causal=causal)))

    with_forward = remove_stop_gradient(lx.trace(lx.grad(loss, argnums=(0, 1, 2)))(*3 * [f32(2, 33, 3, 4)]))
    for graph, sums in ((with_forward, 2), (gradients(2, 33, 33, 4, causal), 0)):
        prepared = prepare(graph, by_rows)
        assert not any(node.op.startswith("attention") for node in prepared.nodes)
        assert sum(node.op == "sum" for node in prepared.nodes) == sums
        arrays = [np.random.default_rng(3).normal(size=node.shape) for node in graph.inputs]
        for got, want in zip(interpret(prepared, *arrays), interpret(graph, *arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("graph", "stored"),
    [
        pytest.param(gradients(8, 128, 128, 32), True, id="all pairs"),
        pytest.param(gradients(32, 64, 64, 32, causal=True), True, id="most pairs"),
        pytest.param(gradients(1, 128, 128, 32, causal=True), True, id="less than what compiling takes"),
        pytest.param(gradients(8, 256, 256, 64, causal=True), False, id="half of the pairs"),
        pytest.param(gradients(8, 512, 512, 64), False, id="scores that take much memory"),
    ],
)
def test_short_scores_are_stored_on_a_cpu_driver(graph: Graph, stored: bool) -> None:
    assert [stores_short_scores(node) for node in graph.outputs] == [stored] * 3


ROOM = 2 * 33 * 33 * 4


@pytest.mark.parametrize(("room", "left"), [(ROOM, []), (ROOM - 1, ["attention_logsumexp", "attention"])])
def test_scores_wait_for_derivatives_as_long_as_there_is_room(room: int, left: list[str]) -> None:
    def loss(q: Any, k: Any, v: Any) -> Any:
        return lnp.sum(lnp.sin(nn.softmax(q @ k.mT) @ v))

    x = f32(2, 33, 4)
    with_gradients = remove_stop_gradient(lx.trace(lx.value_and_grad(loss, argnums=(0, 1, 2)))(x, x, x))
    prepared = prepare(with_gradients, Target(attention=Attention(lambda node: "gradient" in node.op, kept_bytes=room)))
    ops = [node.op for node in prepared.nodes]
    assert sorted(op for op in ops if op.startswith("attention")) == sorted(left)
    assert ops.count("dot") == (5 if left else 6)


@pytest.mark.parametrize("room", [0, 1 << 20])
def test_a_query_that_sees_nothing_has_no_gradient(room: int) -> None:
    random = np.random.default_rng(5)
    arrays = [random.normal(size=(1, 40, 2, 4)) for _ in range(3)]
    mask = random.random((1, 1, 40, 40)) < 0.5
    mask[..., 7, :] = False

    def loss(q: Any, k: Any, v: Any) -> Any:
        return lnp.sum(lnp.sin(nn.dot_product_attention(q, k, v, mask=mask)))

    types = [f32(*array.shape) for array in arrays]
    graph = remove_stop_gradient(lx.trace(lx.grad(loss, argnums=(0, 1, 2)))(*types))
    assert any(node.op == "attention" and node.attrs["empty"] for node in graph.nodes)
    prepared = prepare(graph, Target(attention=Attention(stores_scores=lambda node: True, kept_bytes=room)))
    assert any(node.op == "attention" for node in prepared.nodes) is (room == 0)
    arrays.append(mask)
    found = interpret(prepared, *arrays)
    for got, want in zip(found, interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)
    assert not found[0][:, 7].any()


def test_scores_are_one_array_which_an_allocation_must_hold() -> None:
    graph = gradients(16, 2048, 2048, 128)
    scores = 4 * 16 * 2048 * 2048
    for largest, stored in ((scores, True), (scores - 1, False)):
        stores = target_of(GENERIC_GPU, 1 << 40, largest).attention.stores_scores
        assert [stores(node) for node in graph.outputs] == [stored] * 3


@pytest.mark.parametrize(("layers", "by_rows", "kept"), [(1, False, True), (2, False, False), (2, True, True)])
def test_weights_of_a_stack_stay_in_memory_only_on_cpu_drivers(layers: int, by_rows: bool, kept: bool) -> None:
    """There the kernels of attention take long to compile."""

    def loss(x: Any) -> Any:
        for _ in range(layers):
            x = nn.dot_product_attention(x, x, x)
        return lnp.sum(lnp.sin(x))

    graph = lx.compile(lx.grad(loss)).lower(f32(1, 12, 2, 8)).optimized
    attention = Attention(lambda node: "gradient" in node.op, kept_bytes=1 << 20, scores_by_rows=by_rows)
    forward = [node for node in prepare(graph, Target(attention=attention)).nodes if node.op.startswith("attention")]
    assert bool(forward) != kept


def forward(queries: int, head: int, precision: str = "bf16") -> Node:
    shapes = {"query": (8, queries, head), "key": (8, 2048, head), "value": (8, 2048, head)}
    inputs = [input_node(name, TensorType(shape, float32)) for name, shape in shapes.items()]
    attrs = dict(scale=0.5, fill=-inf, lowest=1 - queries, highest=0, biased=False, masked=False, empty=False)
    return make_node("attention", inputs, {**attrs, "precision": precision})


@pytest.mark.parametrize(
    ("node", "profile", "gibibytes", "suits"),
    [
        pytest.param(forward(2048, 256), WITH_MATRICES, 24, True, id="long heads"),
        pytest.param(forward(2048, 136), WITH_MATRICES, 24, True, id="longer than kernels have matrices for"),
        pytest.param(forward(2048, 128), WITH_MATRICES, 24, False, id="as long as these"),
        pytest.param(forward(2048, 256, ""), WITH_MATRICES, 24, False, id="float32"),
        pytest.param(forward(2048, 256), GENERIC_GPU, 24, False, id="no matrices"),
        pytest.param(forward(2048, 256), CPU_DRIVER, 24, False, id="no GPU"),
        pytest.param(forward(2048, 256), WITH_MATRICES, 1, False, id="no memory for the scores"),
        pytest.param(forward(32, 256), WITH_MATRICES, 24, False, id="little to compute"),
    ],
)
def test_attention_of_long_heads_is_made_of_products_of_matrices(
    node: Node, profile: Any, gibibytes: int, suits: bool
) -> None:
    assert suits_products(node, profile, gibibytes << 30) == suits
    graph = graph_of(node.operands, [node])
    by_products = lambda each: suits_products(each, profile, gibibytes << 30)  # noqa: E731
    prepared = prepare(graph, Target(attention=Attention(by_products=by_products)))
    assert any(each.op == "attention" for each in prepared.nodes) != suits


@pytest.mark.parametrize(
    ("graph", "processors", "gibibytes", "few"),
    [
        pytest.param(gradients(16, 4096, 77, 40), 132, 24, True, id="an image that reads a text"),
        pytest.param(gradients(64, 4096, 77, 40), 132, 24, False, id="several images"),
        pytest.param(gradients(16, 4096, 77, 40), 32, 24, False, id="a small device"),
        pytest.param(gradients(16, 1024, 77, 40), 132, 24, False, id="fewer queries"),
        pytest.param(gradients(16, 4096, 4096, 40), 132, 24, False, id="as many keys"),
        pytest.param(gradients(16, 4096, 77, 40), 132, 0, False, id="no memory for the scores"),
    ],
)
def test_gradients_of_few_keys_over_many_queries_are_made_of_products(
    graph: Graph, processors: int, gibibytes: int, few: bool
) -> None:
    assert [has_few_keys(node, processors, gibibytes << 30) for node in graph.outputs] == [False, few, few]
