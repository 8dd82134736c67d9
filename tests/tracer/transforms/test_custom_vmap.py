"""custom_vmap: rules in place of batched operations, in and around other transformations; sequential_vmap: loops."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import CustomRuleError
from lavax.custom_batching import custom_vmap, sequential_vmap
from tests.closeness import close

X = np.linspace(0.1, 1, 3, dtype="f")
Y = np.linspace(1, 2, 3, dtype="f")


@custom_vmap
def added(x: Any, y: Any) -> Any:
    return x + y


@added.def_vmap
def _(size: int, in_batched: Any, x: Any, y: Any) -> Any:
    """Tells itself from a sum."""
    assert in_batched[0] and size == 3 == x.shape[0]
    return x * y, True


def test_the_rule_is_used_under_vmap_alone() -> None:
    close(added(X, Y), X + Y)
    close(lx.compile(added)(X, Y), X + Y)
    for mapped in (lx.vmap(added), lx.compile(lx.vmap(added)), lx.vmap(lx.compile(added))):
        close(mapped(X, Y), X * Y)
    grid = np.ones((4, 3), "f") * Y
    close(lx.vmap(lx.vmap(added), (None, 0))(X, grid), X * grid)
    close(lx.vmap(lambda start: lx.scan(lambda c, x: (added(c, x), c), start, Y)[0])(X), X * Y.prod())
    pushed = lx.jvp(lx.vmap(added), (X, Y), (Y, X))
    close(pushed[0], X * Y)
    close(pushed[1], Y * Y + X * X)


def test_derivatives_are_those_of_the_function() -> None:
    close(lx.vmap(lx.grad(added))(X, Y), np.ones(3))
    close(lx.grad(lambda x: lnp.sum(lx.vmap(added)(x, Y)))(X), Y)
    close(lx.grad(lambda x: 2 * added(x, x))(3.0), 4.0)
    close(lx.hessian(lambda x: added(x[0] * x[1], x[2]) ** 2)(X)[2], 2 * np.array([X[1], X[0], 1]))


@custom_vmap
def parts(tree: Any, y: Any) -> Any:
    return {"sine": lnp.sin(tree["x"]) * y, "double": y * 2}


@parts.def_vmap
def _(size: int, in_batched: Any, tree: Any, y: Any) -> Any:
    of_tree, of_y = in_batched
    assert of_tree == {"x": True} and not of_y
    return {"sine": lnp.sin(tree["x"]) * y + 1, "double": y * 2}, {"sine": True, "double": False}


def test_trees_and_results_that_are_the_same_for_all() -> None:
    found = lx.vmap(parts, (0, None))({"x": X}, 2.0)
    close(found["sine"], 2 * np.sin(X) + 1)
    close(found["double"], np.full(3, 4.0))


def test_rules_of_both_kinds() -> None:
    @lx.custom_vjp
    @custom_vmap
    def scaled(x: Any, y: Any) -> Any:
        return lnp.sin(x) * y

    @scaled.def_vmap
    def rule(size: int, in_batched: Any, x: Any, y: Any) -> Any:
        return lnp.cos(x) * y, True

    scaled.defvjp(lambda x, y: (scaled(x, y), (x, y)), lambda kept, given: (given * kept[1], given * kept[0]))
    close(lx.vmap(scaled)(X, Y), np.cos(X) * Y)
    close(lx.grad(scaled)(0.5, 2.0), 2.0)
    close(lx.vmap(lx.grad(scaled))(X, Y), Y)
    close(lx.grad(lambda x: lnp.sum(lx.vmap(scaled)(x, Y)))(X), Y)


def test_a_loop_over_the_elements() -> None:
    weights = lnp.asarray(Y)
    looped = sequential_vmap(lambda x, y: lnp.sum(lnp.tanh(x * y) * weights))
    rows = np.outer(X, Y)
    expected = (np.tanh(rows * X) * Y).sum(1)
    close(lx.vmap(looped, (0, None))(rows, X), expected)
    close(lx.compile(lx.vmap(lx.vmap(looped, (None, 0)), (0, None)))(rows, np.stack([X, Y]))[:, 0], expected)
    one = lx.vmap(lx.grad(lambda x, y: lnp.sum(lnp.tanh(x * y) * weights)), (0, None))(rows, X)
    close(lx.grad(lambda x: lnp.sum(lx.vmap(looped, (0, None))(x, X)))(rows), one)
    text = lx.compile(lx.vmap(looped, (0, None))).lower(rows, X).as_text("ir")
    assert "scan(" in text


def _with_rule(rule: Any) -> Any:
    function = custom_vmap(lambda x: x * 2)
    function.def_vmap(rule)
    return lx.vmap(function)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: custom_vmap(lambda x: x)(X), "no rule is given yet"),
        (lambda: _with_rule(lambda n, b, x: x)(X), "the rule must give"),
        (lambda: _with_rule(lambda n, b, x: (x, 1))(X), "must begin like the result"),
        (lambda: _with_rule(lambda n, b, x: (x, (True, True)))(X), "must begin like the result"),
        (lambda: _with_rule(lambda n, b, x: ((x, x), True))(X), "the rule's result is"),
        (lambda: _with_rule(lambda n, b, x: (x[0], True))(X), r"is f32\[\], where f32\[3\] is due"),
        (lambda: _with_rule(lambda n, b, x: (x > 0, True))(X), r"is bool\[3\], where f32\[3\] is due"),
        (lambda: lx.grad(lambda w: _with_rule(lambda n, b, x: (x * w, True))(X).sum())(2.0), "pass it as an"),
        (lambda: lx.vmap(lambda w: sequential_vmap(lambda x: x * w)(1.0))(X), "that is mapped, too"),
    ],
)
def test_the_message(call: Any, said: str) -> None:
    with pytest.raises(CustomRuleError, match=said):
        call()
