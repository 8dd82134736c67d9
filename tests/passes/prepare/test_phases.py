"""Convolutions of spread operands, taken apart into phases: the same results, and no sums of zeros."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lavax.ir import Graph, TensorType, float32, interpret, verify
from lavax.ir.graph import graph_of, input_node
from lavax.passes.build import builder
from lavax.passes.prepare.decompose import phases
from lavax.passes.prepare.decompose.phases import PhaseLimits
from lavax.passes.prepare.pipeline import prepare


def _graph(shape: tuple[int, ...], window: tuple[int, ...], **numbers: tuple[int, ...]) -> Graph:
    """A convolution along all axes but the first and the last of `shape`, which are examples and channels."""
    left = input_node("x", TensorType(shape, float32))
    right = input_node("w", TensorType((*window, shape[-1], 3), float32))
    count = len(window)
    axes = dict(
        window=(tuple(range(1, count + 1)), tuple(range(count))), contract=((count + 1,), (count,)), batch=((), ())
    )
    given = {"stride": (1,) * count, "low": (0,) * count, "high": (0,) * count, "dilation": (1,) * count} | numbers
    return graph_of([left, right], [builder.build("conv", left, right, **axes, **given)])


def _arrays(graph: Graph) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    return [random.integers(-4, 5, node.shape).astype(np.float32) for node in graph.inputs]


@pytest.fixture
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "_LIMITS", PhaseLimits(least_products=0))


@pytest.mark.usefixtures("however_small")
@pytest.mark.parametrize("interior", [1, 2, 3])
def test_results_stay(interior: int) -> None:
    """All paddings and cuts, dilations and windows, also those of which phases meet nothing."""
    compared = 0
    for window, dilation, low, high in product((1, 2, 3, 5), (1, 2, 3, 4), (-3, 0, 2), (-2, 0, 3)):
        if 4 + 3 * interior + low + high < (window - 1) * dilation + 1:
            continue
        numbers = dict(interior=(interior,), dilation=(dilation,), low=(low,), high=(high,))
        graph = _graph((2, 4, 2), (window,), **numbers)
        prepared = prepare(graph)
        verify(prepared)
        (right,), (found,) = (interpret(g, *_arrays(graph), dtype=np.float64) for g in (graph, prepared))
        np.testing.assert_array_equal(found, right)
        compared += 1
    assert compared > 50


@pytest.mark.usefixtures("however_small")
@pytest.mark.parametrize("stride", [(1, 1), (2, 1), (1, 2)])
def test_two_axes(stride: tuple[int, int]) -> None:
    graph = _graph((2, 3, 4, 2), (3, 2), stride=stride, interior=(1, 2), low=(2, 1), high=(1, 2))
    (right,), (found,) = (interpret(g, *_arrays(graph), dtype=np.float64) for g in (graph, prepare(graph)))
    np.testing.assert_array_equal(found, right)


def _products(graph: Graph) -> list[int]:
    dots = [node for node in graph.nodes if node.op == "dot"]
    lengths = [np.prod([node.operands[0].shape[axis] for axis in node.attrs["contract"][0]]) for node in dots]
    return [node.type.size * int(length) for node, length in zip(dots, lengths, strict=True)]


def test_no_products_with_zeros_in_between() -> None:
    """A transposed convolution of stride 2 and a window of 4 x 4: each of four phases has 2 x 2 elements of it."""
    graph = _graph((1, 32, 32, 64), (4, 4), interior=(1, 1), low=(2, 2), high=(2, 2))
    assert _products(prepare(graph)) == [32 * 32 * 3 * 64 * 2 * 2] * 4


def test_small_ones_stay_one_kernel() -> None:
    graph = _graph((1, 8, 8, 4), (4, 4), interior=(1, 1), low=(2, 2), high=(2, 2))
    assert len(_products(prepare(graph))) == 1
