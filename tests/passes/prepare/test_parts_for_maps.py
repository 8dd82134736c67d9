"""A weight's gradient that an optimizer alone reads is a product in parts, which the optimizer's kernel adds."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim
from lavax.ir import Graph, interpret
from lavax.ir.graph import Node
from lavax.passes.build.contraction_geometry import sizes_of
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare import parts_for_maps
from lavax.passes.prepare.parts_for_maps import with_parts_for_maps
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Products, Target

IN_FOUR = Target(Products(stages_operands=True, parts_for_maps=lambda dot, together: 4))
WHOLE = Target(Products(stages_operands=True))
X, G, WEIGHTS = (lx.ShapeDtype(shape, "float32") for shape in ((64, 16), (64, 24), (16, 24)))


def graph_of(function: Callable[..., Any], *kinds: Any) -> Graph:
    return remove_stop_gradient(lx.trace(function)(*kinds))


def moved(x: Any, g: Any, mean: Any, square: Any, weights: Any) -> Any:
    gradient = x.T @ g
    mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
    return mean, square, weights - mean / (1e-3 + lnp.sqrt(square))


def descended(x: Any, g: Any, weights: Any) -> Any:
    return weights - 0.1 * (x.T @ g)


def clipped(x: Any, g: Any, mean: Any, weights: Any) -> Any:
    gradient = x.T @ g
    gradient = gradient / lnp.maximum(1.0, lnp.sqrt(lnp.sum(gradient**2)))
    return 0.9 * mean + gradient, weights - gradient


def twice(x: Any, g: Any) -> Any:
    gradient = x.T @ g
    return gradient, gradient + 1.0, gradient * 2.0


def used_again(x: Any, g: Any, mean: Any, other: Any) -> Any:
    gradient = x.T @ g
    return mean + gradient, mean - gradient, gradient @ other


def batches_of(graph: Graph) -> list[tuple[int, ...]]:
    return [node.attrs["batch"] for node in graph.nodes if node.op == "dot"]


@pytest.mark.parametrize(
    ("function", "others", "in_parts"),
    [
        (moved, (WEIGHTS, WEIGHTS, WEIGHTS), True),
        (descended, (WEIGHTS,), False),  # in the product's epilogue
        (clipped, (WEIGHTS, WEIGHTS), False),  # a reduction waits for it
        (twice, (), False),  # it is a result itself
        (used_again, (WEIGHTS, lx.ShapeDtype((24, 8), "float32")), False),
    ],
)
def test_products_whose_readers_are_an_optimizer_have_parts(
    function: Callable[..., Any], others: tuple[Any, ...], in_parts: bool
) -> None:
    graph = graph_of(function, X, G, *others)
    changed = with_parts_for_maps(graph, IN_FOUR)
    assert (((0,), (0,)) in batches_of(changed)) is in_parts
    assert (changed is graph) is not in_parts
    assert with_parts_for_maps(graph, WHOLE) is graph


def test_the_numbers_are_the_same() -> None:
    graph, random = graph_of(moved, X, G, WEIGHTS, WEIGHTS, WEIGHTS), np.random.default_rng(0)
    given = [np.abs(random.normal(size=node.shape)).astype("f") for node in graph.inputs]
    for found, right in zip(interpret(prepare(graph, IN_FOUR), *given), interpret(graph, *given), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5)


def test_no_kernel_is_added() -> None:
    def step(weights: Any, state: Any, x: Any, y: Any) -> Any:
        gradient = lx.grad(lambda weights: lnp.mean((x @ weights - y) ** 2))(weights)
        updates, state = optim.adam(0.1).update(gradient, state, weights)
        return optim.apply_updates(weights, updates), state

    kinds = WEIGHTS, lx.eval_shape(optim.adam(0.1).init, WEIGHTS), X, G
    graph = graph_of(step, *kinds)
    counts = [len(list(steps_of(schedule(prepare(graph, target), target=target).steps))) for target in (WHOLE, IN_FOUR)]
    assert counts[0] == counts[1]


def test_loops_have_none() -> None:
    assert IN_FOUR.in_loops().products.parts_for_maps(None, 1) == 1


def test_products_that_share_an_operand_are_counted() -> None:
    seen: list[int] = []

    def counted(dot: Any, together: int) -> int:
        seen.append(together)
        return 1

    def two(x: Any, g: Any, h: Any, k: Any) -> Any:
        return x.T @ g, x.T @ h, k.T @ g

    with_parts_for_maps(
        graph_of(two, X, G, G, lx.ShapeDtype((64, 8), "float32")),
        replace(WHOLE, products=replace(WHOLE.products, parts_for_maps=counted)),
    )
    assert sorted(seen) == [1, 2, 2]


def test_products_beside_are_counted_without_asking_each_for_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns that are written out read one weight: two thousand products would ask four million times."""
    def turns(x: Any, w: Any, v: Any, square: Any) -> Any:
        for _ in range(50):
            x = lnp.tanh(x @ w)
        return x, x @ v, square @ square, (square @ w) @ v

    counts, asked = list[int](), list[Node]()

    def counted(dot: Node) -> Any:
        asked.append(dot)
        return sizes_of(dot)

    def parts(dot: Node, together: int) -> int:
        counts.append(together)
        return 1

    monkeypatch.setattr(parts_for_maps, "sizes_of", counted)
    kinds = (lx.ShapeDtype(shape, "float32") for shape in ((16, 16), (16, 16), (16, 24), (16, 16)))
    graph = graph_of(turns, *kinds)
    assert with_parts_for_maps(graph, Target(Products(parts_for_maps=parts))) is graph
    products = [node for node in graph.nodes if node.op == "dot"]
    assert sorted(asked, key=id) == sorted(products, key=id)
    beside = [
        sum(
            sizes_of(other) == sizes_of(node) and not set(other.operands).isdisjoint(node.operands)
            for other in products
        )
        for node in products
    ]
    assert counts == beside and max(beside) == 52
