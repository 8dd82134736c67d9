"""Attention and its gradients on the device against the interpreter, by both schedules; memory and repetition."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.nn as nn
import lavax.numpy as lnp
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.emit.attention import choose
from lavax.backends.vulkan.emit.attention.workgroup_shape import WorkgroupShape, fitted
from lavax.ir import Graph, TensorType, bool_, float32, interpret, parse
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.ops.attention import OPERANDS
from lavax.passes.prepare.decompose import attention as attention_parts
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.kernel_limits import ATTENTION
from lavax.passes.target.target import Attention
from tests.backends.vulkan.emit.emission import PROFILES, dispatches_of
from tests.backends.vulkan.run.execution import backend, backend_with, run
from tests.passes.lowering import f32

# batch, queries, keys, query heads, heads, head, head of the values, settings
CASES: dict[str, tuple[int, int, int, int, int, int, int, dict[str, Any]]] = {
    "one": (1, 1, 1, 1, 1, 1, 1, {}),
    "head 1": (1, 33, 70, 2, 2, 1, 1, {}),
    "head 3": (1, 5, 41, 3, 1, 3, 3, {}),
    "head 8": (2, 64, 64, 1, 1, 8, 8, dict(is_causal=True)),
    "head 17": (1, 67, 53, 2, 1, 17, 5, dict(local_window_size=(9, 3))),
    "head 64": (1, 130, 130, 2, 2, 64, 64, dict(is_causal=True, local_window_size=40)),
    "head 80": (1, 35, 66, 2, 1, 80, 80, dict(is_causal=True)),
    "head 128": (1, 40, 96, 4, 2, 128, 128, {}),
    "head 256": (1, 36, 35, 1, 1, 256, 256, dict(is_causal=True)),
    "head 300, which no kernel of attention takes": (1, 9, 12, 2, 1, 300, 300, dict(is_causal=True)),
}


def graph_of_case(name: str, gradient: bool) -> tuple[Graph, list[np.ndarray]]:
    batch, queries, keys, query_heads, heads, head, values, settings = CASES[name]
    random = np.random.default_rng(len(name))
    shapes = [(queries, query_heads, head), (keys, heads, head), (keys, heads, values), (queries, query_heads, values)]
    arrays = [random.normal(size=(batch, *shape)).astype(np.float32) for shape in shapes]

    def attention(q: Any, k: Any, v: Any) -> Any:
        return nn.dot_product_attention(q, k, v, **settings)

    def loss(q: Any, k: Any, v: Any, w: Any) -> Any:
        return 3 * lnp.sum(w * lnp.sin(attention(q, k, v)))

    traced = lx.trace(lx.grad(loss, argnums=(0, 1, 2)))(*arrays) if gradient else lx.trace(attention)(*arrays[:3])
    return remove_stop_gradient(traced), arrays if gradient else arrays[:3]


def assert_close(
    graph: Graph, arrays: Sequence[np.ndarray], eager: bool = False, device: VulkanBackend | None = None
) -> None:
    """Sums of some hundred products of numbers of size 1, and exp of such: a few dozen units of the largest result."""
    found = run(graph, arrays, eager=eager, device=device)
    for got, want in zip(found, interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=64 * 2.0**-23 * max(np.abs(want).max(), 1))


def gpu_schedule() -> VulkanBackend:
    """The device as if it were a GPU: with shared memory and barriers, which a CPU driver takes as well."""
    if backend().profile.subgroup_size < 8:
        pytest.skip("eight invocations share a row by shuffles: subgroups must be as large")
    return backend_with(kind="gpu")


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_interpreter(name: str, gradient: bool) -> None:
    graph, arrays = graph_of_case(name, gradient)
    assert_close(graph, arrays)


# A CPU driver compiles these shaders slowly, most of all where heads do not divide by four.
SLOW = pytest.mark.long


@pytest.mark.parametrize(
    ("name", "gradient"),
    [
        ("one", False),
        pytest.param("head 3", True, marks=SLOW),
        pytest.param("head 8", True, marks=SLOW),
        pytest.param("head 17", False, marks=SLOW),
        pytest.param("head 17", True, marks=SLOW),
        ("head 64", False),
        pytest.param("head 64", True, marks=SLOW),
        pytest.param("head 80", False, marks=SLOW),
        pytest.param("head 80", True, marks=SLOW),
        pytest.param("head 128", True, marks=SLOW),
        pytest.param("head 256", True, marks=SLOW),
    ],
)
def test_the_schedule_of_gpus_agrees_too(name: str, gradient: bool) -> None:
    graph, arrays = graph_of_case(name, gradient)
    assert_close(graph, arrays, eager=name == "head 17", device=gpu_schedule())


# Each width of a line of invocations, which here are up to four subgroups; short loops, which drivers unroll.
SHAPES = (
    WorkgroupShape(4, 8, 4, 1, depth=4, share=8, chunk=16),
    WorkgroupShape(2, 16, 4, 1, depth=8, share=8, chunk=16),
    WorkgroupShape(2, 32, 4, 1, depth=16, share=8, chunk=32),
)


@pytest.mark.parametrize(
    ("name", "gradient", "shape"),
    [
        *(("head 17", False, shape) for shape in SHAPES),
        ("head 8", True, SHAPES[0]),
        *(pytest.param("head 17", True, shape, marks=SLOW) for shape in SHAPES),
        *(pytest.param("head 128", True, shape, marks=SLOW) for shape in SHAPES),
    ],
)
def test_every_shape_of_a_workgroup_agrees(
    name: str, gradient: bool, shape: WorkgroupShape, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = gpu_schedule()
    given = lambda profile, problem, stages, *_: fitted(shape, profile, stages)  # noqa: E731
    monkeypatch.setattr(choose, "choose_workgroup_shape", given)
    assert_close(*graph_of_case(name, gradient), eager=shape is SHAPES[0], device=device)


@pytest.mark.parametrize(
    ("queries", "keys", "head", "window"),
    [
        (70, 40, 32, dict(lowest=-20, highest=0)),  # blocks gone past on both sides, rows and columns beyond the last
        pytest.param(70, 40, 32, dict(lowest=-69, highest=0), marks=SLOW),
        pytest.param(64, 64, 64, dict(lowest=-63, highest=63), marks=SLOW),
        pytest.param(70, 90, 32, dict(lowest=-9, highest=20), marks=SLOW),
    ],
)
def test_parts_of_the_gradient_of_queries(
    queries: int, keys: int, head: int, window: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kernel computes them beside the gradients of keys and values, and their sum is that of queries."""
    device = gpu_schedule()
    shape = WorkgroupShape(4, 8, 4, 1, depth=8, share=8, chunk=16)
    given = lambda profile, problem, stages, *_: fitted(shape, profile, stages)  # noqa: E731
    monkeypatch.setattr(choose, "choose_workgroup_shape", given)
    monkeypatch.setattr(choose, "keeps_busy", lambda *_: True)
    parts = Attention(query_parts=lambda node: choose.block_of_parts(node, device.profile))
    target = replace(device.target, attention=parts)
    monkeypatch.setitem(device.__dict__, "target", target)
    shapes = {"query": (queries, head), "key": (keys, head), "value": (keys, head), "cotangent": (queries, head)}
    shapes |= {"delta": (queries,), "logsumexp": (queries,)}
    inputs = {name: input_node(name, TensorType((2, *of), float32)) for name, of in shapes.items()}
    attrs = dict(scale=head**-0.5, fill=-np.inf, biased=False, masked=False, **window)
    ops = [f"attention_{of}_gradient" for of in ("query", "key", "value")]
    graph = graph_of(inputs.values(), [make_node(op, [inputs[o] for o in OPERANDS[op]], attrs) for op in ops])
    assert [node.op for node in prepare(graph, device.target).nodes if "query" in node.op] == ["attention_query_parts"]
    random = np.random.default_rng(5)
    arrays = [random.normal(size=node.shape).astype(np.float32) for node in graph.inputs]
    arrays[-1] = arrays[-1] + 2
    plan = device.lower(graph).plan
    assert len(plan.dispatches) == 2
    # The program's temporaries get this memory: whatever is not written is NaN.
    device.upload(np.full(plan.arena_bytes // 4, np.nan, np.float32))
    assert_close(graph, arrays, device=device)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_operands_with_a_mask_and_a_bias_on_a_gpu(dtype: str) -> None:
    """Operands are read as they are; scores, weights and sums are float32."""
    attrs = "scale=0.5 fill=-inf lowest=-8 highest=12 biased=true masked=true empty=true"
    graph = parse(f"""
        graph (q: {dtype}[2,9,8], k: {dtype}[2,13,8], v: {dtype}[2,13,5], b: {dtype}[2,9,13], m: bool[2,9,13]) {{
          %0 = attention(q, k, v, b, m) {attrs} : {dtype}[2,9,5]
          return %0
        }}
    """)
    random = np.random.default_rng(4)
    arrays = [node.dtype.rounded(random.normal(size=node.shape)) for node in graph.inputs[:4]]
    arrays.append(random.random(graph.inputs[4].shape) < 0.6)
    (found,) = run(graph, arrays, device=gpu_schedule())
    (want,) = interpret(graph, *arrays, dtype=np.float64)
    unit = {"f16": 2.0**-11, "bf16": 2.0**-8}[dtype]
    np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), rtol=2 * unit, atol=2 * unit)


