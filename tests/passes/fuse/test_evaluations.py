"""How often floating values are computed: at every place where they are needed, or stored instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import scan_forms
from lavax.ir.graph import Graph, Node
from lavax.passes.fuse.costs import KERNEL_LIMITS, cost_of
from lavax.passes.fuse.evaluations import evaluations_of, upper_bound
from lavax.passes.fuse.fuse import fuse
from lavax.passes.simplify import simplify
from tests.passes.lowering import assert_computes, f32, program_of

LONG = 1 << 15


def _neighbours(places: int, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of(x: Any) -> Any:
        values = function(x)
        return sum(values[place : x.shape[0] - places + place] for place in range(places))

    return of


def _costly(x: Any) -> Any:
    return lnp.sin(x) * lnp.cos(x)


def _halves(x: Any) -> Any:
    """Each element of a level is made of two of the level before, and no two of the same one."""
    while x.shape[0] > 1:
        x = lnp.exp(x[::2] - x[1::2])
    return x


def _levels(x: Any) -> Any:
    """Each level reads three neighbours of the level before: 3 ** 6 places after six, of which 13 differ."""
    for _ in range(6):
        x = 0.5 * x[:-2] + x[1:-1] * x[2:]
    return x


def _graph(function: Callable[..., Any], *arrays: Any) -> Graph:
    return simplify(lx.trace(function)(*arrays))


# What is computed, of an array, and in how many kernels.
CASES: dict[str, tuple[Callable[[Any], Any], Any, int]] = {
    "costly values at three places": (_neighbours(3, _costly), f32(LONG), 2),
    "cheap values at three places": (_neighbours(3, lambda x: 2 * x + 1), f32(LONG), 1),
    "costly values at one place": (lambda x: _costly(x)[1:] + 1, f32(LONG), 1),
    "costly values of a short array": (_neighbours(3, _costly), f32(100), 1),
    "costly values of alternate elements": (lambda x: _costly(x)[::2] * _costly(x)[1::2], f32(LONG), 1),
    "a small part of costly values": (lambda x: _costly(x)[:50] + _costly(x)[9:59] + _costly(x)[99:149], f32(LONG), 1),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "halves": _halves,
    "levels": _levels,
    "neighbours": _neighbours(5, _costly),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_stored_where_that_is_cheaper(name: str) -> None:
    function, array, kernels = CASES[name]
    assert len(program_of(_graph(function, array)).steps) == kernels


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_kernels_compute_what_the_graph_does(function: Callable[[Any], Any]) -> None:
    array = np.random.default_rng(0).random(1024, np.float32)
    graph = _graph(function, array)
    assert_computes(program_of(graph), graph, [array])


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_places_do_not_multiply_without_end(function: Callable[[Any], Any]) -> None:
    graph = _graph(function, f32(1024))
    fusion = fuse(graph)
    for draft in fusion.all_drafts:
        for result in draft.results:
            is_stored = lambda node, owner=draft: fusion.draft_of.get(node, owner) is not owner  # noqa: E731
            found = evaluations_of(result, is_stored, 1 << 12)
            assert found.values <= 2 * KERNEL_LIMITS.nodes


def _affine_scan(x: Any) -> Any:
    return lx.associative_scan(lambda first, then: (first[0] * then[0], first[1] * then[0] + then[1]), (x, x))[1]


@pytest.mark.parametrize("function", [_affine_scan, lx.grad(lambda x: lnp.sum(_affine_scan(x) ** 2))], ids=["", "grad"])
@pytest.mark.parametrize("length", [100, 1000, 30_000])
def test_maps_do_not_compute_their_results_at_ever_more_places(
    function: Callable[[Any], Any], length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partial results of a scan by halves have common extents, and read each other at strides."""
    monkeypatch.setattr(scan_forms, "_LIMITS", scan_forms.BlockLimits(least_in_all=1 << 30))
    for step in program_of(_graph(function, f32(length))).steps:
        graph = step.kernel.graph
        for result in graph.outputs:
            assert evaluations_of(result, lambda _: False, 1 << 12).values <= 2 * KERNEL_LIMITS.nodes


def _loads(node: Node) -> tuple[int, int, int]:
    found = evaluations_of(node, lambda _: False, 1 << 12)
    return found.values, found.cost, found.repeated


def test_what_is_counted() -> None:
    """At one place a value counts once, whoever reads it; at others again, less what no other element computes."""
    graph = _graph(lambda x: lnp.exp(x) * lnp.exp(x) + lnp.exp(x), f32(8))
    assert _loads(graph.outputs[0]) == (3, 14, 0)
    graph = _graph(lambda x: lnp.exp(x)[:-1] + lnp.exp(x)[1:], f32(9))
    assert _loads(graph.outputs[0]) == (5, 25, int(12 * (2 - 9 / 8)))
    graph = _graph(lambda x: lnp.exp(x)[::2] + lnp.exp(x)[1::2], f32(8))
    assert _loads(graph.outputs[0]) == (5, 25, 0)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_the_bound_holds(function: Callable[[Any], Any]) -> None:
    """Whatever the bound lets pass takes no more than it says."""
    graph = _graph(function, f32(32))
    bounds: dict[Node, Any] = {}
    for node in graph.nodes:
        bounds[node] = upper_bound(node, [bounds[operand] for operand in node.operands if operand in bounds])
        found = evaluations_of(node, lambda _: False, 1 << 14)
        assert found.values <= bounds[node].values and found.cost <= bounds[node].cost
        assert found.moved <= bounds[node].moved and found.repeated <= bounds[node].repeated
        assert bounds[node].cost >= cost_of(node)
