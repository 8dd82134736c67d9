"""Gradients of the weights of transposed convolutions: a convolution of the cotangent, with no zeros in between."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.ir import Graph, TensorType, float32, interpret
from lavax.ir.graph import graph_of, input_node
from lavax.passes.build.builder import build
from lavax.passes.build.inline import inline_calls
from lavax.passes.prepare.decompose import phases
from lavax.passes.prepare.decompose.phases import PhaseLimits
from lavax.passes.prepare.decompose.reversed_windows import has_large_window, with_roles_reversed
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import backend_with

RANDOM = np.random.default_rng(43)


@pytest.fixture(autouse=True)
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "_LIMITS", PhaseLimits(least_products=0))


def _gradient(x: np.ndarray, w: np.ndarray, **given: Any) -> Graph:
    """Of weights [i,o,h,w] of each group, which meet images [n,i,h,w]; in the middle of a graph."""
    arguments = dict(window_strides=(1, 1), dimension_numbers=("NCHW", "IOHW", "NCHW")) | given

    def of_weights(x: Any, w: Any) -> Any:
        def loss(w: Any) -> Any:
            return 3 * lnp.sum(lnp.sin(lax.conv_general_dilated(lnp.tanh(x), w, **arguments)))

        return lx.grad(loss)(2 * w)

    return simplify(inline_calls(lx.trace(of_weights)(x, w)))


def _drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [RANDOM.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("groups", [(), (2,)])
def test_all_paddings_and_windows(groups: tuple[int, ...]) -> None:
    compared, first = 0, len(groups)
    for n, results, interior, low, columns in product((3, 5), (1, 2, 4), (1, 2), (-1, 0, 2), (1, 3)):
        elements = (n - 1) * (interior + 1) + 1 + low + 1 - results + 1
        x = input_node("x", TensorType((*groups, 3, n, 2, 4), float32))
        g = input_node("g", TensorType((9, 2, columns, elements, *groups), float32))
        node = build(
            "conv",
            x,
            g,
            window=((first + 1, first + 3), (3, 0)),
            contract=((first + 2,), (1,)),
            batch=((0,), (4,)) if groups else ((), ()),
            stride=(1, 1),
            dilation=(1, 1),
            interior=(interior, 2),
            low=(low, 1),
            high=(1, 0),
        )
        assert node.shape[first + 1] == results
        found = with_roles_reversed(node)
        (reverse,) = (each for each in graph_of([x, g], [found]).nodes if each.op == "conv")
        assert not any(reverse.attrs["interior"])
        numbers = [RANDOM.integers(-3, 4, each.shape).astype(np.float32) for each in (x, g)]
        right, got = (interpret(graph_of([x, g], [each]), *numbers, dtype=np.float64)[0] for each in (node, found))
        np.testing.assert_array_equal(got, right)
        compared += 1
    assert compared > 60


def _products(graph: Graph) -> int:
    return sum(node.op == "dot" for node in graph.nodes)


def test_one_product_gives_all_elements_of_a_window() -> None:
    x, w = _drawn((4, 32, 16, 16), (32, 16, 4, 4))
    graph = _gradient(x, w, padding=((2, 2), (2, 2)), lhs_dilation=(2, 2))
    assert _products(prepare(graph, backend_with(kind="gpu").target)) == 4 + 1  # phases of the convolution itself
    assert _products(prepare(graph)) == 4 + 4


def test_few_channels_on_any_device() -> None:
    x, w = _drawn((4, 32, 16, 16), (32, 3, 4, 4))
    graph = _gradient(x, w, padding=((2, 2), (2, 2)), lhs_dilation=(2, 2))
    assert _products(prepare(graph)) == 4 + 1


@pytest.mark.parametrize("given", [dict(window_strides=(2, 1)), dict(rhs_dilation=(1, 3))], ids=str)
def test_strides_and_dilation_have_phases(given: dict[str, Any]) -> None:
    x, w = _drawn((2, 2, 6, 6), (2, 3, 2, 3))
    graph = _gradient(x, w, padding=((2, 1), (3, 3)), lhs_dilation=(2, 2), **{"window_strides": (1, 1)} | given)
    assert not any(map(has_large_window, graph.nodes))
