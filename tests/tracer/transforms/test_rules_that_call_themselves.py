"""Rules of custom derivatives that call their own function for other settings: they are traced when needed."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.closeness import close


@partial(lx.custom_vjp, nondiff_argnums=(0,))
def by_vjp(n: int, x: Any) -> Any:
    return lnp.sin(x + n * (np.pi / 2))


by_vjp.defvjp(lambda n, x: (by_vjp(n, x), x), lambda n, x, g: (by_vjp(n + 1, x) * g,))


@partial(lx.custom_jvp, nondiff_argnums=(0,))
def by_jvp(n: int, x: Any) -> Any:
    return lnp.sin(x + n * (np.pi / 2))


@by_jvp.defjvp
def _tangent(n: int, primals: Any, tangents: Any) -> Any:
    return by_jvp(n, *primals), by_jvp(n + 1, *primals) * tangents[0]


@pytest.mark.parametrize("shifted", [by_vjp, by_jvp])
@pytest.mark.parametrize("wrap", [lambda f: f, lx.compile])
def test_derivatives_of_every_order(shifted: Any, wrap: Callable[[Any], Any]) -> None:
    f: Any = partial(shifted, 0)
    for expected in (np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)):
        close(wrap(f)(0.3), expected(0.3))
        f = lx.grad(f)


@pytest.mark.parametrize("shifted", [by_vjp, by_jvp])
def test_with_other_transformations(shifted: Any) -> None:
    x = np.array([0.3, 1.0], "f")
    second = lx.grad(lx.grad(partial(shifted, 0)))
    close(lx.vmap(second)(x), -np.sin(x))
    close(lx.grad(lx.grad(lambda s: lnp.sum(lx.vmap(partial(shifted, 0))(s * x))))(1.0), -np.sum(np.sin(x) * x * x))
    twice = lx.grad(lambda s: lx.scan(lambda c, _: (shifted(0, c), None), s, length=2)[0])
    close(twice(0.3), np.cos(np.sin(0.3)) * np.cos(0.3))
    close(lx.grad(lx.checkpoint(lx.grad(partial(shifted, 0))))(0.3), -np.sin(0.3))


def test_the_fixed_point_of_a_function() -> None:
    """The implicit function theorem (Griewank and Walther, Evaluating Derivatives, 2008, chapter 15)."""

    @partial(lx.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f: Any, a: Any, guess: Any) -> Any:
        def unfinished(state: Any) -> Any:
            return lnp.abs(state[0] - state[1]) > 1e-6

        return lx.while_loop(unfinished, lambda state: (state[1], f(a, state[1])), (guess, f(a, guess)))[1]

    def forward(f: Any, a: Any, guess: Any) -> Any:
        found = fixed_point(f, a, guess)
        return found, (a, found)

    def backward(f: Any, kept: Any, g: Any) -> Any:
        a, found = kept
        _, pull = lx.vjp(lambda a: f(a, found), a)
        return (*pull(fixed_point(partial(iteration, f), (a, found, g), g)), lnp.zeros_like(found))

    def iteration(f: Any, packed: Any, u: Any) -> Any:
        a, found, g = packed
        return g + lx.vjp(lambda x: f(a, x), found)[1](u)[0]

    fixed_point.defvjp(forward, backward)

    def root(a: Any) -> Any:
        return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)

    close(root(2.0), 2**0.5)
    close(lx.grad(root)(2.0), 0.5 / 2**0.5)
    close(lx.compile(lx.grad(root))(2.0), 0.5 / 2**0.5)
    assert abs(float(lx.grad(lx.grad(root))(2.0)) + 0.25 / 2**1.5) < 1e-4


def test_two_functions_whose_rules_call_each_other() -> None:
    sine = lx.custom_jvp(lambda n, x: n * lnp.sin(x), nondiff_argnums=(0,))
    cosine = lx.custom_jvp(lambda n, x: n * lnp.cos(x), nondiff_argnums=(0,))
    sine.defjvp(lambda n, primals, tangents: (sine(n, *primals), cosine(n, *primals) * tangents[0]))
    cosine.defjvp(lambda n, primals, tangents: (cosine(n, *primals), sine(-n, *primals) * tangents[0]))
    f: Any = partial(sine, 2)
    for expected in (np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin):
        close(f(0.3), 2 * expected(0.3))
        f = lx.grad(f)
