"""A long sum that the kernel of the next rows reads is a product in parts, which that kernel adds."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import Graph, interpret
from lavax.passes.kernels.commands import steps_of
from lavax.passes.prepare.parts_for_rows import with_parts_for_rows
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Products, Target

WHOLE = Target(Products(stages_operands=True))
IN_TWO = replace(WHOLE, products=Products(stages_operands=True, parts_for_rows=lambda dot, beside: 2))
X, U, WEIGHTS = (lx.ShapeDtype(shape, "float32") for shape in ((8, 16), (8, 64), (64, 16)))


def graph_of(function: Callable[..., Any], *kinds: Any) -> Graph:
    return remove_stop_gradient(lx.trace(function)(*kinds))


def norm(x: Any) -> Any:
    centred = x - lnp.mean(x, axis=-1, keepdims=True)
    return centred / lnp.sqrt(lnp.mean(centred**2, axis=-1, keepdims=True) + 1.0)


def residual(x: Any, u: Any, weights: Any) -> Any:
    x = x + u @ weights
    return x, norm(x)


def alone(x: Any, u: Any, weights: Any) -> Any:
    return x + u @ weights


def by_columns(x: Any, u: Any, weights: Any) -> Any:
    return lnp.mean(x + u @ weights, axis=0)


def returned(x: Any, u: Any, weights: Any) -> Any:
    product = u @ weights
    return product, norm(product)


def multiplied(x: Any, u: Any, weights: Any) -> Any:
    return norm((u @ weights) @ x.T)


@pytest.mark.parametrize(
    ("function", "in_parts"),
    [
        (residual, [2]),
        (alone, [1]),
        (by_columns, [1]),
        (returned, [1]),  # it is a result itself
        (multiplied, [1, 2]),  # rows read the second product alone
    ],
)
def test_products_that_rows_read_have_parts(function: Callable[..., Any], in_parts: list[int]) -> None:
    graph = graph_of(function, X, U, WEIGHTS)
    changed = with_parts_for_rows(graph, IN_TWO)
    dots = [node for node in changed.nodes if node.op == "dot"]
    assert [1 + len(node.attrs["batch"][0]) for node in dots] == in_parts
    assert (changed is graph) == (2 not in in_parts)
    assert with_parts_for_rows(graph, WHOLE) is graph


def test_the_numbers_are_the_same_and_no_kernel_is_added() -> None:
    def loss(x: Any, u: Any, weights: Any) -> Any:
        return lnp.sum(lnp.sin(residual(x, lnp.tanh(u), weights)[1]))

    graph, random = graph_of(lx.grad(loss, argnums=(0, 1, 2)), X, U, WEIGHTS), np.random.default_rng(0)
    given = [random.normal(size=node.shape).astype("f") for node in graph.inputs]
    prepared = [prepare(graph, target) for target in (WHOLE, IN_TWO)]
    for found, right in zip(interpret(prepared[1], *given), interpret(graph, *given), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)
    counts = [len(list(steps_of(schedule(each, target=WHOLE).steps))) for each in prepared]
    assert counts[0] == counts[1]


def test_products_of_one_level_are_counted() -> None:
    """A derivative and the gradient of the weight beside it both wait for the same rows; the next product does not."""
    seen = dict[tuple[int, ...], int]()

    def counted(dot: Any, beside: int) -> int:
        seen[dot.shape] = beside
        return 1

    def layer(x: Any, u: Any, weights: Any) -> Any:
        slope = norm(x)
        before = slope @ weights.T
        return before, u.T @ slope, lnp.sum(before, axis=-1) @ u

    target = replace(WHOLE, products=replace(WHOLE.products, parts_for_rows=counted))
    with_parts_for_rows(graph_of(layer, X, U, WEIGHTS), target)
    each = 8 * 16 * 64
    assert seen == {(8, 64): each, (64, 16): each, (64,): 0}


def test_loops_have_none() -> None:
    assert IN_TWO.in_loops().products.parts_for_rows(None, 0) == 1
