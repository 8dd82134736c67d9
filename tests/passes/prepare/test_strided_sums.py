"""Sums of what strided windows add to their elements: the same numbers, of the terms that a stride meets alone."""
from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.ir import Node, TensorType, bfloat16, float32, interpret
from lavax.ir.graph import graph_of, input_node
from lavax.passes.build.builder import build, cast, slice_, sum_over
from lavax.passes.prepare.decompose.strided_sums import strided_sum_in_phases
from lavax.passes.prepare.pipeline import prepare

RANDOM = np.random.default_rng(40)


def _sum_of_windows(
    windows: tuple[int, int],
    elements: tuple[int, int],
    stride: tuple[int, int],
    cut: tuple[int, int] = (0, 0),
    dilation: int = 1,
) -> tuple[Node, Node]:
    """Windows along two axes, of which the unshear is cut at both ends, and the sum."""
    x = input_node("x", TensorType((2, *windows, *elements, 3), float32))
    wide = [(n - 1) * s + (k - 1) * dilation + 1 for n, s, k in zip(windows, stride, elements, strict=True)]
    kind = x.type.with_shape((2, *wide, *elements, 3))
    spread = build("unshear", x, type=kind, axes=(1, 2), along=(3, 4), stride=stride, dilation=(dilation, dilation))
    if any(cut):
        limit = (2, wide[0] - cut[1], wide[1], *elements, 3)
        spread = slice_(spread, (0, cut[0], 0, 0, 0, 0), limit, [1] * 6)
    return x, sum_over(spread, (3, 4))


def _assert_same(x: Node, node: Node, found: Node) -> None:
    numbers = RANDOM.integers(-5, 6, x.shape).astype(np.float32)
    wanted, got = (interpret(graph_of([x], [each]), numbers, dtype=np.float64)[0] for each in (node, found))
    np.testing.assert_array_equal(got, wanted)


def test_all_windows_strides_and_cuts() -> None:
    compared = 0
    for n, k, stride, first, last in product((1, 3, 4), (1, 2, 3, 5), (1, 2, 3), (0, 1, 2), (0, 1)):
        if (n - 1) * stride + k - first - last > 0:
            x, node = _sum_of_windows((n, 2), (k, 3), (stride, 2), (first, last))
            found = strided_sum_in_phases(node)
            assert found is not None
            _assert_same(x, node, found)
            compared += 1
    assert compared > 150


def test_a_term_for_each_element_that_the_stride_meets() -> None:
    _, node = _sum_of_windows((8, 8), (3, 3), (2, 2))
    found = strided_sum_in_phases(node)
    assert found is not None
    assert found.operands[0].type.size == prod(found.shape) * 2 * 2


def test_windows_without_overlap_are_moved_alone() -> None:
    x, node = _sum_of_windows((4, 5), (2, 2), (2, 2))
    found = strided_sum_in_phases(node)
    assert found is not None
    _assert_same(x, node, found)
    assert all(each.op != "sum" for each in graph_of([x], [found]).nodes)


def test_a_sum_of_wider_numbers() -> None:
    x = input_node("x", TensorType((4, 3, 2), bfloat16))
    kind = x.type.with_shape((9, 3, 2))
    spread = build("unshear", x, type=kind, axes=(0,), along=(1,), stride=(2,), dilation=(1,))
    node = sum_over(cast(spread, float32), (1,))
    found = strided_sum_in_phases(node)
    assert found is not None
    assert found.dtype == float32
    _assert_same(x, node, found)


@pytest.mark.parametrize("case", ["no stride", "dilation", "other axes"])
def test_other_sums_stay(case: str) -> None:
    if case == "no stride":
        node = _sum_of_windows((4, 4), (3, 3), (1, 1))[1]
    elif case == "dilation":
        node = _sum_of_windows((4, 4), (3, 3), (2, 2), dilation=3)[1]
    else:
        node = sum_over(_sum_of_windows((4, 4), (3, 3), (2, 2))[1].operands[0], (3,))
    assert strided_sum_in_phases(node) is None


def test_what_is_prepared_has_no_strided_sums() -> None:
    x, node = _sum_of_windows((8, 8), (3, 3), (2, 2), (1, 0))
    prepared = prepare(graph_of([x], [node]))
    spread = [each for each in prepared.nodes if each.op == "unshear"]
    assert [each.attrs["stride"] for each in spread] == [(1, 1)]
    numbers = RANDOM.integers(-5, 6, x.shape).astype(np.float32)
    np.testing.assert_array_equal(interpret(prepared, numbers)[0], interpret(graph_of([x], [node]), numbers)[0])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("window", "stride", "padding"), [((3, 3), (2, 2), 1), ((2, 2), (2, 2), 0), ((5, 2), (3, 1), 0)]
)
def test_derivatives_of_pools_have_a_term_for_each_window_that_a_stride_meets(
    window: tuple[int, int], stride: tuple[int, int], padding: int, dtype: str
) -> None:
    """Each window gives its weight to the first of its greatest elements; many are equal."""
    x = RANDOM.integers(0, 3, (2, 13, 12, 3)).astype(np.float32)
    pooled = lx.trace(lambda x: nn.max_pool(x, window, stride, padding, axes=(1, 2)))(x).outputs[0]
    weights = RANDOM.integers(1, 9, pooled.shape).astype(np.float32)

    def loss(x: Any, weights: Any) -> Any:
        return lnp.sum(nn.max_pool(x, window, stride, padding, axes=(1, 2)) * weights)

    graph = lx.trace(lx.grad(loss))(*(lnp.asarray(array, dtype) for array in (x, weights)))
    prepared = prepare(graph)
    met = [-(-size // step) for size, step in zip(window, stride, strict=True)]
    terms = [node.operands[0].shape[axis] for node in prepared.nodes if node.op == "sum" for axis in node.attrs["axes"]]
    assert prod(terms) == prod(met)
    expected = np.zeros((2, 13 + 2 * padding, 12 + 2 * padding, 3))
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)), constant_values=-1)
    for image, row, column, channel in np.ndindex(*pooled.shape):
        first, left = row * stride[0], column * stride[1]
        part = padded[image, first : first + window[0], left : left + window[1], channel]
        down, along = np.unravel_index(part.argmax(), part.shape)
        expected[image, first + down, left + along, channel] += weights[image, row, column, channel]
    inside = slice(padding, -padding or None)
    (found,) = interpret(prepared, x, weights, dtype=np.float64)
    np.testing.assert_array_equal(found, expected[:, inside, inside])
