"""Heads of one query whose products with a weight are added up by the next kernel, with a GPU's schedules."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.emit.attention import few_queries_shape
from lavax.backends.vulkan.emit.attention.few_queries_shape import leaves_heads
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.plan.plan import Plan
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.ir import Graph, TensorType, float32, interpret
from lavax.ir.graph import graph_of, input_node
from lavax.ir.ops.attention import PROJECTED
from lavax.nn.modules.quantized import QuantizedMatrix
from lavax.passes.build.builder import build
from lavax.passes.build.inline import inline_calls
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.attention.test_attention import gpu_schedule
from tests.backends.vulkan.emit.attention.test_projected_attention import (
    BATCH,
    CASES,
    MATRICES,
    PLAIN,
    named_inputs,
    of_sizes,
)
from tests.backends.vulkan.emit.test_small_devices import with_lanes
from tests.backends.vulkan.run.execution import backend_with, run

KEYS, HEAD, KV, QUERIES, MIDDLE = 48, 16, 2, 4, 80
rng = np.random.default_rng(23)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def change(**changes: int) -> None:
        monkeypatch.setattr(few_queries_shape, "FEW_QUERIES", replace(few_queries_shape.FEW_QUERIES, **changes))

    return change


@pytest.mark.parametrize("few_steps", [4, 1])
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_gives_the_products_of_each_head(
    name: str, few_steps: int, limits: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAVAX_VERIFY", "0")  # lowering makes this operation later
    keys, head, columns, part, changed = CASES[name]
    limits(part=part, few_steps=few_steps)
    attrs = {**PLAIN, **changed}
    inputs, arrays = named_inputs(keys, head, attrs)
    weight = input_node("weight", TensorType((*BATCH, head, columns), float32))
    inputs.insert(3, weight)
    arrays.insert(3, rng.normal(size=weight.shape).astype("f"))
    graph = graph_of(inputs, [build("attention_head_products", *inputs, **attrs)])
    plan = gpu_schedule().lower(graph).plan
    (dispatch,) = plan.dispatches
    assert dispatch.shader.source.count("atomicAdd") == 1
    (found,), (expected,) = run(graph, arrays, device=gpu_schedule()), interpret(graph, *arrays, dtype=np.float64)
    assert found.shape == (*BATCH, columns)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


def _width(lanes: int | None) -> int:
    """Columns that keep a subgroup, by default the device's, busy: workgroups of the next kernel share them."""
    return max(64, VECTOR * (lanes or gpu_schedule().profile.subgroup_size))


def _normed(x: Any, scale: Any) -> Any:
    wide = x.astype("float32")
    return (wide / lnp.sqrt(lnp.mean(wide * wide) + 1e-5)).astype(x.dtype) * scale


def _layer(of: dict[str, Any], residual: Any, query: Any) -> tuple[Any, Any]:
    cache = of["cache"].append(of["key"], of["value"], of["lengths"])
    mixed = cache.attend(query, of["lengths"])
    hidden = residual + lnp.reshape(mixed, (-1,)) @ of["weight"].T
    normed = _normed(hidden, of["scale"])
    middle = lnp.maximum(of["gate"] @ normed, 0) * (of["up"] @ normed)
    return hidden + of["down"] @ middle, cache


def _one(of: dict[str, Any]) -> Any:
    return _layer(of, of["residual"], of["query"])


def _two(of: dict[str, Any]) -> Any:
    """Of which the second layer has the query and the residual of the first."""
    hidden, cache = _one(of)
    query = lnp.reshape(of["of_query"] @ _normed(hidden, of["scale"]), (1, 1, QUERIES, HEAD))
    return *_layer(of, hidden, query), cache


def _drawn(dtype: Any, lanes: int | None = None) -> dict[str, Any]:
    def drawn(*shape: int, size: float = 1) -> Any:
        return (size * rng.normal(size=shape)).astype(dtype)

    width = _width(lanes)
    cache = nn.KeyValueCache(drawn(1, KEYS, KV, HEAD), drawn(1, KEYS, KV, HEAD))
    return dict(
        query=drawn(1, 1, QUERIES, HEAD), key=drawn(1, 1, KV, HEAD), value=drawn(1, 1, KV, HEAD), cache=cache,
        lengths=np.array([20], np.int32), weight=drawn(width, QUERIES * HEAD, size=0.1), residual=drawn(width),
        scale=drawn(width), gate=drawn(MIDDLE, width, size=0.1), up=drawn(MIDDLE, width, size=0.1),
        down=drawn(width, MIDDLE, size=0.1), of_query=drawn(QUERIES * HEAD, width, size=0.1),
    )


def _traced(arrays: dict[str, Any], function: Callable[..., Any] = _one) -> tuple[Graph, list[np.ndarray]]:
    graph = remove_stop_gradient(inline_calls(lx.trace(function)(arrays)))
    return graph, [np.asarray(leaf) for leaf in lx.tree.leaves(arrays)]


