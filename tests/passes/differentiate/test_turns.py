"""Gradients of scans: what is kept of turns, and sums over turns after the loop, against the loop written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir.graph import Graph, Node
from lavax.ir.interpreter import interpret
from lavax.passes.differentiate import turns

random = np.random.default_rng(11)
W, B = random.normal(size=(3, 3), scale=0.5).astype("f"), random.normal(size=3).astype("f")
H, ROWS = random.normal(size=(2, 3)).astype("f"), random.normal(size=(5, 2, 3)).astype("f")

Step = Callable[[Any, Any, Any, Any], Any]  # the carry, a row, weights and bias: the next carry and a row
STEPS: dict[str, Step] = {
    "carried in": lambda h, x, w, b: (lnp.tanh(h @ w + x + b), h),
    "carried out": lambda h, x, w, b: (lnp.tanh(h @ w + x + b),) * 2,
    "weights twice": lambda h, x, w, b: (lnp.sin(h @ w) + lnp.tanh(x @ w.T) * b, h * x),
    "weights between": lambda h, x, w, b: (lnp.tanh(x.T @ (h @ w))[:2] + b, lnp.sum(h @ w, axis=1)),
    "weights in both": lambda h, x, w, b: (lnp.tanh(h @ (w @ w)) + x, h + b),
    "elementwise weights": lambda h, x, w, b: (lnp.cos(h * b + x @ w), lnp.sum(h * b)),
    "a norm": lambda h, x, w, b: (lnp.tanh(h @ w) / (1 + lnp.sum(h * h, axis=1, keepdims=True)) * b + x, h),
    "a loop inside": lambda h, x, w, b: (lx.fori_loop(0, 2, lambda i, c: lnp.tanh(c @ w) + b, h) + x, h),
    "a checkpoint": lambda h, x, w, b: (lx.checkpoint(lambda h, w: lnp.tanh(h @ w))(h, w) + x * b, h),
    "batches": lambda h, x, w, b: (lnp.tanh(lx.vmap(lambda r, v: (r @ w) * v)(h, x)) + b, h),
}


def scanned(step: Step, reverse: bool, length: int = 5) -> Callable[..., Any]:
    def loss(h: Any, rows: Any, w: Any, b: Any) -> Any:
        last, out = lx.scan(lambda h, x: step(h, x, w, b), h, rows[:length], reverse=reverse)
        return lnp.sum(last * last) / 3 + lnp.sum(lnp.sin(out))

    return loss


def written_out(step: Step, reverse: bool) -> Callable[..., Any]:
    def loss(h: Any, rows: Any, w: Any, b: Any) -> Any:
        total = 0.0
        for place in reversed(range(5)) if reverse else range(5):
            h, out = step(h, rows[place], w, b)
            total = total + lnp.sum(lnp.sin(out))
        return lnp.sum(h * h) / 3 + total

    return loss


def computed(function: Callable[..., Any]) -> list[Any]:
    return interpret(lx.trace(function)(H, ROWS, W, B), H, ROWS, W, B)


def assert_equal(found: list[Any], expected: list[Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_gradients_are_those_of_the_loop_written_out(name: str, reverse: bool) -> None:
    step = STEPS[name]
    gradient = lx.grad(scanned(step, reverse), argnums=(0, 1, 2, 3))
    assert_equal(computed(gradient), computed(lx.grad(written_out(step, reverse), argnums=(0, 1, 2, 3))))


@pytest.mark.parametrize("name", ["carried in", "weights twice", "a norm"])
def test_second_derivatives(name: str) -> None:
    def of(loss: Callable[..., Any]) -> Callable[..., Any]:
        inner = lx.grad(loss, argnums=2)
        return lx.grad(lambda *given: lnp.sum(inner(*given) * lnp.cos(given[2])), argnums=(0, 2, 3))

    assert_equal(computed(of(scanned(STEPS[name], False))), computed(of(written_out(STEPS[name], False))))


@pytest.mark.parametrize("name", ["carried in", "a norm"])
def test_values_that_are_too_large_are_computed_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = lx.grad(scanned(STEPS[name], False), argnums=(0, 1, 2, 3))
    kept = computed(gradient)
    forward, _ = scans_of(lx.trace(gradient)(H, ROWS, W, B))
    monkeypatch.setattr(turns, "KEPT_VALUES", replace(turns.KEPT_VALUES, nbytes=0))
    again, _ = scans_of(lx.trace(gradient)(H, ROWS, W, B))
    assert len(again.attrs["body"].outputs) < len(forward.attrs["body"].outputs)
    assert_equal(computed(gradient), kept)


def scans_of(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "scan"]


def operations(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def test_a_step_backwards_has_one_product_and_no_sum() -> None:
    """The step reads the tangent that was kept, and the gradients of weights and bias are found after the loop."""
    graph = lx.trace(lx.grad(scanned(STEPS["carried out"], False), argnums=(2, 3)))(H, ROWS, W, B)
    _, backward = scans_of(graph)
    assert operations(backward.attrs["body"]).count("dot") == 1
    assert not {"tanh", "sum"} & {*operations(backward.attrs["body"])}
    assert backward.attrs["carries"] == 1
    (product,) = (node for node in graph.nodes if node.op == "dot")
    assert product.attrs["contract"] == ((0, 1), (0, 1))


def test_sums_smaller_than_their_rows_are_carried() -> None:
    """Rows of 100 numbers for a sum of one: the loop carries the sum."""

    def loss(h: Any, w: Any) -> Any:
        return lnp.sum(lx.scan(lambda c, _: (lnp.sin(c) * w, None), h, None, length=4)[0])

    (_, backward) = scans_of(lx.trace(lx.grad(loss, argnums=1))(np.ones(100, "f"), np.float32(0.5)))
    assert backward.attrs["carries"] == 2
