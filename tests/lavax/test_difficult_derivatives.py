"""Where derivatives of other systems have gone wrong, through the whole road to the device, compiled and not."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.closeness import close

Wrap = Callable[[Any], Any]
X = np.array([0.5, -1.0, 2.0], "f")


@pytest.fixture(params=["eager", "compiled"])
def wrap(request: pytest.FixtureRequest) -> Wrap:
    return lx.compile if request.param == "compiled" else lambda f: f


def test_perturbations_are_not_confused_in_control_flow(wrap: Wrap) -> None:
    """d/dx of x · d/dy (x + y) is 1, also where the inner derivative is taken in a branch or a step."""

    def inner(x: Any) -> Any:
        return lx.grad(lambda y: x + y)(1.0)

    close(wrap(lx.grad(lambda x: x * inner(x)))(3.0), 1)
    close(wrap(lx.grad(lambda x: x * lx.cond(x > 0, inner, lambda x: x, x)))(3.0), 1)
    close(wrap(lx.grad(lambda x: lx.scan(lambda c, _: (c * inner(x), c), x, None, length=3)[0]))(3.0), 1)
    push = lambda f, x: lx.jvp(f, (x,), (1.0,))[1]  # noqa: E731
    close(wrap(lambda x: push(lambda x: x * push(lambda y: x * y, 2.0), x))(3.0), 6)
    close(wrap(lambda x: push(lambda x: x * lx.grad(lambda y: x * y * y)(2.0), x))(3.0), 24)


def test_nested_closures_over_differentiated_values(wrap: Wrap) -> None:
    def f(a: Any) -> Any:
        def g(b: Any) -> Any:
            def h(c: Any) -> Any:
                return a * b * c * c + lnp.sin(a) * b

            return lx.grad(h)(a) * b  # 2 a² b · b

        return lx.grad(g)(a)  # 4 a² b at b = a

    close(wrap(f)(1.5), 4 * 1.5**3)
    close(wrap(lx.grad(f))(1.5), 12 * 1.5**2)
    close(wrap(lx.vmap(lx.grad(f)))(X), 12 * X**2)


def test_where_hides_nan_of_the_branch_not_taken(wrap: Wrap) -> None:
    def safe(x: Any) -> Any:
        positive = x > 0
        return lnp.sum(lnp.where(positive, lnp.log(lnp.where(positive, x, 1.0)), 0.0))

    close(wrap(lx.grad(safe))(X), np.where(X > 0, 1 / X, 0))
    close(lx.jvp(wrap(safe), (X,), (X,))[1], 2)
    close(wrap(lx.hessian(safe))(X), np.diag(np.where(X > 0, -1 / X**2, 0)))
    # The value of the other branch may be NaN; with cond not even its derivative is taken.
    close(wrap(lambda x: lnp.where(x > 0, x, lnp.log(x)))(np.float32(2)), 2)
    branch = lx.grad(lambda x: lx.cond(x > 0, lnp.sqrt, lambda x: x * 0, x))
    close(wrap(branch)(0.0), 0)
    close(wrap(lx.vmap(branch))(np.array([0.0, 4.0], "f")), [0, 0.25])


def test_branches_not_taken_add_nothing_to_gradients(wrap: Wrap) -> None:
    """Over a batch of predicates all branches are computed; infinite derivatives of the others must not reach any
    operand, closed over or given, of the batch or the same for all."""

    def safe(x: Any, scale: Any) -> Any:
        return lx.cond(x > 0, lambda: lnp.sqrt(scale * x), lambda: scale * 0)

    def chosen(number: Any, x: Any, scale: Any) -> Any:
        branches = [lambda x: scale * lnp.log(x), lambda x: scale * x**2, lambda x: lnp.sqrt(x) + scale]
        return lx.switch(number, branches, x)

    xs = np.array([0.0, 4.0, 0.0], "f")
    by_both = wrap(lx.grad(lambda x, scale: lnp.sum(lx.vmap(safe, (0, None))(x, scale)), (0, 1)))
    for found, expected in zip(by_both(xs, np.float32(1)), ([0, 0.25, 0], 1), strict=True):
        close(found, expected)
    numbers = np.array([-1, 1, 2, 9], np.int32)  # those beyond the branches are the first and the last
    xs = np.array([4.0, 0.0, 9.0, 16.0], "f")
    total = lambda x, scale: lnp.sum(lx.vmap(chosen, (0, 0, None))(numbers, x, scale))  # noqa: E731
    by_both = wrap(lx.grad(total, (0, 1)))
    for found, expected in zip(by_both(xs, np.float32(2)), ([0.5, 0, 1 / 6, 1 / 8], np.log(4) + 2), strict=True):
        close(found, expected)
    close(wrap(total)(xs, np.float32(2)), 2 * np.log(4) + 0 + (3 + 2) + (4 + 2))
    by_twice = wrap(lx.grad(lambda x: lnp.sum(lx.vmap(lx.grad(safe), (0, None))(x, 1.0))))
    close(by_twice(np.array([0.0, 4.0], "f")), [0, -1 / 32])


def test_ties_share(wrap: Wrap) -> None:
    tied = np.array([2.0, 1.0, 2.0, 2.0], "f")
    close(wrap(lx.grad(lnp.max))(tied), np.array([1, 0, 1, 1]) / 3)
    close(wrap(lx.grad(lambda x: lnp.sum(lnp.maximum(x, 2.0))))(tied), [0.5, 0, 0.5, 0.5])
    close(lx.jvp(wrap(lnp.max), (tied,), (np.array([3.0, 1.0, 0.0, 0.0], "f"),))[1], 1)
    close(wrap(lx.vmap(lx.grad(lnp.max)))(np.stack([tied, -tied])), [np.array([1, 0, 1, 1]) / 3, [0, 1, 0, 0]])


def test_arrays_without_elements(wrap: Wrap) -> None:
    nothing = np.zeros((0, 3), "f")
    loss = lambda x: lnp.sum(lnp.sin(x) @ X) + lnp.sum(x**2)  # noqa: E731
    assert wrap(lx.grad(loss))(nothing).shape == (0, 3)
    assert wrap(lx.hessian(loss))(nothing).shape == (0, 3, 0, 3)
    assert wrap(lx.vmap(lx.grad(lambda r: lnp.sum(r**2))))(nothing).shape == (0, 3)
    close(lx.jvp(wrap(loss), (nothing,), (nothing,))[1], 0)
    last, stacked = wrap(lambda x: lx.scan(lambda c, r: (c + r, c * 2), X, x))(nothing)
    close(last, X)
    assert stacked.shape == (0, 3)
    close(wrap(lx.grad(lambda c: lnp.sum(lx.scan(lambda c, r: (c * r, None), c, nothing)[0] ** 2)))(X), 2 * X)


def test_one_value_used_again_and_again(wrap: Wrap) -> None:
    def f(x: Any) -> Any:
        y = x * x
        z = y + y + y * x + lnp.sin(y) * y
        return lnp.sum(z + z[::-1] * y)

    def reference(x: np.ndarray) -> Any:
        y = x * x
        z = y + y + y * x + np.sin(y) * y
        return (z + z[::-1] * y).sum()

    x = X.astype("d")
    expected = [(reference(x + e) - reference(x - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    close(wrap(lx.grad(f))(X), expected, 1e-4)
    close(wrap(lx.jacfwd(f))(X), expected, 1e-4)


def test_rules_of_their_own_in_loops_and_branches(wrap: Wrap) -> None:
    @lx.custom_vjp
    def clipped(x: Any) -> Any:
        return x * 2

    clipped.defvjp(lambda x: (clipped(x), None), lambda _, g: (lnp.clip(g, -1, 1),))

    @lx.custom_jvp
    def halved(x: Any) -> Any:
        return x / 2

    halved.defjvp(lambda primals, tangents: (halved(*primals), tangents[0]))
    grown = wrap(lambda x: lx.while_loop(lambda v: v[0] < 9, lambda v: halved(clipped(clipped(v))), x))
    close(grown(abs(X)), 32 * abs(X))
    for pred in (True, False):
        branch = lambda x, pred=pred: lx.cond(pred, clipped, halved, x)  # noqa: E731
        close(wrap(branch)(X), X * 2 if pred else X / 2)
        close(wrap(lx.grad(lambda x, branch=branch: lnp.sum(5 * branch(x))))(X), [1] * 3 if pred else [5] * 3)
    close(wrap(lambda x: lx.scan(lambda c, _: (lx.checkpoint(clipped)(c), halved(c)), x, None, length=2)[0])(X), 4 * X)
