"""Routines large enough to be done in several kernels, on the device against NumPy."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lavax.ir import Graph, TensorType
from lavax.ir.graph import graph_of, input_node, make_node
from lavax.ir.types import DTYPES
from lavax.passes.prepare import prepare
from tests.backends.vulkan.execution import assert_agrees, run

RANDOM = np.random.default_rng(3)
OF_NUMPY = {dtype.numpy: dtype for dtype in DTYPES.values() if dtype.name != "bf16"}


def graph(op: str, arrays: Sequence[np.ndarray], **attrs: Any) -> Graph:
    inputs = [input_node(f"x{n}", TensorType(a.shape, OF_NUMPY[a.dtype])) for n, a in enumerate(arrays)]
    return graph_of(inputs, [make_node(op, inputs, attrs)])


def operations(op_graph: Graph) -> set[str]:
    return {node.op for node in prepare(op_graph).nodes}


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


SORTED = [((65,), 0), ((1000,), 0), ((5001,), 0), ((3, 300), 1), ((130, 3), 0), ((2, 257, 2), 1), ((70000,), 0)]


@pytest.mark.parametrize("eager", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize(("shape", "axis"), SORTED)
def test_sort_is_stable(shape: tuple[int, ...], axis: int, eager: bool) -> None:
    x = RANDOM.integers(-30, 30, shape).astype(np.float32)
    x.ravel()[RANDOM.integers(0, x.size, 9)] = np.nan
    x.ravel()[RANDOM.integers(0, x.size, 3)] = np.inf
    (order,) = run(graph("sort_order", [x], axis=axis), [x], eager=eager)
    np.testing.assert_array_equal(order, np.argsort(x, axis=axis, kind="stable"))
    (found,) = run(graph("sort", [x], axis=axis), [x], eager=eager)
    np.testing.assert_array_equal(found, np.sort(x, axis=axis))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "bool"])
def test_sort_of_other_dtypes(dtype: str) -> None:
    x = RANDOM.integers(0, 2**32, 3000, dtype=np.uint32).astype(dtype)
    (found,) = run(graph("sort", [x], axis=0), [x])
    np.testing.assert_array_equal(found, np.sort(x))


def scattered(op: str, array: np.ndarray, updates: np.ndarray, indices: Sequence[np.ndarray], axes: Any) -> Graph:
    return graph(f"scatter_{op}", [array, updates, *indices], axes=axes)


# Shape of the array, indexed axes, number of updates, the operation that shows which way is taken.
WAYS = [
    ((10,), (0,), (5000,), "sum"),
    ((7, 3), (0,), (3000,), "sum"),
    ((3, 4), (0, 1), (50, 60), "sum"),
    ((100_000,), (0,), (3000,), "fold_segments"),
    ((3000, 5), (0,), (2500,), "fold_segments"),
    ((2, 40, 60), (1, 2), (2600,), "fold_segments"),
]


@pytest.mark.parametrize("op", ["add", "multiply", "minimum", "maximum", "set"])
@pytest.mark.parametrize(("shape", "axes", "count", "way"), WAYS)
def test_scatter(op: str, shape: Any, axes: Any, count: Any, way: str) -> None:
    array = RANDOM.integers(-3, 4, shape).astype(np.int32)
    window = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    updates = RANDOM.integers(-3, 4, (*count, *window)).astype(np.int32)
    indices = [RANDOM.integers(-2, shape[axis] + 2, count).astype(np.int32) for axis in axes]
    program = scattered(op, array, updates, indices, axes)
    if op == "add":
        assert way in operations(program)
    assert_agrees(program, [array, updates, *indices])


def test_a_batch_of_scatters_is_dealt_out_too() -> None:
    array, updates = np.zeros((2, 5), np.float32), RANDOM.integers(0, 9, (2, 4000)).astype(np.float32)
    index = RANDOM.integers(0, 5, (2, 4000)).astype(np.int32)
    batch = np.broadcast_to(np.arange(2, dtype=np.int32)[:, None], (2, 4000))
    arrays = (array, updates, index)
    inputs = [input_node(f"x{n}", TensorType(a.shape, OF_NUMPY[a.dtype])) for n, a in enumerate(arrays)]
    counts = make_node("iota", (), {"axis": 0}, inputs[2].type)
    node = make_node("scatter_add", (*inputs[:2], counts, inputs[2]), {"axes": (0, 1)})
    (found,) = run(graph_of(inputs, [node]), [array, updates, index])
    np.add.at(array, (batch, index), updates)
    np.testing.assert_array_equal(found, array)
