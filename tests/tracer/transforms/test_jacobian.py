"""Jacobians and Hessians: both modes, trees, argnums, auxiliary results, vector products in four ways, errors."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import DtypeError, NonFloatArgumentError
from tests.closeness import close

X = np.array([0.5, -1.0, 2.0], "f")
V = np.array([1.0, 0.5, -2.0], "f")
W = np.random.default_rng(0).normal(size=(2, 3)).astype("f")


BOTH = pytest.mark.parametrize("jacobian", [lx.jacfwd, lx.jacrev])


@BOTH
def test_matrix(jacobian: Any) -> None:
    close(jacobian(lambda x: W @ x)(X), W)
    close(jacobian(lambda w: w @ X)(W), np.einsum("ik,l->ikl", np.eye(2), X))
    close(jacobian(lnp.sin)(np.float32(0.5)), np.cos(0.5))
    assert jacobian(lambda x: lnp.outer(x, x))(X).shape == (3, 3, 3)


@BOTH
def test_trees_and_argnums(jacobian: Any) -> None:
    def f(p: Any, y: Any, n: int) -> Any:
        return {"u": p["a"] * y, "v": (lnp.sum(p["b"]) * n,)}

    p = {"a": X, "b": W}
    by_both = jacobian(f, argnums=(0, 1))(p, V, 3)
    by_p, by_y = by_both["u"]
    close(by_p["a"], np.diag(V))
    close(by_p["b"], np.zeros((3, 2, 3)))
    close(by_y, np.diag(X))
    close(by_both["v"][0][0]["b"], 3 * np.ones((2, 3)))
    close(jacobian(f, argnums=-2)(p, V, 3)["u"], np.diag(X))


@BOTH
def test_auxiliary_results(jacobian: Any) -> None:
    matrix, auxiliary = jacobian(lambda x: (x**2, {"x": x, "s": "text"}), has_aux=True)(X)
    close(matrix, np.diag(2 * X))
    close(auxiliary["x"], X)
    assert auxiliary["s"] == "text"


@BOTH
def test_inside_other_transformations(jacobian: Any) -> None:
    batch = np.stack([X, V])
    close(lx.vmap(jacobian(lambda x: x**3))(batch)[1], np.diag(3 * V**2))
    close(lx.grad(lambda x: lnp.sum(jacobian(lambda x: x**3)(x)))(X), 6 * X)
    close(lx.compile(jacobian(lambda x: x**3))(X), np.diag(3 * X**2))
    close(lx.jvp(jacobian(lambda x: x**3), (X,), (V,))[1], np.diag(6 * X * V))


@BOTH
def test_values_without_elements(jacobian: Any) -> None:
    assert jacobian(lambda x: x * 2)(np.zeros((0,), "f")).shape == (0, 0)


def loss(x: Any) -> Any:
    return lnp.sum(lnp.sin(x) ** 3) + x[0] * x[1] * x[2]


def true_hessian(x: np.ndarray) -> np.ndarray:
    s, c = np.sin(x), np.cos(x)
    mixed = np.array([[0, x[2], x[1]], [x[2], 0, x[0]], [x[1], x[0], 0]])
    return np.diag(6 * s * c * c - 3 * s**3) + mixed


def test_hessian() -> None:
    close(lx.hessian(loss)(X), true_hessian(X))
    close(lx.jacrev(lx.jacfwd(loss))(X), true_hessian(X))
    close(lx.jacfwd(lx.jacfwd(loss))(X), true_hessian(X))
    close(lx.jacrev(lx.jacrev(loss))(X), true_hessian(X))
    tree = lx.hessian(lambda p: p["a"] * p["b"] ** 2)({"a": 2.0, "b": 3.0})
    assert {(i, j): float(tree[i][j]) for i in "ab" for j in "ab"} == {
        ("a", "a"): 0, ("a", "b"): 6, ("b", "a"): 6, ("b", "b"): 4,
    }
    value, auxiliary = lx.hessian(lambda x: (loss(x), x * 2), has_aux=True)(X)
    close(value, true_hessian(X))
    close(auxiliary, 2 * X)


@pytest.mark.parametrize(
    "product",
    [
        lambda x, v: lx.jvp(lx.grad(loss), (x,), (v,))[1],
        lambda x, v: lx.grad(lambda x: lnp.vdot(lx.grad(loss)(x), v))(x),
        lambda x, v: lx.grad(lambda x: lx.jvp(loss, (x,), (v,))[1])(x),
        lambda x, v: lx.vjp(lx.grad(loss), x)[1](v)[0],
    ],
    ids=["forward-reverse", "reverse-reverse", "reverse-forward", "pullback"],
)
def test_hessian_vector_products(product: Any) -> None:
    close(product(X, V), true_hessian(X) @ V)
    close(lx.compile(product)(X, V), true_hessian(X) @ V)


def test_a_hessian_is_one_program(backend: Any) -> None:
    def energy(x: Any) -> Any:
        return lnp.sum(lnp.tanh(x[:-1] * x[1:]))

    lx.compile(lx.hessian(energy))(np.linspace(0, 1, 100, dtype="f"))
    assert len(backend.compiled) == 1


@BOTH
def test_errors(jacobian: Any) -> None:
    with pytest.raises(NonFloatArgumentError, match="by x, which is i32"):
        jacobian(lambda x: x * 1.0)(3)
    with pytest.raises(DtypeError, match="must be made of floats"):
        jacobian(lambda x: x > 0)(X)
    with pytest.raises(TypeError, match="argnums=2, but the call has 1"):
        jacobian(lnp.sin, argnums=2)(X)
