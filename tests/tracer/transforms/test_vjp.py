from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, ShapeError, TreeMismatchError
from tests.closeness import close
from tests.numpy_backend import NumpyBackend

X = np.array([0.5, -1.0, 2.0], "f")
WRAPPERS: list[Callable[[Any], Any]] = [lambda f: f, lx.compile]


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_pullback_of_several_results(wrap: Callable[[Any], Any]) -> None:
    def f(x: Any, scale: Any) -> Any:
        return {"sin": lnp.sin(x) * scale, "index": lnp.argmax(x), "twice": (2 * x,)}

    def both(x: Any, ct: Any) -> Any:
        result, pullback = lx.vjp(f, x, 3.0)
        return result, pullback({"sin": ct, "index": None, "twice": (lnp.ones(3),)})

    result, (by_x, by_scale) = wrap(both)(X, X)
    close(result["sin"], 3 * np.sin(X))
    assert int(result["index"]) == 2
    close(by_x, 3 * X * np.cos(X) + 2)
    close(by_scale, np.sum(X * np.sin(X)))


def test_the_pullback_is_linear_and_may_be_called_again(backend: NumpyBackend) -> None:
    _, pullback = lx.vjp(lambda x: lnp.exp(lnp.sin(x)), X)
    compiled = len(backend.compiled)
    rows = [pullback(row)[0] for row in np.eye(3, dtype="f")]
    close(np.stack([np.asarray(row) for row in rows]), np.diag(np.cos(X) * np.exp(np.sin(X))))
    assert len(backend.compiled) == compiled + 1
    assert "exp" not in str(backend.compiled[-1]), "the pullback must not run the function again"


def test_a_pullback_is_a_container_of_what_the_function_computed(backend: NumpyBackend) -> None:
    """So compiled functions take it, and return it; one that they return for other numbers is no other function."""
    _, pullback = lx.vjp(lambda x, scale: {"y": lnp.sin(x) * scale}, X, 2.0)
    apply = lx.compile(lambda pullback, cotangent: pullback(cotangent))
    for factor in (1.0, 3.0):
        by_x, by_scale = apply(pullback, {"y": factor * X})
        close(by_x, factor * X * 2 * np.cos(X))
        close(by_scale, factor * np.sum(X * np.sin(X)))
    made = lx.compile(lambda x: lx.vjp(lnp.sin, x)[1])
    before = len(backend.compiled)
    close(apply(made(X), X)[0], X * np.cos(X))
    count = len(backend.compiled)
    assert count == before + 2
    close(apply(made(2 * X), X)[0], X * np.cos(2 * X))
    assert len(backend.compiled) == count


def test_cotangents_and_tangents_have_the_dtype_of_what_they_belong_to() -> None:
    """Python's numbers yield; NumPy's 64 bits are 32 here."""
    _, pullback = lx.vjp(lnp.sin, X)
    close(pullback(np.ones(3))[0], np.cos(X))
    close(lx.jvp(lnp.sin, (X[0],), (1,))[1], np.cos(X[0]))
    for wrong in (np.ones(3, np.float16), lnp.ones(3, lnp.bfloat16)):
        with pytest.raises(DtypeError, match=r"the cotangent of a result f32\[3\] must be like it, got b?f16\[3\]"):
            pullback(wrong)
        with pytest.raises(DtypeError, match=r"the tangent of x: f32\[3\] must be like it, got b?f16\[3\]"):
            lx.jvp(lambda x: x, (X,), (wrong,))


def test_integers_have_no_cotangent() -> None:
    _, pullback = lx.vjp(lambda x, index: x[index], X, np.int32(1))
    by_x, by_index = pullback(1.0)
    close(by_x, [0, 1, 0])
    assert by_index is None


def test_auxiliary_result() -> None:
    value, pullback, aux = lx.vjp(lambda x: (lnp.sum(x), (x * 2, "text")), X, has_aux=True)
    close(value, X.sum())
    close(pullback(2.0)[0], [2, 2, 2])
    close(aux[0], 2 * X)
    assert aux[1] == "text"


def test_it_can_be_differentiated() -> None:
    def f(x):
        return lx.vjp(lnp.sin, x)[1](1.0)[0]
    close(lx.grad(f)(0.3), -np.sin(0.3))
    close(lx.grad(lx.grad(f))(0.3), -np.cos(0.3))


def test_closures_get_their_gradients_from_outside() -> None:
    close(lx.grad(lambda a: lx.vjp(lambda x: a * a * x, 2.0)[1](1.0)[0])(3.0), 6)


def test_cotangents_are_checked() -> None:
    _, pullback = lx.vjp(lambda x: (x, x * 2), X)
    with pytest.raises(TreeMismatchError):
        pullback(X)
    with pytest.raises(ShapeError, match=r"f32\[3\].*f32\[2\]"):
        pullback((X, np.ones(2)))
    with pytest.raises(DtypeError, match="NoneType"):
        pullback((X, None))
