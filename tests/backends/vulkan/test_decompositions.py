"""Routines large enough to be done in several kernels, on the device against NumPy."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.ir import Graph, TensorType
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.types import DTYPES, bfloat16
from lavax.passes.prepare.pipeline import prepare
from tests.backends.vulkan.run.execution import assert_agrees, backend, backend_with, run

RANDOM = np.random.default_rng(3)
OF_NUMPY = {dtype.numpy: dtype for dtype in DTYPES.values() if dtype.name != "bf16" and not dtype.is_complex}


def graph(op: str, arrays: Sequence[np.ndarray], **attrs: Any) -> Graph:
    inputs = [input_node(f"x{n}", TensorType(a.shape, OF_NUMPY[a.dtype])) for n, a in enumerate(arrays)]
    return graph_of(inputs, [make_node(op, inputs, attrs)])


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1025,), 0), ((5000,), 0), ((3, 2048), 1), ((2500, 3), 0), ((2, 1100, 3), 1), ((5000, 4096), 0)],
)
@pytest.mark.parametrize("op", ["cumulative_sum", "cumulative_max", "cumulative_min"])
def test_cumulative(op: str, shape: tuple[int, ...], axis: int) -> None:
    if shape == (5000, 4096) and op != "cumulative_max":
        pytest.skip("many lines: one operation is enough")
    x = RANDOM.integers(-9, 10, shape).astype(np.float32)
    program = graph(op, [x], axis=axis)
    function = {"cumulative_sum": np.add, "cumulative_max": np.maximum, "cumulative_min": np.minimum}[op]
    (found,) = run(program, [x])
    np.testing.assert_array_equal(found, function.accumulate(x, axis=axis))


@pytest.mark.parametrize(
    ("shape", "axis", "ways"),
    [
        ((3, 2048), 1, {"cumulative_sum"}),
        ((100_000,), 0, {"chunk_totals", "cumulative_sum", "cumulative_chunks"}),
        ((9001,), 0, {"chunk_totals", "cumulative_sum", "cumulative_chunks"}),
        ((600, 60), 0, {"chunk_totals", "cumulative_sum", "cumulative_chunks"}),
        ((150, 61), 0, {"chunk_totals", "cumulative_sum", "cumulative_chunks"}),
        ((20_000, 3), 0, {"chunk_totals", "cumulative_sum", "cumulative_chunks"}),
        ((600, 70), 1, {"cumulative_sum"}),
        ((333, 100), 1, {"cumulative_sum"}),
        ((77, 32), 1, {"cumulative_sum"}),
        ((50, 9), 1, {"cumulative_sum"}),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_as_on_a_gpu(shape: tuple[int, ...], axis: int, ways: set[str], reverse: bool) -> None:
    x = RANDOM.integers(-9, 10, shape).astype(np.float32)
    program, device = graph("cumulative_sum", [x], axis=axis, reverse=reverse), backend_with(kind="gpu")
    assert {node.op for node in prepare(program, device.target).nodes} - {"slice", "pad"} == ways
    expected = np.cumsum(x, axis) if not reverse else np.flip(np.cumsum(np.flip(x, axis), axis), axis)
    np.testing.assert_array_equal(run(program, [x], device=device)[0], expected)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_products_of_neighbours_do_not_overflow_on_the_way(kind: str) -> None:
    """Of the elements that one lane loads, or one component of its vectors has, the product is far out of range."""
    x = np.where(np.arange(20_000) % 2, 1e-30, 1e30).astype(np.float32)
    (found,) = run(graph("cumulative_prod", [x], axis=0), [x], device=backend_with(kind=kind))
    np.testing.assert_allclose(found, np.cumprod(x.astype(np.float64)), rtol=len(x) * 2.0**-24)


def test_lines_too_long_for_one_invocation_are_split_however_many_they_are() -> None:
    x, target = np.broadcast_to(np.float32(0), (50_000, 5000)), backend_with(kind="cpu").target
    found = [
        {node.op for node in prepare(graph("cumulative_sum", [x[:length]], axis=0), target).nodes}
        for length in (50_000, 20_000)
    ]
    assert "chunk_totals" in found[0]
    assert found[1] == {"cumulative_sum"}


def test_cumulative_folds_of_other_kinds() -> None:
    x = np.exp(RANDOM.normal(size=3000) / 50).astype(np.float32)
    assert_agrees(graph("cumulative_prod", [x], axis=0), [x], ulps=300)
    wide = RANDOM.uniform(-200, 200, 3000).astype(np.float32)
    assert_agrees(graph("cumulative_logsumexp", [wide], axis=0), [wide])
    wraps = RANDOM.integers(0, 2**32, 3000, dtype=np.uint32)
    (found,) = run(graph("cumulative_sum", [wraps], axis=0), [wraps])
    np.testing.assert_array_equal(found, np.cumsum(wraps, dtype=np.uint32))


def test_a_long_cumulative_sum_keeps_its_digits() -> None:
    x = (RANDOM.normal(size=300_001) + 10).astype(np.float32)
    (found,) = run(graph("cumulative_sum", [x], axis=0), [x])
    exact = np.cumsum(x.astype(np.float64))
    assert np.abs(found / exact - 1).max() < 1e-6


SORTED = [
    *(((65,), 0), ((1000,), 0), ((5001,), 0), ((3, 300), 1), ((130, 3), 0), ((2, 257, 2), 1), ((70000,), 0)),
    *(((300, 65), 1), ((90, 200), 1), ((3, 2500), 1), ((2049, 2), 0)),
]


def with_special_values(x: np.ndarray) -> np.ndarray:
    x.ravel()[RANDOM.integers(0, x.size, 9)] = np.nan
    x.ravel()[RANDOM.integers(0, x.size, 5)] = -0.0
    x.ravel()[RANDOM.integers(0, x.size, 3)] = np.inf
    x.ravel()[RANDOM.integers(0, x.size, 3)] = -np.inf
    return x


# Short rows have one schedule only.
SCHEDULES = [("serial", *case) for case in SORTED] + [
    ("shared", shape, axis) for shape, axis in SORTED if shape[axis] >= 2000
]


@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize(("schedule", "shape", "axis"), SCHEDULES)
def test_sort_is_stable(shape: tuple[int, ...], axis: int, eager: bool, schedule: str) -> None:
    device = backend() if schedule == "serial" else as_gpu()
    x = with_special_values(RANDOM.integers(-30, 30, shape).astype(np.float32))
    (order,) = run(graph("sort_order", [x], axis=axis), [x], eager=eager, device=device)
    np.testing.assert_array_equal(order, np.argsort(x, axis=axis, kind="stable"))
    (found,) = run(graph("sort", [x], axis=axis), [x], eager=eager, device=device)
    expected = np.sort(x, axis=axis, kind="stable")
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


def as_gpu() -> VulkanBackend:
    """The device with the schedules of GPUs."""
    if not backend().profile.subgroup_ballot:
        pytest.skip("the device has no ballots of subgroups")
    return backend_with(kind="gpu")


@pytest.mark.parametrize("length", [300, 3000])
@pytest.mark.parametrize("name", [name for name in DTYPES if name not in ("f32", "bf16", "c64", "c128")])
def test_sort_of_other_dtypes(name: str, length: int) -> None:
    dtype = DTYPES[name]
    if name == "f64" and not backend().profile.float64:
        pytest.skip("the device has no float64")
    bits = RANDOM.integers(0, 2**64, (7, length), dtype=np.uint64)
    if dtype.is_float:
        x = with_special_values(RANDOM.normal(size=(7, length)).astype(dtype.numpy))
    else:
        x = bits.astype(dtype.numpy) if dtype.is_integer else bits % 2 == 1
    x[:, ::3] = x[:, :1]
    (found,) = run(graph("sort", [x], axis=1), [x])
    np.testing.assert_array_equal(found, np.sort(x))
    (order,) = run(graph("sort_order", [x], axis=1), [x])
    np.testing.assert_array_equal(order, np.argsort(x, axis=1, kind="stable"))


def test_sort_of_bfloat16() -> None:
    x = with_special_values(bfloat16.rounded(RANDOM.normal(size=3000)).astype(np.float32))
    node = input_node("x", TensorType(x.shape, bfloat16))
    for op, function in (("sort", np.sort), ("sort_order", np.argsort)):
        (found,) = run(graph_of([node], [make_node(op, [node], {"axis": 0})]), [x])
        np.testing.assert_array_equal(found, function(x, kind="stable"))


@pytest.mark.parametrize("schedule", ["serial", "shared"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_zeros_of_both_signs_keep_their_order_beside_the_least_numbers(dtype: str, schedule: str) -> None:
    least = np.finfo(dtype).smallest_subnormal
    x = RANDOM.choice(np.array([0.0, -0.0, least, -least, np.inf, np.nan, -np.inf], dtype), (3, 2500))
    device = backend() if schedule == "serial" else as_gpu()
    (found,) = run(graph("sort", [x], axis=1), [x], device=device)
    expected = np.sort(x, axis=1, kind="stable")
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize(
    "function", [lnp.sort, lnp.median, lambda x: lnp.quantile(x, 0.3), lambda x: lnp.top_k(x, 700).values]
)
def test_a_function_with_its_gradient_sorts_once(function: Callable[..., Any]) -> None:
    def loss(x: Any) -> Any:
        return 3.0 * lnp.sum(function(x) ** 2)

    kernels = lx.compile(lx.value_and_grad(loss)).lower(np.zeros(5000, np.float32)).as_text("kernels")
    assert kernels.count("= move_by_digit(") == 4
