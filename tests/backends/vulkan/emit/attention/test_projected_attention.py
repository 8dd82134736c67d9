"""Attention of one query that is multiplied by a weight where it is computed, on the device with a GPU's schedules."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.emit.attention import few_queries_shape
from lavax.backends.vulkan.emit.attention.few_queries_shape import few_queries_shape as shape_of
from lavax.backends.vulkan.emit.attention.few_queries_shape import suits_one_kernel
from lavax.backends.vulkan.plan.profile import GENERIC_GPU, MatrixShape
from lavax.backends.vulkan.run.long_dispatches import with_long_dispatches_cut
from lavax.ir import Graph, Node, TensorType, float32, interpret
from lavax.ir.graph import graph_of, input_node
from lavax.ir.types import DTYPES
from lavax.passes.build.builder import add, build, cast, dot, reshape
from lavax.passes.build.inline import inline_calls
from lavax.passes.simplify import remove_stop_gradient
from tests.backends.vulkan.emit.attention.test_attention import gpu_schedule
from tests.backends.vulkan.run.execution import backend_with, run

BATCH = (2, 3)
HEADS = 6
rng = np.random.default_rng(17)
WHOLE = {"scale": 0.3, "fill": -np.inf, "lowest": -1 << 20, "highest": 1 << 20}
PLAIN = {**WHOLE, "biased": False, "masked": False, "empty": False, "precision": "", "rounded": False}
# Keys, elements of a head, columns of the weight, keys of a part, and attributes that differ from plain attention.
CASES: dict[str, tuple[int, int, int, int, dict[str, Any]]] = {
    "one part": (40, 16, 24, 64, {}),
    "parts": (64, 16, 24, 8, {}),
    "parts that are not equal": (43, 8, 16, 10, {}),
    "columns that no step divides": (64, 32, 20, 16, {}),
    "more columns than lanes": (64, 32, 68, 16, {}),
    "biased": (40, 16, 24, 8, {"biased": True}),
    "masked, nothing is nothing": (48, 16, 24, 8, {"masked": True, "empty": True}),
    "masked, nothing is no number": (48, 16, 24, 8, {"masked": True, "empty": False}),
    "masked with a finite number": (48, 8, 24, 8, {"masked": True, "fill": -1e9}),
    "a window": (40, 16, 24, 8, {"lowest": 2, "highest": 9}),
}


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def change(**changes: int) -> None:
        monkeypatch.setattr(few_queries_shape, "FEW_QUERIES", replace(few_queries_shape.FEW_QUERIES, **changes))

    return change


def _case(name: str) -> tuple[Graph, list[np.ndarray]]:
    keys, head, columns, _, changed = CASES[name]
    attrs = {**PLAIN, **changed}
    inputs, arrays = named_inputs(keys, head, attrs)
    weight, residual = _named("weight", columns, HEADS * head), _named("residual", columns)
    arrays = [*(rng.normal(size=node.shape).astype("f") for node in (weight, residual)), *arrays]
    vector = reshape(build("attention", *inputs, **attrs), (HEADS * head,))
    found = add(residual, dot(vector, weight, ((0,), (1,)), ((), ())))
    return graph_of([weight, residual, *inputs], [found]), arrays


def _named(operand: str, *shape: int, dtype: Any = float32) -> Node:
    return input_node(operand, TensorType(shape, dtype))


def named_inputs(keys: int, head: int, attrs: dict[str, Any]) -> tuple[list[Node], list[np.ndarray]]:
    """The operands of attention of one query a head with these attributes, and values for them."""
    inputs = [_named(name, *BATCH, rows, head) for name, rows in (("query", 1), ("key", keys), ("value", keys))]
    inputs += [_named("bias", *BATCH, 1, keys)] if attrs["biased"] else []
    inputs += [_named("mask", *BATCH, 1, keys, dtype=DTYPES["bool"])] if attrs["masked"] else []
    arrays: list[np.ndarray] = [rng.normal(size=node.shape).astype("f") for node in inputs]
    if attrs["masked"]:
        arrays[-1] = rng.uniform(size=inputs[-1].shape) < 0.4
        arrays[-1][0, 0] = False  # a head that sees nothing
    return inputs, arrays


def _agrees(graph: Graph, arrays: list[np.ndarray]) -> None:
    (found,), (expected,) = run(graph, arrays, device=gpu_schedule()), interpret(graph, *arrays, dtype=np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("few_steps", [4, 1])
@pytest.mark.parametrize("name", CASES)
def test_one_kernel_gives_the_sum(name: str, few_steps: int, limits: Callable[..., None]) -> None:
    """With one subgroup and with several."""
    limits(part=CASES[name][3], few_steps=few_steps)
    graph, arrays = _case(name)
    plan = gpu_schedule().lower(graph).plan
    assert sum("shared_arrived" in dispatch.shader.source for dispatch in plan.dispatches) == 1
    _agrees(graph, arrays)


def test_heads_without_a_visible_key_are_not_numbers_unless_they_are_nothing(limits: Callable[..., None]) -> None:
    limits(part=8)
    for name in ("masked, nothing is nothing", "masked, nothing is no number"):
        graph, arrays = _case(name)
        (found,) = run(graph, arrays, device=gpu_schedule())
        assert (np.isfinite(found) if CASES[name][-1]["empty"] else np.isnan(found)).all()


@pytest.mark.parametrize("nbytes", [0, 1 << 30])
def test_workgroups_without_visible_keys_still_count(nbytes: int, limits: Callable[..., None]) -> None:
    limits(part=8, skipped_bytes=nbytes)
    graph, arrays = _case("masked, nothing is nothing")
    arrays[-1][...] = np.arange(48) < 5
    plan = gpu_schedule().lower(graph).plan
    assert any("shared_visible" in dispatch.shader.source for dispatch in plan.dispatches) == (nbytes == 0)
    _agrees(graph, arrays)


def test_every_run_begins_with_nothing_counted_and_gives_the_same_bits(limits: Callable[..., None]) -> None:
    limits(part=8)
    graph, arrays = _case("parts")
    device = gpu_schedule()
    program = device.lower(graph).compile()
    for factor in (1, 2, -3):
        changed = [arrays[0] * factor, *arrays[1:]]
        buffers = list(map(device.upload, changed))
        found = [device.download(program(*buffers)[0], graph.outputs[0].type) for _ in range(3)]
        assert len({each.tobytes() for each in found}) == 1
        (expected,) = interpret(graph, *changed, dtype=np.float64)
        np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=5e-5)
    plan = device.lower(graph).plan
    assert not any(b"".join(plan.constants))
    assert with_long_dispatches_cut(plan, lambda dispatch: 2).dispatches == plan.dispatches


def test_memory_is_ordered_by_the_invocation_that_counts(limits: Callable[..., None]) -> None:
    """All write before the barrier behind which it counts, and read behind the one after it has counted."""
    limits(part=8)
    (dispatch,) = (each for each in gpu_schedule().lower(_case("parts")[0]).plan.dispatches)
    lines = [line.strip() for line in dispatch.shader.source.splitlines()]
    counted = [at for at, line in enumerate(lines) if "atomicAdd" in line]
    assert len(counted) == 2
    for at in counted:
        assert lines[at - 2 : at] == ["memoryBarrierBuffer();", "barrier();"]
        assert lines[at + 1] == "barrier();" and lines[at + 2].endswith("return;")
        assert lines[at + 3] == "memoryBarrierBuffer();"
    assert "gl_SubgroupID != 0u) return" not in dispatch.shader.source


KEYS, HEAD, WIDTH = 48, 16, 24
MATRICES = (MatrixShape("bf16", 8, 8, 8),)  # devices with such have attention round its result


def _step(query: Any, key: Any, value: Any, cache: Any, lengths: Any, weight: Any, residual: Any) -> Any:
    cache = cache.append(key, value, lengths)
    mixed = cache.attend(query, lengths)
    return residual + lnp.reshape(mixed, (-1,)) @ weight.T, cache


@pytest.mark.parametrize("dtype", [lnp.float32, lnp.bfloat16], ids=["float32", "bfloat16"])
def test_a_step_of_decoding_is_one_kernel_and_its_caches(dtype: Any, limits: Callable[..., None]) -> None:
    limits(part=8)
    kv, queries = 2, 4

    def drawn(*shape: int) -> Any:
        return rng.normal(size=shape).astype(dtype)

    cache = nn.KeyValueCache(drawn(1, KEYS, kv, HEAD), drawn(1, KEYS, kv, HEAD))
    arrays = [drawn(1, 1, queries, HEAD), drawn(1, 1, kv, HEAD), drawn(1, 1, kv, HEAD), cache]
    arrays += [np.array([20], np.int32), drawn(WIDTH, queries * HEAD), drawn(WIDTH)]
    graph = remove_stop_gradient(inline_calls(lx.trace(_step)(*arrays)))
    leaves = [np.asarray(leaf) for leaf in lx.tree.leaves(arrays)]
    gpu_schedule()  # skips where there are no subgroups for it
    device = backend_with(kind="gpu", matrices=MATRICES)
    kernels = [step.kernel for step in device.lower(graph).kernels.steps]
    ops = [node.op for kernel in kernels for node in kernel.graph.outputs]
    assert ops.count("attention_projected") == 1 and "attention" not in ops
    found, expected = run(graph, leaves, device=device), interpret(graph, *leaves, dtype=np.float64)
    for got, want in zip(found, expected, strict=True):
        tolerance = 1e-5 if dtype is lnp.float32 else 2.0**-6
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=4 * tolerance)


def _scaled(rows: Any) -> Any:
    return rows / lnp.sum(rows**2, axis=-1, keepdims=True)


# What memory holds of keys in float32 and of a weight, which may have other bits than what they are made of.
STORED: dict[str, tuple[Any, Any]] = {
    "keys of 16 bits in 32": (lnp.bfloat16, _scaled),
    "keys of 32 bits in 16": (lnp.float32, lambda key: _scaled(key).astype(lnp.bfloat16).astype("float32")),
}


@pytest.mark.parametrize("of_weight", [False, True], ids=["", "weight in 32 bits"])
@pytest.mark.parametrize("name", STORED)
def test_operands_that_are_stored_in_other_bits_keep_the_kernel(
    name: str, of_weight: bool, limits: Callable[..., None]
) -> None:
    """It is chosen before it is known what is stored, and no other kernel computes it."""
    limits(part=8)
    dtype, made = STORED[name]

    def function(query: Any, key: Any, value: Any, weight: Any, residual: Any) -> Any:
        weight = weight.astype("float32")
        mixed = nn.dot_product_attention(query, made(key.astype("float32")), value.astype("float32"))
        found = residual + lnp.reshape(mixed, (-1,)) @ weight.T
        return (found, weight) if of_weight else (found,)

    shapes = (1, 1, 4, HEAD), (1, KEYS, 4, HEAD), (1, KEYS, 4, HEAD), (WIDTH, 4 * HEAD), (WIDTH,)
    kinds = lnp.float32, dtype, dtype, dtype, lnp.float32
    arrays = [rng.normal(size=shape).astype(kind) for shape, kind in zip(shapes, kinds, strict=True)]
    graph = remove_stop_gradient(inline_calls(lx.trace(function)(*arrays)))
    kernels = [kernel for step in gpu_schedule().lower(graph).kernels.steps for kernel in step.kernels]
    (kernel,) = (each for each in kernels if each.graph.outputs[0].op == "attention_projected")
    key = next(node for node in kernel.graph.inputs if node.shape == shapes[1])
    assert key.dtype.bits == (32 if dtype is lnp.bfloat16 else 16)
    found, expected = run(graph, arrays, device=gpu_schedule()), interpret(graph, *arrays, dtype=np.float64)
    tolerance = 1e-5 if dtype is lnp.bfloat16 else 2.0**-8
    np.testing.assert_allclose(found[0], expected[0], rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_what_is_projected_has_a_schedule_whatever_its_operands_are_stored_in(dtype: str) -> None:
    profile = replace(GENERIC_GPU, subgroup_size=32, min_subgroup_size=32, max_subgroup_size=32)
    for sizes in ((9, 1 << 15, 64, 576), (9, 1 << 16, 64, 576), (9, 1024, 64, 4096), (300, 1024, 64, 64)):
        for of_weight in ("bf16", "f32"):
            found = shape_of(profile, {"attention_projected": of_sizes(*sizes, dtype, of_weight)})
            assert found is not None and found.parts <= 32
            assert found.parts * found.keys >= sizes[1] and found.projected * found.together >= sizes[3]


def of_sizes(heads: int, keys: int, head: int, columns: int, dtype: str, of_weight: str = "") -> Node:
    """As in a decoded token, whose keys and weights are stored in this dtype."""
    def stored(name: str, *shape: int, kind: str = dtype) -> Node:
        node = input_node(name, TensorType(shape, DTYPES[kind]))
        return node if kind == "f32" else cast(node, float32)

    operands = [stored("query", heads, 1, head), stored("key", heads, keys, head), stored("value", heads, keys, head)]
    weight = stored("weight", heads, head, columns, kind=of_weight or dtype)
    return build("attention_projected", *operands, weight, stored("residual", columns), **PLAIN)


@pytest.mark.parametrize(
    ("sizes", "local"),
    [
        ((9, 1024, 64, 576, "bf16"), 256),
        ((9, 512, 32, 576, "f32"), 256),
        ((9, 1024, 64, 576, "f32"), 512),
        ((15, 1024, 64, 960, "bf16"), 512),
        ((9, 1024, 64, 640, "f32"), None),  # a head's part of the weight is 160 KiB
        ((32, 1024, 64, 2048, "bf16"), None),  # 256 KiB
        ((128, 1024, 64, 64, "bf16"), 512),
        ((129, 1024, 64, 64, "bf16"), None),  # the workgroup that ends last would have much to add up
        ((9, 1 << 15, 64, 576, "bf16"), 1024),
        ((9, 1 << 16, 64, 576, "bf16"), None),  # more keys than lanes have registers for
        ((9, 1024, 64, 574, "bf16"), None),  # columns that are no vectors
        ((9, 1024, 64, 576, "bf16", "f32"), None),  # lanes read other elements of keys than of weights
    ],
)
def test_a_weight_is_multiplied_by_workgroups_that_hold_their_part_of_it(sizes: Any, local: int | None) -> None:
    profile = replace(GENERIC_GPU, subgroup_size=32, min_subgroup_size=32, max_subgroup_size=32)
    node = of_sizes(*sizes)
    found = shape_of(profile, {node.op: node}) if suits_one_kernel(node, profile) else None
    assert (None if found is None else found.local) == local
    limits = few_queries_shape.FEW_QUERIES
    parts = min(sizes[1] // 128, 512 // sizes[0], 32)
    assert found is None or (found.projected <= limits.projected and found.parts == parts)
