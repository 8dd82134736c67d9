"""Derivatives of their own, checkpoints, named axes and regions within one another, and numbers asked of them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ConcretizationError
from tests.closeness import close

A = np.arange(6, dtype="f").reshape(3, 2) / 3


@lx.custom_vjp
def doubled(x: Any) -> Any:
    return x * 2


doubled.defvjp(lambda x: (doubled(x), None), lambda _, g: (g * 2,))


def looped(step: Any) -> Any:
    def loss(w: Any) -> Any:
        last, _ = lx.scan(lambda carry, _: (step(carry, w), None), np.ones(3, "f"), None, length=4)
        return lnp.sum(last)

    return loss


PLAIN = looped(lambda carry, w: lnp.tanh(carry * 2 * w))


@pytest.mark.parametrize(
    "loss",
    [
        looped(lambda carry, w: lnp.tanh(doubled(carry) * w)),
        looped(lambda carry, w: lx.checkpoint(lambda c: lnp.tanh(doubled(c) * w))(carry)),
        looped(lx.checkpoint(lambda carry, w: lx.cond(w > 0, lambda c: lnp.tanh(doubled(c) * w), lnp.sin, carry))),
        lx.checkpoint(PLAIN),
    ],
    ids=["custom", "custom in checkpoint", "custom in cond in checkpoint", "checkpoint outside"],
)
def test_within_loops(loss: Any) -> None:
    w = np.float32(0.7)
    close(loss(w), PLAIN(w))
    close(lx.grad(loss)(w), lx.grad(PLAIN)(w))
    close(lx.jvp(loss, (w,), (w,))[1], w * np.asarray(lx.grad(PLAIN)(w)))
    close(lx.grad(lx.grad(loss))(w), lx.grad(lx.grad(PLAIN))(w), 1e-4)
    ws = np.array([0.7, 0.3], "f")
    close(lx.vmap(lx.grad(loss))(ws), lx.vmap(lx.grad(PLAIN))(ws))
    close(lx.compile(lx.vmap(lx.grad(loss)))(ws), lx.vmap(lx.grad(PLAIN))(ws))


def test_named_axes_within_loops_checkpoints_and_rules() -> None:
    def total(x: Any) -> Any:
        return lx.psum(x, "i")

    def mapped(function: Any) -> Any:
        return lx.vmap(function, axis_name="i")(A)

    close(mapped(lambda x: lx.scan(lambda c, _: (c + total(x), None), x, None, length=2)[0]), A + 2 * A.sum(0))
    close(mapped(lambda x: lx.checkpoint(lambda x: x / total(x))(x)), A / A.sum(0))
    close(mapped(lambda x: lx.cond(lx.axis_index("i") == 1, lambda x: x * 2, lambda x: x, x)), A * [[1], [2], [1]])
    close(mapped(lambda x: doubled(total(x))), np.stack([2 * A.sum(0)] * 3))
    close(mapped(lambda x: lx.checkpoint(lambda: lx.axis_index("i"))()), [0, 1, 2])


def test_numbers_behind_results_of_calls_and_loops() -> None:
    def loss(x: Any) -> Any:
        y = doubled(x)
        z = lx.fori_loop(0, 3, lambda i, c: c * 2, y)
        return lx.checkpoint(lnp.sin)(y) * 3 if z > 0 else y * 5

    close(lx.grad(loss)(1.0), 6 * np.cos(2))
    close(lx.grad(loss)(-1.0), 10)
    with pytest.raises(ConcretizationError, match="axis_index"):
        lx.vmap(lambda x: x if lx.axis_index("i") else -x, axis_name="i")(A)
