"""Attention of few queries in the kernel of GPUs, on the device: every mask, parts of keys, caches of 16 bits."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.emit.attention import few_queries_shape
from lavax.ir import Graph, Node, TensorType, float32, interpret
from lavax.ir.graph import graph_of, input_node
from lavax.ir.types import DTYPES
from lavax.passes.build.builder import build
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.attention.test_attention import gpu_schedule
from tests.backends.vulkan.run.execution import run

BATCH = (2, 3)
rng = np.random.default_rng(9)
# Queries, keys, elements of a head, and attributes that differ from plain attention.
CASES: dict[str, tuple[int, int, int, dict[str, Any]]] = {
    "plain": (1, 64, 16, {}),
    "a number of keys that no step divides": (1, 43, 8, {}),
    "two queries, biased": (2, 40, 16, {"biased": True}),
    "masked": (1, 48, 16, {"masked": True, "empty": True}),
    "masked, nothing is not a number": (1, 48, 16, {"masked": True}),
    "masked with a finite number": (2, 48, 8, {"masked": True, "fill": -1e9}),
    "a window": (3, 40, 16, {"lowest": 2, "highest": 9}),
    "a window, masked and biased": (4, 96, 8, {"lowest": -1, "highest": 60, "masked": True, "biased": True}),
    "a head as long as a subgroup": (1, 33, 32, {}),
}
WHOLE = {"scale": 0.3, "fill": -np.inf, "lowest": -1 << 20, "highest": 1 << 20}
PLAIN = {**WHOLE, "biased": False, "masked": False, "empty": False}


def _case(name: str, op: str = "attention") -> tuple[Graph, list[np.ndarray]]:
    queries, keys, head, changed = CASES[name]
    attrs = {**PLAIN, **changed}

    def named(operand: str, *shape: int, dtype: Any = float32) -> Node:
        return input_node(operand, TensorType((*BATCH, *shape), dtype))

    inputs = [named("query", queries, head), named("key", keys, head), named("value", keys, head)]
    inputs += [named("bias", queries, keys)] if attrs["biased"] else []
    inputs += [named("mask", queries, keys, dtype=DTYPES["bool"])] if attrs["masked"] else []
    arrays = [rng.normal(size=node.shape).astype("f") for node in inputs]
    if attrs["masked"]:
        arrays[-1] = rng.uniform(size=inputs[-1].shape) < 0.4
        arrays[-1][0, 0] = False  # queries that see nothing
    if op == "attention_logsumexp":
        del inputs[2], arrays[2]
    return graph_of(inputs, [build(op, *inputs, **attrs)]), arrays


def _check(graph: Graph, arrays: Sequence[np.ndarray], kernels: int | None = None) -> None:
    device = gpu_schedule()
    steps = device.lower(graph).kernels.steps
    assert any(node.op == graph.outputs[0].op for step in steps for node in step.kernel.graph.outputs)
    assert kernels is None or len(steps) == kernels
    (found,), (expected,) = run(graph, arrays, device=device), interpret(graph, *arrays, dtype=np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_one_kernel_gives_attention(name: str) -> None:
    _check(*_case(name), kernels=1)


@pytest.mark.parametrize("op", ["attention", "attention_logsumexp"])
@pytest.mark.parametrize("part", [8, 20])
@pytest.mark.parametrize("name", CASES)
def test_the_last_workgroup_joins_parts_of_the_keys(
    name: str, part: int, op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_queries_shape, "FEW_QUERIES", replace(few_queries_shape.FEW_QUERIES, part=part))
    _check(*_case(name, op), kernels=1)


@pytest.mark.parametrize("part", [16, 48])
@pytest.mark.parametrize("nbytes", [0, 1 << 30])
def test_hidden_keys_have_no_effect(nbytes: int, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From so many bytes of keys on workgroups that see none are not computed either."""
    limits = replace(few_queries_shape.FEW_QUERIES, part=part, skipped_bytes=nbytes)
    monkeypatch.setattr(few_queries_shape, "FEW_QUERIES", limits)
    graph, arrays = _case("masked")
    arrays[3][...] = np.arange(48) < 5
    arrays[3][1, 2] = False
    (expected,) = interpret(graph, *arrays)
    for array in arrays[1:3]:
        array[..., 5:, :] = np.nan
    plan = gpu_schedule().lower(graph).plan
    assert any("shared_visible" in dispatch.shader.source for dispatch in plan.dispatches) == (nbytes == 0)
    (found,) = run(graph, arrays, device=gpu_schedule())
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in CASES if "masked" in name])
def test_workgroups_without_visible_keys_are_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(few_queries_shape.FEW_QUERIES, part=16, skipped_bytes=0)
    monkeypatch.setattr(few_queries_shape, "FEW_QUERIES", limits)
    _check(*_case(name), kernels=1)


KEYS, HEADS, HEAD = 48, 2, 16


def _attend(query: Any, key: Any, value: Any, cache: Any, lengths: Any, weight: Any) -> Any:
    cache = cache.append(key, value, lengths)
    mixed = cache.attend(query, lengths)
    return weight @ lnp.reshape(mixed, (-1,)), cache


def _decoding(dtype: Any) -> tuple[Graph, list[np.ndarray]]:
    """A product of what attention to a cache with a new row gives."""
    def drawn(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype("f").astype(dtype)

    news = [drawn(1, 1, heads, HEAD) for heads in (2 * HEADS, HEADS, HEADS)]
    cache = nn.KeyValueCache(*(drawn(1, KEYS, HEADS, HEAD) for _ in range(2)))
    lengths, weight = np.array([KEYS - 7], np.int32), drawn(24, 2 * HEADS * HEAD)
    graph = remove_stop_gradient(lx.trace(_attend)(*news, cache, lengths, weight))
    return graph, [*news, cache.keys, cache.values, lengths, weight]


@pytest.mark.parametrize("nbytes", [0, 1 << 30])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_new_row_is_read_where_it_is_made(
    dtype: str, parts: int, nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = replace(few_queries_shape.FEW_QUERIES, part=KEYS // parts, keys=8, skipped_bytes=nbytes)
    monkeypatch.setattr(few_queries_shape, "FEW_QUERIES", limits)
    graph, arrays = _decoding(getattr(lnp, dtype))
    device = gpu_schedule()
    steps = device.lower(graph).kernels.steps
    kernels = [kernel for step in steps for kernel in step.kernels]
    computing = [kernel for kernel in kernels if kernel.graph.outputs[0].op != "scatter_set"]
    assert [kernel.kind for kernel in computing] == ["routine", "row"]
    tolerance = 1e-5 if dtype == "float32" else 1 / 64
    found, expected = run(graph, arrays, device=device), interpret(graph, *arrays)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got.astype("f"), want.astype("f"), rtol=tolerance, atol=tolerance)
