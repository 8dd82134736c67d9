"""Products of rows of a scan's sequences are computed ahead of it: the same numbers and gradients."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import Graph, Node, interpret, verify
from lavax.passes.build.inline import inline_calls
from lavax.passes.simplify import products_ahead, simplify
from lavax.tracer.compiled.collection import without_collection

random = np.random.default_rng(12)
N, H, X, T = 8, 16, 24, 5


def normal(*shape: int) -> np.ndarray:
    return random.normal(size=shape, scale=0.5).astype("f")


H0, ROWS = normal(N, H), normal(T, N, X)
OF_X, OF_H, OF_BOTH, BIAS = normal(X, H), normal(H, H), normal(X + H, H), normal(H)


def loop(step: Callable[..., Any], reverse: bool = False) -> Callable[..., Any]:
    """A scan of `h = tanh(step(h, x, *weights))`."""

    def function(h: Any, rows: Any, *weights: Any) -> Any:
        def turn(h: Any, x: Any) -> Any:
            h = lnp.tanh(step(h, x, *weights))
            return h, h

        return lx.scan(turn, h, rows, reverse=reverse)

    return function


def beside(h: Any, x: Any, w: Any, u: Any, b: Any) -> Any:
    return x @ w + b + h @ u


def end_to_end(h: Any, x: Any, w: Any) -> Any:
    return lnp.concatenate([x, h], axis=-1) @ w


def end_to_end_turned(h: Any, x: Any, w: Any) -> Any:
    return lnp.concatenate([h, x[:, 8:]], axis=-1) @ w[8:]


def moved_before(h: Any, x: Any, w: Any, u: Any) -> Any:
    """What is moved, joined and computed of a row on its way to a product."""
    pairs = lnp.concatenate([x[:, :12].T, lnp.sin(x[:, 12:]).T], axis=0)
    return (lnp.reshape(pairs, (X, N)).T * 2) @ w + h @ u


def on_the_right(h: Any, x: Any, w: Any, u: Any) -> Any:
    return (w.T @ x.T).T + h @ u


def each_by_itself(h: Any, x: Any, w: Any, u: Any) -> Any:
    return lx.vmap(lambda h, x: w.T @ x + u.T @ h)(h, x)


def batches(h: Any, x: Any, w: Any, u: Any) -> Any:
    """Products with an axis in common."""
    return lnp.einsum("njk,jkm->njm", lnp.reshape(x, (N, 2, 12)), lnp.reshape(w, (2, 12, H)))[:, 0] + h @ u


# Functions, their arguments, and the products that are left in the loop.
AHEAD: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    "beside": (loop(beside), (H0, ROWS, OF_X, OF_H, BIAS), 1),
    "in reverse": (loop(beside, reverse=True), (H0, ROWS, OF_X, OF_H, BIAS), 1),
    "end to end": (loop(end_to_end), (H0, ROWS, OF_BOTH), 1),
    "end to end, the state first": (loop(end_to_end_turned), (H0, ROWS, OF_BOTH), 1),
    "moved before": (loop(moved_before), (H0, ROWS, OF_X, OF_H), 1),
    "on the right": (loop(on_the_right), (H0, ROWS, OF_X, OF_H), 1),
    "each by itself": (loop(each_by_itself), (H0, ROWS, OF_X, OF_H), 1),
    "batches": (loop(batches), (H0, ROWS, OF_X, OF_H), 1),
    "two turns": (loop(beside), (H0, ROWS[:2], OF_X, OF_H, BIAS), 1),
}


def traced(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Graph:
    return inline_calls(lx.trace(function)(*arguments))


def scan_of(graph: Graph) -> Node:
    return next(node for node in graph.nodes if node.op == "scan")


def products_in(graph: Graph) -> int:
    return sum(node.op == "dot" for node in scan_of(graph).attrs["body"].nodes)


@pytest.mark.parametrize("name", AHEAD)
def test_all_rows_are_one_product(name: str) -> None:
    function, arguments, left = AHEAD[name]
    plain = traced(function, arguments)
    graph = simplify(plain)
    verify(graph)
    assert products_in(graph) == left
    for found, wanted in zip(interpret(graph, *arguments), interpret(plain, *arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", AHEAD)
def test_gradients_are_those_of_the_loop_as_it_was(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, _ = AHEAD[name]

    def loss(*arguments: Any) -> Any:
        last, stacked = function(*arguments)
        return lnp.sum(last * lnp.sin(last)) + lnp.sum(lnp.cos(stacked) * stacked)

    gradient = lx.grad(loss, argnums=tuple(range(len(arguments))))
    results = interpret(simplify(traced(gradient, arguments)), *arguments)
    monkeypatch.setattr(products_ahead, "PRODUCTS_AHEAD", products_ahead.ProductsAhead(products=1 << 60))
    lx.clear_caches()
    wanted = interpret(simplify(traced(gradient, arguments)), *arguments)
    for found, right in zip(results, wanted, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def test_narrow_products_are_rounded_once() -> None:
    """As they were when they were one: sums of both parts are 32 bits wide."""
    function, arguments, _ = AHEAD["end to end"]
    narrow = tuple(lnp.asarray(argument).astype("bfloat16") for argument in arguments)
    graph = simplify(traced(function, narrow))
    (rows,) = [node for node in graph.nodes if node.op == "dot"]
    assert rows.dtype.name == "f32" and rows.attrs["precision"] == "bf16"
    arrays = [np.asarray(x) for x in narrow]
    for found, wanted in zip(interpret(graph, *arrays), interpret(traced(function, narrow), *arrays), strict=True):
        np.testing.assert_allclose(found.astype("f"), wanted.astype("f"), atol=0.02)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32"])
def test_products_of_integers_wrap_as_they_did(dtype: str) -> None:
    function = lambda h, rows, w: lx.scan(lambda h, x: (end_to_end(h, x, w), h), h, rows)  # noqa: E731
    given = tuple(random.integers(0, 100, x.shape).astype(dtype) for x in (H0, ROWS, OF_BOTH))
    plain = traced(function, given)
    graph = simplify(plain)
    assert products_in(graph) == 1 and sum(node.op == "dot" for node in graph.nodes) == 1
    for found, wanted in zip(interpret(graph, *given), interpret(plain, *given), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_slices_of_a_matrix_are_taken_once() -> None:
    """So the gradient of a slice is put into that of the matrix once, too."""
    function = loop(lambda h, x, w: x[:, :H] + h @ w[:H])
    body = scan_of(simplify(traced(function, (H0, ROWS, OF_BOTH)))).attrs["body"]
    assert "slice" not in [node.op for node in body.nodes if node.shape == (H, H)]


def mapped(rows: Any, w: Any) -> Any:
    """One after the other, because all at once would take too much memory."""
    return lx.lax.map(lambda x: lnp.tanh(x @ w), rows)


OTHERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "nothing is carried": (mapped, (ROWS, OF_X)),
    "only stacked": (lambda h, rows, w: lx.scan(lambda h, x: (h * 2, x @ w), h, rows), (H0, ROWS, OF_X)),
    "one turn": (loop(beside), (H0, ROWS[:1], OF_X, OF_H, BIAS)),
    "no turn": (loop(beside), (H0, ROWS[:0], OF_X, OF_H, BIAS)),
    "a factor that changes": (loop(lambda h, x, w: (x @ w) @ h.T @ h), (H0, ROWS, OF_X)),
    "little": (loop(lambda h, x, w, u: x[:2, :4] @ w[:4, :2] + h[:2, :2]), (H0[:2, :2], ROWS[:, :2], OF_X, OF_H)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_loops_compute_what_they_did(name: str) -> None:
    function, arguments = OTHERS[name]
    plain = traced(function, arguments)
    graph = simplify(plain)
    verify(graph)
    for found, wanted in zip(interpret(graph, *arguments), interpret(plain, *arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    if name in ("nothing is carried", "only stacked", "one turn", "little"):
        assert products_in(graph) == products_in(plain)


def test_rows_that_take_too_much_memory_stay_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, _ = AHEAD["beside"]
    plain = traced(function, arguments)
    monkeypatch.setattr(products_ahead, "PRODUCTS_AHEAD", products_ahead.ProductsAhead(nbytes=T * N * H * 4 - 1))
    assert products_in(simplify(plain)) == 2


def test_time_grows_as_the_body_does() -> None:
    """Four times the statements take some four times as long; sixteen times would be a pass of quadratic time."""

    def long(count: int) -> Callable[..., Any]:
        def step(h: Any, x: Any, w: Any, u: Any) -> Any:
            for _ in range(count):
                x = lnp.tanh(x @ w) * 2 + 1
            return x + h @ u

        return loop(step)

    def seconds(count: int) -> float:
        scan = scan_of(traced(long(count), (H0, ROWS[:, :, :H], OF_H, OF_H)))
        start = time.process_time()
        with without_collection:  # as when a program is made
            products_ahead.with_products_ahead(scan)
        return time.process_time() - start

    seconds(100)
    assert min(seconds(1600), seconds(1600)) < 9 * min(seconds(400), seconds(400))
