"""Transposed convolutions that write few channels: the same numbers as sums of contributions."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from lavax.ir import Graph, TensorType, float32, interpret
from lavax.ir.graph import graph_of, input_node
from lavax.passes.build import builder
from lavax.passes.prepare.decompose import phases
from lavax.passes.prepare.decompose.phases import PhaseLimits
from lavax.passes.prepare.decompose.reversed_windows import has_large_window
from lavax.passes.prepare.pipeline import prepare
from tests.backends.vulkan.run.execution import backend_with

RANDOM = np.random.default_rng(41)


@pytest.fixture(autouse=True)
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "_LIMITS", PhaseLimits(least_products=0))


def _graph(
    n: int, k: int, interior: int, low: int, high: int, channels: int = 1, summed: int = 16, **given: tuple[int, ...]
) -> Graph | None:
    """A convolution along the first and third axis of its left operand, whose second one is summed; None if it has no
    results."""
    x = input_node("x", TensorType((n, summed, 4, 3), float32))
    w = input_node("w", TensorType((2, summed, k, channels), float32))
    padded = (n - 1) * (interior + 1) + 1 + low + high
    if padded < (k - 1) * given.get("dilation", (1, 1))[0] + 1:
        return None
    numbers = dict(stride=(1, 1), low=(low, 1), high=(high, 0), interior=(interior, 1), dilation=(1, 1)) | given
    axes = dict(window=((0, 2), (2, 0)), contract=((1,), (1,)), batch=((), ()))
    return graph_of([x, w], [builder.build("conv", x, w, **axes, **numbers)])


def _prepared(graph: Graph) -> Graph:
    return prepare(graph, backend_with(kind="gpu").target)


def _sums_contributions(prepared: Graph) -> bool:
    return any(node.op == "unshear" for node in prepared.nodes)


def test_all_windows_and_paddings() -> None:
    compared = 0
    for n, k, interior, low, high in product((1, 4), (1, 2, 3, 4), (1, 2), (-1, 0, 1, 2), (-1, 0, 3)):
        graph = _graph(n, k, interior, low, high)
        if graph is None:
            continue
        prepared = _prepared(graph)
        arrays = [RANDOM.integers(-3, 4, node.shape).astype(np.float32) for node in graph.inputs]
        (right,), (found,) = (interpret(each, *arrays, dtype=np.float64) for each in (graph, prepared))
        np.testing.assert_array_equal(found, right)
        is_reversed = has_large_window(graph.nodes[0])  # the form of gradients of weights
        assert _sums_contributions(prepared) == (low < k and not is_reversed)
        compared += not is_reversed
    assert compared > 60


@pytest.mark.parametrize(
    "changes",
    [dict(channels=5), dict(summed=8), dict(stride=(1, 2)), dict(dilation=(2, 1)), dict(k=160)],
    ids=str,
)
def test_others_stay_as_they_are(changes: dict[str, Any]) -> None:
    graph = _graph(**{"n": 8, "k": 4, "interior": 1, "low": 1, "high": 160} | changes)
    assert graph is not None
    assert not _sums_contributions(_prepared(graph))


def test_drivers_that_stage_nothing_have_phases() -> None:
    graph = _graph(8, 4, 1, 1, 1)
    assert graph is not None
    assert not _sums_contributions(prepare(graph))