def test_without_shuffles_every_invocation_loads_all_columns() -> None:
    assert_close(*graph_of_case("head 17", gradient=True), device=backend_with(subgroup_shuffle=False))


@pytest.mark.parametrize("profile", PROFILES)
def test_gradients_take_three_kernels_of_attention(profile: str) -> None:
    """Out and logsumexp in one, the gradients of keys and values in one."""
    graph, _ = graph_of_case("head 64", gradient=True)
    sources = [dispatch.shader.source for dispatch in dispatches_of(graph, PROFILES[profile])]
    assert sum("lx_exp_nonpositive(" in source for source in sources) == 3


def test_second_order() -> None:
    def loss(q: Any) -> Any:
        return lnp.sum(lnp.sin(nn.softmax(q @ q.mT) @ q))

    def curvature(q: Any) -> Any:
        return lnp.sum(lx.grad(loss)(q) ** 2)

    graph = remove_stop_gradient(lx.trace(lx.grad(curvature))(f32(2, 24, 4)))
    assert any(node.op == "attention" for node in graph.nodes)
    assert_close(graph, [np.random.default_rng(0).normal(size=(2, 24, 4)).astype(np.float32) / 2])


def test_in_a_loop() -> None:
    """Bodies of loops are differentiated as they are: the same node may be there twice."""
    random = np.random.default_rng(3)
    weights = (random.normal(size=(3, 8, 8)) * 0.3).astype(np.float32)
    x = random.normal(size=(2, 33, 8)).astype(np.float32)

    def layer(x: Any, w: Any) -> tuple[Any, Any]:
        h = x @ w
        return x + nn.softmax(h @ h.mT) @ h, lnp.sum(h)

    def loss(weights: Any, x: Any) -> Any:
        return lnp.sum(lnp.sin(lx.scan(layer, x, weights)[0]))

    graph = remove_stop_gradient(lx.trace(lx.grad(loss))(weights, x))
    assert "attention_key_gradient" in str(graph)
    assert_close(graph, [weights, x])


