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


D = lnp.asarray(np.float32([0.5, 0.25, -1.0]))
AT = np.float32([0.3, -0.4, 0.5])


def _grown(kind: str, steps: int, factor: Any) -> Any:
    """n · exp(x), whose rules say that its derivative is (n + steps) · exp(x) · factor, a value from outside."""
    if kind == "custom_vjp":
        by_pullback = lx.custom_vjp(lambda n, x: n * lnp.exp(x), nondiff_argnums=(0,))
        by_pullback.defvjp(
            lambda n, x: (by_pullback(n, x), x), lambda n, x, g: (g * by_pullback(n + steps, x) * factor,)
        )
        return by_pullback
    by_tangent = lx.custom_jvp(lambda n, x: n * lnp.exp(x), nondiff_argnums=(0,))
    by_tangent.defjvp(
        lambda n, primals, tangents: (
            by_tangent(n, *primals), tangents[0] * by_tangent(n + steps, *primals) * factor
        )
    )
    return by_tangent


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp"])
@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("wrap", [lambda f: f, lx.compile])
def test_rules_that_call_themselves_read_values_from_outside(
    kind: str, steps: int, wrap: Callable[[Any], Any]
) -> None:
    function = _grown(kind, steps, D)
    first = lx.grad(lambda x: lnp.sum(function(1, x)))
    second = lx.grad(lambda x: lnp.sum(first(x)))
    third = lx.grad(lambda x: lnp.sum(second(x)))
    for order, derivative in enumerate((first, second, third), 1):
        close(wrap(derivative)(AT), (1 + order * steps) * np.exp(AT) * np.asarray(D) ** order)
    close(lx.vmap(second)(np.stack([AT, 2 * AT]))[1], (1 + 2 * steps) * np.exp(2 * AT) * np.asarray(D) ** 2)


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp"])
@pytest.mark.parametrize("steps", [0, 1])
def test_the_values_from_outside_may_be_traced(kind: str, steps: int) -> None:
    def second(x: Any, factor: Any) -> Any:
        function = _grown(kind, steps, factor)
        return lx.grad(lambda x: lnp.sum(lx.grad(lambda y: lnp.sum(function(1, y)))(x)))(x)

    expected = (1 + 2 * steps) * np.exp(AT) * np.asarray(D) ** 2
    close(lx.compile(second)(AT, D), expected)
    close(lx.vmap(second, (None, 0))(AT, np.stack([D, 2 * D]))[1], 4 * expected)
    with pytest.raises(lx.CustomRuleError, match="closure_convert"):
        lx.grad(lambda factor: lnp.sum(_grown(kind, steps, factor)(1, AT) * _outer(kind, factor)))(D)


def _outer(kind: str, factor: Any) -> Any:
    """A function with a rule that itself uses what is differentiated by."""
    scaled = (lx.custom_vjp if kind == "custom_vjp" else lx.custom_jvp)(lambda x: x * factor)
    if kind == "custom_vjp":
        scaled.defvjp(lambda x: (x * factor, None), lambda _, g: (g * factor,))
    else:
        scaled.defjvp(lambda primals, tangents: (primals[0] * factor, tangents[0] * factor))
    return scaled(lnp.asarray(AT))


def test_a_linear_function_may_be_the_derivative_of_itself() -> None:
    """The rule takes the function at tangents: its transpose is that of the body, as in JAX."""

    @lx.custom_jvp
    def product(a: Any, x: Any) -> Any:
        return {"product": a * lnp.cumsum(x)}

    @product.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (a, x), (da, dx) = primals, tangents
        tangent = lx.tree.map(lambda by_x, by_a: 3 * by_x + 5 * by_a, product(a, dx), product(da, x))
        return product(a, x), tangent

    f = lambda a, x: lnp.sum(product(a, lnp.sin(x))["product"])  # noqa: E731
    a, x = np.float32(2), np.array([0.5, 1, 2], "f")
    weights = np.array([3, 2, 1], "f")
    by_a, by_x = lx.jit(lx.grad(f, (0, 1)))(a, x)
    np.testing.assert_allclose(by_a, 5 * np.sum(np.cumsum(np.sin(x))), rtol=1e-5)
    np.testing.assert_allclose(by_x, 3 * 2 * weights * np.cos(x), rtol=1e-5)
    mixed = lx.vmap(lx.grad(lambda a: lnp.sum(lx.grad(f, 1)(a, x))))(np.ones(2, "f"))
    np.testing.assert_allclose(mixed, [np.sum(3 * weights * np.cos(x))] * 2, rtol=1e-5)
    assert lx.jvp(f, (a, x), (np.float32(1), np.zeros(3, "f")))[1] == by_a


def test_the_same_of_rules_of_reverse_mode() -> None:
    doubled = lx.custom_vjp(lambda x: 2 * x)
    doubled.defvjp(lambda x: (doubled(x), None), lambda _, g: (doubled(g),))
    assert lx.grad(doubled)(3.0) == 2 and lx.jvp(doubled, (3.0,), (5.0,))[1] == 10
