"""Bounds of fori_loop under derivatives: those that are known make a scan, which has reverse mode."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.closeness import close

BOUNDS = [5, np.int32(5), np.array(5), lnp.asarray(5)]


def power(x: Any, n: Any) -> Any:
    return lx.fori_loop(0, n, lambda i, y: y * x, x)


@pytest.mark.parametrize("n", BOUNDS)
def test_a_bound_that_is_not_differentiated(n: Any) -> None:
    close(lx.grad(power)(1.1, n), 6 * 1.1**5)
    close(lx.grad(lx.grad(power))(1.1, n), 30 * 1.1**4)
    close(lx.vmap(lx.grad(power), in_axes=(0, None))(np.array([1.0, 1.1], "f"), n), [6, 6 * 1.1**5])
    close(lx.grad(lambda x: power(x, n))(1.1), 6 * 1.1**5)
    close(lx.vjp(power, 1.1, n)[1](1.0)[0], 6 * 1.1**5)


def test_a_bound_that_is_static_under_compile() -> None:
    close(lx.compile(lx.grad(power), static_argnums=1)(1.1, 5), 6 * 1.1**5)
    close(lx.grad(lx.compile(power, static_argnums=1))(1.1, 5), 6 * 1.1**5)


def test_an_unknown_bound_has_forward_mode() -> None:
    pushed = lx.compile(lambda x, n: lx.jvp(lambda x: power(x, n), (x,), (1.0,))[1])
    close(pushed(1.1, 5), 6 * 1.1**5)


@pytest.mark.parametrize(
    "unknown",
    [
        lambda: lx.compile(lx.grad(power))(1.1, 5),
        lambda: lx.grad(lambda x: lnp.sum(lx.vmap(power, in_axes=(None, 0))(x, np.arange(3))))(1.1),
        lambda: lx.grad(lambda x: lx.while_loop(lambda v: v < 9, lambda v: v * 2, x))(1.0),
    ],
)
def test_the_error_says_what_to_do(unknown: Any) -> None:
    with pytest.raises(ValueError, match=r"(?s)while_loop.*static_argnums.*scan.*jvp") as raised:
        unknown()
    assert isinstance(raised.value, lx.ReverseModeError)
