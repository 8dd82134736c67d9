"""Derivatives of loops and branches on the device, in every mode and of every order, against those of straight code."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp

X = np.array([0.4, -0.3, 0.7], "f")
WEIGHTS = np.array([0.6, -1.1, 0.8], "f")

Loop = Callable[..., Any]  # (step(i, carry, x), count, carry, x) -> (last carry, stacked carries)
Steps = Callable[[Any, Any, Any], Any]


def straight(step: Steps, count: int, carry: Any, x: Any) -> Any:
    stacked = []
    for i in range(count):
        carry = step(np.float32(i), carry, x)
        stacked.append(carry)
    return carry, lnp.stack(stacked)


def scanned(step: Steps, count: int, carry: Any, x: Any) -> Any:
    def body(carry: Any, i: Any) -> Any:
        carry = step(i, carry, x)
        return carry, carry

    return lx.scan(body, carry, lnp.arange(count, dtype=lnp.float32))


def filled(step: Steps, count: int, carry: Any, x: Any) -> Any:
    def body(i: Any, state: Any) -> Any:
        carry, stacked = state
        carry = step(lnp.asarray(i, lnp.float32), carry, x)
        return carry, stacked.at[i].set(carry)

    return lx.fori_loop(0, count, body, (carry, lnp.zeros((count, 3))))


def within_another(step: Steps, count: int, carry: Any, x: Any) -> Any:
    """Each step stands in a loop of one turn in a branch."""

    def nested(i: Any, carry: Any, x: Any) -> Any:
        def once(c: Any) -> Any:
            return lx.fori_loop(0, 1, lambda _, c: step(i, c, x), c)

        return lx.cond(i < count, once, lambda c: c, carry)

    return scanned(nested, count, carry, x)


LOOPS = {"scan": scanned, "fori_loop": filled, "nested": within_another}
STEPS: dict[str, Steps] = {
    "product with an outer value": lambda i, c, x: c * x,
    "sine": lambda i, c, x: lnp.sin(c) * x + 0.1 * i * x,
    "square": lambda i, c, x: 0.5 * c * c + x * c + x,
}


def loss_of(loop: Loop, step: Steps) -> Callable[[Any], Any]:
    def loss(x: Any) -> Any:
        last, stacked = loop(step, 3, x, x)
        return lnp.sum(last * WEIGHTS) + lnp.sum(stacked[1:] ** 2)

    return loss


ORDERS: dict[str, Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = {
    "reverse": lx.grad,
    "forward": lx.jacfwd,
    "reverse of reverse": lambda f: lx.jacrev(lx.grad(f)),
    "forward of reverse": lambda f: lx.jacfwd(lx.grad(f)),
    "reverse of forward": lambda f: lx.jacrev(lx.jacfwd(f)),
    "forward of forward": lambda f: lx.jacfwd(lx.jacfwd(f)),
    "forward of reverse of reverse": lambda f: lx.jacfwd(lx.jacrev(lx.grad(f))),
    "reverse of reverse of reverse": lambda f: lx.jacrev(lx.jacrev(lx.grad(f))),
}
# The third order takes the driver seconds, so only one step of all has it, and not each time.
CASES = [
    pytest.param(step, order, marks=[pytest.mark.long] if order.count(" of ") == 2 else [])
    for step in STEPS
    for order in ORDERS
    if step == "sine" or order.count(" of ") < 2
]


@pytest.mark.parametrize(("step", "order"), CASES)
@pytest.mark.parametrize("loop", LOOPS)
def test_loops_have_the_derivatives_of_straight_code(loop: str, step: str, order: str) -> None:
    derivative = ORDERS[order]
    graph = lx.trace(derivative(loss_of(straight, STEPS[step])))(X)
    (expected,) = lx.ir.interpret(graph, X, *[WEIGHTS][: len(graph.inputs) - 1])
    found = lx.compile(derivative(loss_of(LOOPS[loop], STEPS[step])))(X)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6 * scale)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("loop", LOOPS)
def test_linearized_loops_push_tangents_forward(loop: str, step: str) -> None:
    f = lambda x: LOOPS[loop](STEPS[step], 3, x, x)  # noqa: E731
    tangent = np.array([1.0, -2.0, 0.5], "f")
    (last, stacked), pushforward = lx.linearize(f, X)
    (expected_last, expected_stacked), expected = lx.jvp(lambda x: straight(STEPS[step], 3, x, x), (X,), (tangent,))
    np.testing.assert_allclose(last, expected_last, rtol=1e-6)
    np.testing.assert_allclose(stacked, expected_stacked, rtol=1e-6)
    for _ in range(2):  # it may be called many times
        for found, right in zip(pushforward(tangent), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