@pytest.mark.parametrize(("function", "layers"), [(_one, 1), (_two, 2)], ids=["one", "two"])
@pytest.mark.parametrize("dtype", [lnp.float32, lnp.bfloat16], ids=["float32", "bfloat16"])
def test_layers_are_three_kernels_and_their_caches(
    dtype: Any, function: Callable[..., Any], layers: int, limits: Callable[..., None]
) -> None:
    """Its numbers have the bits of those of a kernel that adds up the heads: both add in the same order."""
    gpu_schedule()  # skips where there are no subgroups for it
    graph, leaves = _traced(_drawn(dtype), function)
    found = {}
    for most, ops in ((0, ["attention_projected"]), (1 << 25, ["attention_head_products"])):
        limits(part=8, added=most)
        device = backend_with(kind="gpu", matrices=MATRICES)
        kernels = [kernel for step in device.lower(graph).kernels.steps for kernel in step.kernels]
        outputs = [node for kernel in kernels for node in kernel.graph.outputs]
        assert [node.op for node in outputs if node.op.startswith("attention")] == layers * ops
        assert all(node.dtype.bits == 8 * np.dtype(dtype).itemsize or node.op in PROJECTED for node in outputs)
        assert [kernel.kind for kernel in kernels].count("row") == len(outputs) - 3 * layers == 3 * layers - 1
        found[most] = run(graph, leaves, device=device)
    for one, other in zip(*found.values(), strict=True):
        assert one.tobytes() == other.tobytes()
    tolerance = 1e-5 if dtype is lnp.float32 else 2.0**-5
    for got, want in zip(found[1 << 25], interpret(graph, *leaves, dtype=np.float64), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("lanes", [16, 32, 64])
def test_layers_leave_heads_on_devices_of_any_lanes(lanes: int, limits: Callable[..., None]) -> None:
    """Shaders for devices that need not be there."""
    limits(part=8)
    graph, _ = _traced(_drawn(np.float32, lanes))
    device = VulkanBackend()
    device.profile = with_lanes(lanes, max_workgroup_invocations=1024, shared_memory_bytes=32768)
    lowered = device.lower(graph)
    outputs = [node for step in lowered.kernels.steps for kernel in step.kernels for node in kernel.graph.outputs]
    assert [node.op for node in outputs if node.op.startswith("attention")] == ["attention_head_products"]
    _assert_heads_are_added_once(lowered.plan)


@pytest.mark.parametrize("kind", ["int8", "int4"])
def test_heads_are_multiplied_by_integers_where_words_hold_several(kind: str, limits: Callable[..., None]) -> None:
    """Three kernels a layer and its caches, as with weights of floats."""
    limits(part=8)
    arrays = _drawn(np.float32)
    arrays |= {name: QuantizedMatrix.of(arrays[name], kind, HEAD) for name in ("weight", "gate", "up", "down")}
    graph, leaves = _traced(arrays, _integer_layer)
    lowered = gpu_schedule().lower(graph)
    kernels = [kernel for step in lowered.kernels.steps for kernel in step.kernels]
    outputs = [node.op for kernel in kernels for node in kernel.graph.outputs]
    assert outputs.count("attention_head_products") == 1
    assert [kernel.kind for kernel in kernels].count("row") == len(outputs) - 3 == 2
    found = run(graph, leaves, device=gpu_schedule())
    for got, want in zip(found, interpret(graph, *leaves, dtype=np.float64), strict=True):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=1e-5, atol=4e-5)


def _integer_layer(of: dict[str, Any]) -> tuple[Any, Any]:
    cache = of["cache"].append(of["key"], of["value"], of["lengths"])
    mixed = cache.attend(of["query"], of["lengths"])
    hidden = of["residual"] + of["weight"].product(lnp.reshape(mixed, (1, 1, -1)))
    normed = _normed(hidden, of["scale"])
    middle = lnp.maximum(of["gate"].product(normed), 0) * of["up"].product(normed)
    return hidden + of["down"].product(middle), cache


def test_every_run_begins_with_nothing_counted_and_gives_the_same_bits(limits: Callable[..., None]) -> None:
    limits(part=8)
    graph, leaves = _traced(_drawn(np.float32))
    device = gpu_schedule()
    program = device.lower(graph).compile()
    buffers = list(map(device.upload, leaves))
    found = [device.download(program(*buffers)[0], graph.outputs[0].type) for _ in range(3)]
    assert len({each.tobytes() for each in found}) == 1


def test_a_workgroup_of_the_products_computes_the_sum_of_heads_once(limits: Callable[..., None]) -> None:
    limits(part=8)
    _assert_heads_are_added_once(gpu_schedule().lower(_traced(_drawn(np.float32))[0]).plan)


def _assert_heads_are_added_once(plan: Plan) -> None:
    (norm,) = (each.shader.source for each in plan.dispatches if "scratch" in each.shader.source)
    reads = Counter(re.findall(r"F32x4\((p\d+)\)\.data\[\(?c0", norm))
    assert sorted(reads.values()) == [1, 1, QUERIES]  # of the residual, of the norm's weight, and of the heads


@pytest.mark.parametrize(
    ("heads", "columns", "rows", "leaves"),
    [
        (9, 576, 3072, True),  # 20 KiB for each workgroup of a few hundred
        (9, 124, 3072, False),  # a subgroup is not busy with such a vector, so that no workgroup shares it
        (15, 960, 5120, False),  # 56 KiB for more of them
        (9, 576, 49152, False),
    ],
)
def test_products_add_up_heads_where_they_read_little_for_it(heads: int, columns: int, rows: int, leaves: bool) -> None:
    profile = replace(GENERIC_GPU, subgroup_size=32, min_subgroup_size=32, max_subgroup_size=32)
    assert leaves_heads(of_sizes(heads, 1024, 64, columns, "bf16"), rows, profile) == leaves
