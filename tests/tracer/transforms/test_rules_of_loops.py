"""Custom rules that are themselves derivatives of loops and branches, in the mode that transposes them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import CustomRuleError
from tests.closeness import close

X = np.array([0.5, -1.0, 2.0], "f")


def looped(x: Any) -> Any:
    carried, stacked = lx.scan(lambda c, w: (lnp.sin(c) * x + w, c * c), x, np.array([0.1, 0.2, -0.3], "f"))
    return carried + lnp.sum(stacked, axis=0)


def branched(x: Any) -> Any:
    return lx.cond(lnp.sum(x) > 1, lambda x: lnp.sin(x) * x, lnp.exp, x)


def branched_in_loops(x: Any) -> Any:
    def step(i: Any, c: Any) -> Any:
        return lx.cond(i % 2 == 0, lambda c: lnp.cos(c) * x, lambda c: looped(c) * 0.5, c)

    return lx.fori_loop(0, 3, step, x)


def checkpointed(x: Any) -> Any:
    return lx.checkpoint(looped)(x) * x


FUNCTIONS = pytest.mark.parametrize("function", [looped, branched, branched_in_loops, checkpointed])


def weighted(function: Any) -> Any:
    return lambda x: 3 * lnp.sum(np.array([1.0, -2.0, 0.5], "f") * function(x))


@FUNCTIONS
def test_reverse_mode_through_a_tangent_rule(function: Any) -> None:
    ruled = lx.custom_jvp(function)
    ruled.defjvp(lambda primals, tangents: lx.jvp(function, primals, tangents))
    close(lx.grad(weighted(ruled))(X), lx.grad(weighted(function))(X))
    close(lx.compile(lx.grad(weighted(ruled)))(X), lx.grad(weighted(function))(X))
    close(lx.jacrev(ruled)(X), lx.jacrev(function)(X))
    close(lx.hessian(weighted(ruled))(X), lx.hessian(weighted(function))(X))


@FUNCTIONS
def test_forward_mode_through_a_cotangent_rule(function: Any) -> None:
    ruled = lx.custom_vjp(function)
    ruled.defvjp(lambda x: (function(x), x), lambda x, g: lx.vjp(function, x)[1](g))
    close(lx.jacfwd(ruled)(X), lx.jacfwd(function)(X))
    close(lx.grad(weighted(ruled))(X), lx.grad(weighted(function))(X))


@pytest.mark.parametrize(
    "tangent",
    [
        lambda t: lx.fori_loop(0, 2, lambda _, c: lnp.sin(c), t),
        lambda t: lx.scan(lambda c, _: (c, c * c), t, None, length=2)[1][0],
        lambda t: lx.cond(t[0] > 0, lambda t: t, lambda t: 2 * t, t),
        lambda t: lx.fori_loop(0, 3, lambda _, c: (c[1], c[0] * t), (t, t))[0],
        lx.checkpoint(lambda t: t * t),
    ],
)
def test_loops_that_are_not_linear_are_refused(tangent: Any) -> None:
    ruled = lx.custom_jvp(lambda x: x)
    ruled.defjvp(lambda primals, tangents: (primals[0], tangent(tangents[0])))
    with pytest.raises(CustomRuleError, match="linear in its tangents, and is not"):
        lx.grad(weighted(ruled))(X)
