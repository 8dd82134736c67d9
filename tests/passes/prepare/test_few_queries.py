"""Attention of few queries as kernels over rows: the same numbers for every mask, and hidden keys count nowhere."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, MatrixShape
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, Node, TensorType, float32, interpret
from lavax.ir.graph import graph_of, input_node
from lavax.ir.types import DTYPES
from lavax.passes.build.builder import build
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.decompose import few_queries
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient

BATCH, HEAD, VALUES = (2, 3), 8, 4
rng = np.random.default_rng(5)
# Queries, keys, and attributes that differ from plain attention.
CASES: dict[str, tuple[int, int, dict[str, Any]]] = {
    "plain": (1, 24, {}),
    "two queries, biased": (2, 24, {"biased": True}),
    "masked": (1, 24, {"masked": True, "empty": True}),
    "masked with a finite number": (2, 24, {"masked": True, "fill": -1e9}),
    "a window": (3, 24, {"lowest": 2, "highest": 9}),
    "one key": (1, 1, {}),
    "keys in no equal parts": (1, 23, {"masked": True, "empty": True}),
}
WHOLE = {"scale": 0.3, "fill": -np.inf, "lowest": -1 << 20, "highest": 1 << 20}
PLAIN = {**WHOLE, "biased": False, "masked": False, "empty": False}


def _attention(queries: int, keys: int, attrs: dict[str, Any]) -> tuple[list[Node], Node]:
    def named(name: str, *shape: int, dtype: Any = float32) -> Node:
        return input_node(name, TensorType((*BATCH, *shape), dtype))

    inputs = [named("query", queries, HEAD), named("key", keys, HEAD), named("value", keys, VALUES)]
    inputs += [named("bias", queries, keys)] if attrs["biased"] else []
    inputs += [named("mask", queries, keys, dtype=DTYPES["bool"])] if attrs["masked"] else []
    return inputs, build("attention", *inputs, **attrs)


def _arrays(inputs: list[Node], attrs: dict[str, Any]) -> list[np.ndarray]:
    arrays = [rng.normal(size=node.shape).astype("f") for node in inputs]
    if attrs["masked"]:
        arrays[-1] = rng.uniform(size=inputs[-1].shape) < 0.4
        arrays[-1][0, 0] = False  # queries that see nothing
        arrays[-1][1, 0, :, -1] = True
    return arrays


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("part", [2048, 6])
def test_rows_give_attention(name: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_queries, "FEW_QUERIES", replace(few_queries.FEW_QUERIES, keys=part, part=part))
    queries, keys, changed = CASES[name]
    attrs = {**PLAIN, **changed}
    inputs, node = _attention(queries, keys, attrs)
    arrays = _arrays(inputs, attrs)
    (expected,) = interpret(graph_of(inputs, [node]), *arrays, dtype=np.float64)
    (found,) = interpret(graph_of(inputs, [few_queries.by_rows(node)]), *arrays, dtype=np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    (single,) = interpret(graph_of(inputs, [few_queries.by_rows(node)]), *arrays)
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=1e-5)


def test_hidden_keys_are_not_read() -> None:
    attrs = {**PLAIN, "masked": True}
    inputs, node = _attention(1, 8, attrs)
    arrays = _arrays(inputs, attrs)
    arrays[3][...] = np.arange(8) < 5
    (expected,) = interpret(graph_of(inputs, [few_queries.by_rows(node)]), *arrays)
    for array in arrays[1:3]:
        array[..., 5:, :] = np.nan
    (found,) = interpret(graph_of(inputs, [few_queries.by_rows(node)]), *arrays)
    np.testing.assert_array_equal(found, expected)


def _decode(query: Any, keys: Any, values: Any, length: Any) -> Any:
    return nn.dot_product_attention(query, keys, values, mask=(lnp.arange(64) <= length)[None, None, None])


def _program(graph: Graph, profile: Any) -> KernelProgram:
    target = target_of(profile, 1 << 34, 1 << 32)
    return schedule(prepare(graph, target), target=target)


MATRICES = tuple(MatrixShape(dtype, 16, 16, 16) for dtype in ("bf16", "f16"))


# What a GPU makes of a head: one kernel and the result in order, or, if lanes cannot share a key evenly, two over rows.
KERNELS = {16: ["routine", "map"], 24: ["row", "row"]}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("matrices", [(), MATRICES], ids=["no matrices", "matrices"])
@pytest.mark.parametrize("head", KERNELS)
def test_a_gpu_takes_two_kernels_for_a_cache_in_its_own_dtype(head: int, matrices: Any, dtype: str) -> None:
    kind = lnp.bfloat16 if dtype == "bfloat16" else np.float32
    arrays = [rng.normal(size=(1, n, heads, head)).astype(kind) for n, heads in ((1, 4), (64, 2), (64, 2))]
    graph = remove_stop_gradient(lx.trace(_decode)(*arrays, np.int32(40)))
    profile = replace(GENERIC_GPU, matrices=matrices, float16=True, storage_16bit=True, memory_model=True)
    program = _program(graph, profile)
    assert [step.kernel.kind for step in program.steps] == KERNELS[head]
    (found,), (expected,) = interpret_kernels(program, *arrays, 40), interpret(graph, *arrays, 40)
    tolerance = 1e-5 if dtype == "float32" else 1 / 64
    np.testing.assert_allclose(found.astype("f"), expected.astype("f"), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_cpu_driver_takes_one_kernel(dtype: str) -> None:
    kind = lnp.bfloat16 if dtype == "bfloat16" else np.float32
    arrays = [rng.normal(size=(1, n, heads, 16)).astype(kind) for n, heads in ((1, 4), (64, 2), (64, 2))]
    steps = _program(remove_stop_gradient(lx.trace(_decode)(*arrays, np.int32(40))), CPU_DRIVER).steps
    kinds = [step.kernel.kind for step in steps]
    assert kinds.count("routine") == 1 and "row" not in kinds
    assert all(size < 64 * 2 * 16 * 4 for size in (node.type.nbytes for s in steps for node in s.kernel.graph.outputs))


def test_many_queries_keep_their_kernel() -> None:
    arrays = [rng.normal(size=(1, 64, 2, 16)).astype("f") for _ in range(3)]
    graph = remove_stop_gradient(lx.trace(lambda q, k, v: nn.dot_product_attention(q, k, v))(*arrays))
    assert _program(graph, GENERIC_GPU).steps[0].kernel.kind == "routine"
