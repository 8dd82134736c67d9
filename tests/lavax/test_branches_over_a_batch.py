"""Gradients of branches whose predicate differs between the elements of a batch: arrays that are the same for all get
those of the elements that take a branch, also where its derivative is infinite for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.closeness import close

Branch = Callable[[Any, Any], Any]

# Rows of x: the derivatives of most branches are infinite or NaN at the first.
X = np.array([[0, 0.5, 0], [2, 1, 3], [3, 0.25, 1]], "f")
W = np.array([[1, 0.5, 2], [3, 1, 0.25], [0.5, 2, 1]], "f")
DEAD = W * np.array([[0, 1, 1], [1, 1, 1], [1, 1, 0]], "f")


def _in_turns(w: Any, x: Any) -> Any:
    return lnp.sum(lx.lax.scan(lambda c, v: (lnp.sqrt(c @ w) * v, c), x, lnp.arange(1.0, 4.0))[0])


def _rows_in_turns(w: Any, x: Any) -> Any:
    return lx.lax.scan(lambda c, row: (c + lnp.sum(lnp.sqrt(row * x)), None), 0.0, w)[0]


def _carried(w: Any, x: Any) -> Any:
    """The first turn's value is the same for all elements."""
    return lnp.sum(lx.lax.scan(lambda c, v: (lnp.sqrt(c * v), None), w[0], x)[0])


def _within(w: Any, x: Any) -> Any:
    return lx.lax.cond(x[1] > 0.6, lambda: lnp.sum(lnp.sqrt(w * x)), lambda: lnp.sum(lnp.sqrt(w + 1)) * x[0])


def _within_by_all(w: Any, x: Any) -> Any:
    return lx.lax.cond(w[0, 1] > 0, lambda: lnp.sum(lnp.sqrt(w * x)), lambda: lnp.sum(w))


# They take an array that is the same for all elements, and an element.
BRANCHES: dict[str, Branch] = {
    "elementwise": lambda w, x: lnp.sum(lnp.sqrt(w * x)),
    "a product": lambda w, x: lnp.sum(lnp.sqrt(x @ w)),
    "a product of what is infinite": lambda w, x: lnp.sum(lnp.log(x) @ w),
    "a function before the product": lambda w, x: lnp.sum(lnp.log(x) @ lnp.exp(w)),
    "rows by computed places": lambda w, x: lnp.sum(lnp.sqrt(w[lnp.astype(x, "int32")] * x[0])),
    "joined": lambda w, x: lnp.sum(lnp.sqrt(lnp.concatenate([w[0], x]))),
    "a system": lambda w, x: lnp.sum(lnp.linalg.solve(w + 3 * lnp.eye(3), lnp.sqrt(x))),
    "a system of each": lambda w, x: lnp.sum(lnp.linalg.solve(lnp.diag(x), w[0])),
    "turns": _in_turns,
    "turns over rows": _rows_in_turns,
    "a carried value": _carried,
    "a branch within": _within,
    "a branch within, the same for all": _within_by_all,
    "recomputed": lambda w, x: lx.checkpoint(lambda w, x: lnp.sum(lnp.sqrt(w * x)))(w, x),
}


def _by_batch(branch: Branch, w: Any, x: Any) -> Any:
    chosen = lambda row: lx.lax.cond(row[0] > 1, branch, lambda w, x: lnp.sum(w) + 2 * lnp.sum(x), w, row)  # noqa: E731
    return lnp.sin(lnp.sum(lx.vmap(chosen)(x)) / 20)


def _by_elements(branch: Branch, w: Any, x: Any) -> Any:
    """The same with a branch chosen in Python for each element."""
    rows = [
        branch(w, row) if taken else lnp.sum(w) + 2 * lnp.sum(row) for row, taken in zip(x, X[:, 0] > 1, strict=True)
    ]
    return lnp.sin(sum(rows) / 20)


@pytest.mark.parametrize("name", BRANCHES)
def test_elements_that_do_not_take_a_branch_add_nothing(name: str) -> None:
    branch = BRANCHES[name]
    middle = lambda way: lambda w, x: 3 * way(branch, w * 2, x * 1.0)  # noqa: E731
    expected = lx.grad(middle(_by_elements), (0, 1))(W, X)
    assert all(np.isfinite(np.asarray(part)).all() for part in expected)
    for transform in (lx.grad, lx.jacfwd):
        found = lx.compile(transform(middle(_by_batch), (0, 1)))(W, X)
        for one, other in zip(found, expected, strict=True):
            close(one, other, 1e-4)


SHARED: dict[str, Callable[[Any], Any]] = {
    "a root": lambda w: lnp.sum(lnp.sqrt(w)),
    "a norm": lambda w: lnp.linalg.norm(w * 0),
    "turns": lambda w: lx.lax.scan(lambda c, row: (c + lnp.sum(lnp.sqrt(row)), None), 0.0, w)[0],
}


