"""Errors are of the classes that JAX raises for the same mistakes, so that a program that catches them still does."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lavax as lx
import lavax.numpy as lnp

pytestmark = pytest.mark.usefixtures("reference_backend")


def _cotangent_in_a_tuple() -> Any:
    return lx.vjp(lnp.sin, lnp.ones(3))[1]((lnp.ones(3),))


def _cotangent_of_another_shape() -> Any:
    @lx.custom_vjp
    def f(x: Any) -> Any:
        return x

    f.defvjp(lambda x: (x, None), lambda _, g: (lnp.ones(3),), optimize_remat=True)
    return lx.grad(f)(1.0)


MISTAKES: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "normal numbers that are integers": (ValueError, lambda: lx.random.normal(lx.random.key(0), (2,), lnp.int32)),
    "an exported function of another dtype": (ValueError, lambda: lx.export(lnp.sin, 1.0)(lnp.int32(1))),
    "a cotangent in a tuple": (ValueError, _cotangent_in_a_tuple),
    "a rule's cotangent of another shape": (ValueError, _cotangent_of_another_shape),
    "tangents of another dtype": (TypeError, lambda: lx.jvp(lnp.sin, (1.0,), (lnp.int32(1),))),
    "a sum of shapes": (TypeError, lambda: lnp.ones(3) + lnp.ones(4)),
    "a reshape to no shape": (TypeError, lambda: lnp.ones(3).reshape(2, 2)),
    "trees that differ": (ValueError, lambda: lx.tree.map(lambda x, y: x, [1], [1, 2])),
    "a computed mask": (lx.errors.NonConcreteBooleanIndexError, lambda: lx.jit(lambda x: x[x > 0])(lnp.ones(3))),
    "branches of two dtypes": (TypeError, lambda: lx.lax.cond(True, lambda: 1, lambda: 1.0)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_classes_are_those_of_jax(name: str) -> None:
    expected, mistake = MISTAKES[name]
    with pytest.raises(expected) as found:
        mistake()
    assert isinstance(found.value, lx.LavaxError)