def test_narrow_floats_are_summed_in_32_bits() -> None:
    x = np.random.default_rng(1).normal(size=(2, 64, 8)).astype(np.float16)
    found = lx.compile(lambda q, k, v: nn.softmax(q @ k.mT) @ v)(x, x, x)
    exact = x.astype(np.float64)
    scores = exact @ exact.swapaxes(-1, -2)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ exact
    assert found.dtype == np.float16
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2.0**-10, atol=2.0**-10)


def test_memory_is_linear_in_the_sequence() -> None:
    def temporaries(length: int) -> int:
        x = f32(1, 2, length, 16)
        attention = lx.grad(lambda q, k, v: lnp.sum(lnp.sin(nn.softmax(q @ k.mT) @ v)), argnums=(0, 1, 2))
        return int(lx.compile(attention).lower(x, x, x).compile().memory().temporaries)

    short, long = temporaries(256), temporaries(2048)
    assert short > 0
    assert long <= 8 * short


def test_results_are_the_same_on_every_run() -> None:
    graph, arrays = graph_of_case("head 64", gradient=True)
    program = backend().lower(graph).compile()
    buffers = [backend().upload(a) for a in arrays]
    runs = [[backend().download(b, n.type).tobytes() for b, n in zip(program(*buffers), graph.outputs, strict=True)]
            for _ in range(4)]
    assert all(run == runs[0] for run in runs)


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
@pytest.mark.parametrize("name", ["head 8", "head 64", "head 256"])
def test_parts_of_what_takes_too_many_turns(name: str, gradient: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prepared for a device that ends loops early, all operations have the values they had. Some parts see nothing."""
    graph, arrays = graph_of_case(name, gradient)
    turns = {"head 8": 105, "head 64": 350, "head 256": 1300}[name]
    monkeypatch.setattr(attention_parts, "MAX_LOOP_ITERATIONS", turns)
    prepared = prepare(graph)
    assert sum(node.op.startswith("attention") for node in prepared.nodes) >= (10 if gradient else 4)
    for got, want in zip(interpret(prepared, *arrays), interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


def test_parts_of_a_row_that_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_parts, "MAX_LOOP_ITERATIONS", 114)
    mask = np.arange(80) < np.array([[0], [3], [70]])
    x = np.random.default_rng(2).normal(size=(80, 4))
    for empty in (False, True):
        attrs = dict(scale=1.0, fill=-np.inf, lowest=-2, highest=79, biased=False, masked=True, empty=empty)
        inputs = [input_node(name, TensorType(shape, dtype)) for name, shape, dtype in _SMALL]
        graph = graph_of(inputs, [make_node("attention", inputs, attrs)])
        prepared = prepare(graph)
        assert len([node for node in prepared.nodes if node.op == "attention"]) > 1
        arrays = (x[:3], x, x, mask)
        np.testing.assert_allclose(interpret(prepared, *arrays)[0], interpret(graph, *arrays)[0], rtol=1e-12)


_SMALL = (
    ("query", (3, 4), float32),
    ("key", (80, 4), float32),
    ("value", (80, 4), float32),
    ("mask", (3, 80), bool_),
)


def test_long_sequences_stay_within_the_loops_of_drivers() -> None:
    """Kernels of CPU drivers go over all keys, and all elements of heads, in one invocation."""
    shape = (1, 1 << 16, 1, 256)
    traced = lx.trace(nn.dot_product_attention)(f32(1, 64, 1, 256), f32(*shape), f32(*shape))
    nodes = [node for node in prepare(remove_stop_gradient(traced)).nodes if node.op == "attention"]
    assert max(node.operands[1].shape[-2] for node in nodes) * (256 + 256) / (4 * ATTENTION.block_of_columns) < 65535
    assert sum(node.operands[1].shape[-2] for node in nodes) == shape[1]


def test_second_order_where_one_array_is_both_query_and_key() -> None:
    """Its gradient in one place is not that in the other."""

    def loss(x: Any) -> Any:
        return lnp.sum(nn.softmax(x @ x.mT) @ (x * x) * weights)

    weights = np.arange(24, dtype="f").reshape(8, 3) / 16
    x = np.random.default_rng(0).normal(size=(1, 8, 3)).astype("f") / 2
    assert any(node.op == "attention_query_gradient" for node in lx.trace(lx.grad(loss))(x).nodes)
    (found,) = lx.ir.interpret(lx.trace(lx.jacrev(lx.grad(loss)))(x), x, weights)
    step = 1e-5
    gradient = lx.trace(lx.grad(loss))(x)
    for place in np.ndindex(x.shape):
        moved = np.zeros(x.shape)
        moved[place] = step
        (above,), (below,) = (lx.ir.interpret(gradient, x.astype("f8") + s * moved, weights) for s in (1, -1))
        np.testing.assert_allclose(found[place], (above - below) / (2 * step), rtol=1e-6, atol=1e-8)
