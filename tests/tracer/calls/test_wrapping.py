"""Transformed functions take over names and documentation, of objects that can be called, too."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.tracer.calls.wrapping import wraps


class Doubling:
    """Doubles, and has a name that is no text."""

    __name__ = 3
    __qualname__ = "Doubling"

    def __init__(self) -> None:
        self.__qualname__ = None

    def __call__(self, x: Any) -> Any:
        return 2 * x


X = np.float32(3)
CALLS: dict[str, Callable[[Any], Any]] = {
    "checkpoint": lambda f: lx.grad(lx.checkpoint(f))(X),
    "compile": lambda f: lx.compile(f)(X) / 3,
    "custom_vjp": lambda f: lx.custom_vjp(f)(X) / 3,
    "grad": lambda f: lx.grad(f)(X),
    "jacfwd": lambda f: lx.jacfwd(f)(X),
    "jacrev": lambda f: lx.jacrev(f)(X),
    "named_call": lambda f: lx.named_call(f, name="n")(X) / 3,
    "value_and_grad": lambda f: lx.value_and_grad(f)(X)[1],
    "vmap": lambda f: lx.vmap(f)(X[None])[0] / 3,
}


@pytest.mark.parametrize("name", CALLS)
def test_names_that_are_no_text(name: str) -> None:
    assert float(CALLS[name](Doubling())) == 2


def test_what_is_taken_over() -> None:
    def halved(x: Any) -> Any:
        """Half of it."""
        return x / 2

    for transformed in (lx.vmap(halved), lx.grad(halved), lx.checkpoint(halved), wraps(halved)(lambda x: x)):
        assert (transformed.__name__, transformed.__doc__) == ("halved", "Half of it.")
        assert transformed.__wrapped__ is halved
    assert wraps(Doubling())(lambda x: x).__name__ == "<lambda>"
