"""Errors are of the classes that NumPy and JAX raise for the same mistakes: a program that catches them still does."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
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
    "a computed mask, caught as an index": (IndexError, lambda: lx.jit(lambda x: x.at[x > 0].get())(lnp.ones(3))),
    "a computed truth value": (IndexError, lambda: lx.jit(lambda x: x[lnp.sum(x) > 0])(lnp.ones(3))),
    "a computed mask in vmap": (IndexError, lambda: lx.vmap(lambda x: x[x > 0])(lnp.ones((2, 3)))),
    "a mask of another extent": (IndexError, lambda: lnp.ones(3)[np.ones(2, bool)]),
    "a mask of another extent, to be written": (IndexError, lambda: lnp.ones(3).at[np.ones(2, bool)].set(1)),
    "masks that do not broadcast": (IndexError, lambda: lnp.ones((3, 4))[np.arange(3) < 2, np.arange(4) < 3]),
    "masks that do not broadcast, in JAX": (ValueError, lambda: lnp.ones((3, 4))[np.arange(3) < 2, np.arange(4) < 3]),
    "positions that do not broadcast": (IndexError, lambda: lnp.ones((3, 4)).at[np.arange(2), np.arange(3)].set(1)),
    "positions that are floats": (IndexError, lambda: lnp.ones(3)[np.ones(2)]),
    "positions that are floats, in JAX": (TypeError, lambda: lnp.ones(3)[lnp.ones(2)]),
    "a key that is a float, in JAX": (TypeError, lambda: lnp.ones(3)[1.5]),
    "positions along an axis": (IndexError, lambda: lnp.take_along_axis(lnp.ones((2, 2)), np.zeros((3, 3), int), 1)),
    "a longer condition": (IndexError, lambda: lnp.compress(np.ones(4, bool), lnp.ones(2))),
    "a number that is too large": (OverflowError, lambda: lnp.asarray(300, "uint8")),
    "an operand that is too large": (OverflowError, lambda: lnp.zeros(2, "uint8") + 300),
    "numbers that are too large": (OverflowError, lambda: lnp.asarray([1, 2**70])),
    "a step of 0": (ZeroDivisionError, lambda: lnp.arange(0, 5, 0)),
    "no parts": (ZeroDivisionError, lambda: lnp.split(lnp.ones(4), 0)),
    "branches of two dtypes": (TypeError, lambda: lx.lax.cond(True, lambda: 1, lambda: 1.0)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_classes_are_those_of_jax(name: str) -> None:
    expected, mistake = MISTAKES[name]
    with pytest.raises(expected) as found:
        mistake()
    assert isinstance(found.value, lx.LavaxError)