@pytest.mark.parametrize("name", SHARED)
def test_a_branch_that_no_element_takes_adds_nothing(name: str) -> None:
    """What it computes of arrays that are the same for all depends on no element, and gets a cotangent of zero."""

    def over(x: Any, w: Any) -> Any:
        return lnp.sum(lx.vmap(lambda v: lx.lax.cond(v > 9, lambda: v * SHARED[name](w), lambda: v * w[0, 1]))(x))

    x = np.array([1, 2, 4], "f")
    expected = np.zeros((3, 3), "f")
    expected[0, 1] = 7
    close(lx.compile(lx.grad(over, 1))(x, DEAD), expected)
    close(lx.compile(lx.grad(lambda x, w: over(x * 1, w * 2) * 3, 1))(x, DEAD), 6 * expected)
    twice = lambda x, w: lnp.sum(lx.vmap(over, (0, None))(x, w))  # noqa: E731
    close(lx.compile(lx.grad(twice, 1))(np.stack([x, -x]), DEAD), 0 * expected)
    turns = lambda x, w: lx.lax.scan(lambda c, row: (c + over(row, w), None), 0.0, x)[0]  # noqa: E731
    close(lx.compile(lx.grad(turns, 1))(np.stack([x, x]), DEAD), 2 * expected)


def _summed_before(w: Any, x: Any) -> Any:
    (shared, own), _ = lx.lax.scan(lambda c, _: ((c[0] + w, c[1] * x), None), (w, x), None, length=3)
    return own * lnp.sqrt(shared)


def _one_turn_later(w: Any, x: Any) -> Any:
    turn = lambda c, _: ((c[1] + 0.0, c[1], c[2] + x * lnp.sqrt(c[0])), None)  # noqa: E731
    return lx.lax.scan(turn, (lnp.ones(()), w, x), None, length=3)[0][2]


def _stacked(w: Any, x: Any) -> Any:
    (_, own), rows = lx.lax.scan(lambda c, _: ((c[0] + w, c[1] + x), c[0]), (w, x), None, length=3)
    return own * lnp.sum(lnp.sqrt(rows))


def _replaced(w: Any, x: Any) -> Any:
    return lx.lax.scan(lambda c, _: ((w + 0.0, c[1] + lnp.sqrt(c[0])), None), (x, x), None, length=3)[0][1]


# They hand a number that is the same for all on as it is, to a root that is computed of it later.
HANDED_ON: dict[str, Branch] = {
    "summed before": _summed_before,
    "one turn later": _one_turn_later,
    "stacked": _stacked,
    "instead of what differs": _replaced,
    "by a branch within": lambda w, x: lnp.sqrt(lx.lax.cond(x < 1, lambda: w + 0.0, lambda: x)),
    "by what is recomputed": lambda w, x: lnp.sqrt(lx.checkpoint(lambda w, x: (w + 0.0, x))(w, x)[0]) * x,
}


@pytest.mark.parametrize("name", HANDED_ON)
@pytest.mark.parametrize("elements", [(0.5, 0.25), (0.5, 0.25, 4)])
def test_what_is_handed_on_and_no_element_takes_adds_nothing(name: str, elements: tuple[float, ...]) -> None:
    branch = HANDED_ON[name]
    x = np.array(elements, "f")

    def loss(w: Any) -> Any:
        chosen = lambda v: lx.lax.cond(v > 1, branch, lambda w, v: v * w, w, v)  # noqa: E731
        return lnp.sum(lx.vmap(chosen)(x)) * 2

    def by_elements(w: Any) -> Any:
        return sum(branch(w, v) if v > 1 else v * w for v in x) * 2

    for start in (0.0, 1.0):
        found, expected = (np.asarray(lx.compile(lx.grad(each))(np.float32(start))) for each in (loss, by_elements))
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_branch_within_a_branch_that_is_not_taken_adds_nothing() -> None:
    """The element that does not take the outer branch chooses the inner one, and the element that does does not."""

    def chosen(w: Any, x: Any) -> Any:
        inner = lambda: lx.lax.cond(x > 3, lambda: x * w[0, 1], lambda: x * lnp.sum(lnp.sqrt(w)))  # noqa: E731
        return lx.lax.cond(x > 1, inner, lambda: x * w[1, 1])

    found = lx.compile(lx.grad(lambda w: lnp.sum(lx.vmap(chosen, (None, 0))(w, np.array([0.5, 4], "f")))))(DEAD)
    close(found, [[0, 4, 0], [0, 0.5, 0], [0, 0, 0]])


def test_weights_are_not_repeated_for_each_element() -> None:
    def loss(w: Any, x: Any) -> Any:
        step = lambda row: lx.lax.cond(row[0] > 0, lambda: lnp.tanh(row @ w), lambda: row)  # noqa: E731
        return lnp.sum(lx.vmap(lx.vmap(step))(x))

    kinds = [lx.ShapeDtype((8, 8), "float32"), lx.ShapeDtype((5, 7, 8), "float32")]
    text = lx.compile(lx.grad(loss)).lower(*kinds).as_text("optimized")
    assert "8,8]" not in text.replace("f32[8,8]", "")
