"""Iterative solvers against direct ones, with their derivatives in both modes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy.sparse.linalg import bicgstab, cg, gmres
from lavax.test_util import check_grads
from tests.closeness import close
from tests.lavax.linalg.linear_algebra import definite, with_condition

pytestmark = pytest.mark.usefixtures("reference_backend")

SYMMETRIC, GENERAL = definite((6, 6), 5), with_condition((6, 6), 3) + 2 * np.eye(6, dtype="f")
B = np.array([1.0, -2.0, 0.5, 3.0, 0.0, 1.0], "f")
SOLVERS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "cg": (cg, SYMMETRIC),
    "bicgstab": (bicgstab, GENERAL),
    "gmres": (gmres, GENERAL),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_solutions(name: str) -> None:
    solver, a = SOLVERS[name]
    wanted = np.linalg.solve(a, B)
    jacobi = np.diag(1 / np.diag(a))
    for given in (
        solver(a, B, tol=1e-7),
        solver(lambda x: lnp.asarray(a) @ x, B, tol=1e-7),
        solver(a, B, x0=np.ones(6, "f"), M=jacobi, tol=1e-7),
        solver(a, B, M=lambda x: x / np.diag(a), tol=0.0, atol=1e-6),
        lx.jit(lambda a, b: solver(a, b, tol=1e-7))(a, B),
    ):
        assert given[1] is None
        close(given[0], wanted, 1e-5)
    short = {"restart": 2} if name == "gmres" else {}
    assert np.abs(np.asarray(solver(a, B, maxiter=1, **short)[0]) - wanted).max() > 1e-3
    close(solver(a, np.zeros(6, "f"))[0], np.zeros(6))


@pytest.mark.parametrize("name", SOLVERS)
def test_trees(name: str) -> None:
    solver, a = SOLVERS[name]

    def product(x: Any) -> Any:
        y = lnp.asarray(a) @ lnp.concatenate([x["u"].ravel(), x["v"]])
        return {"u": y[:4].reshape(2, 2), "v": y[4:]}

    found = solver(product, {"u": B[:4].reshape(2, 2), "v": B[4:]}, tol=1e-7)[0]
    close(np.concatenate([np.ravel(found["u"]), found["v"]]), np.linalg.solve(a, B))
    with pytest.raises(lx.TreeMismatchError, match=f"{name}: A"):
        solver(lambda x: x["u"], {"u": B, "v": B})


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives(name: str) -> None:
    solver, a = SOLVERS[name]
    with lx.enable_x64():

        def f(matrix: Any, b: Any) -> Any:
            whole = (matrix + matrix.T) / 2 if name == "cg" else matrix
            return solver(lambda x: whole @ x, lnp.sin(b), tol=1e-12)[0]

        check_grads(f, (a.astype(float), B.astype(float)), 2 if name == "cg" else 1)


def test_gmres_restarts_and_breaks_down() -> None:
    close(gmres(GENERAL, B, restart=2, tol=1e-6)[0], np.linalg.solve(GENERAL, B), 1e-4)
    close(gmres(2 * np.eye(6, dtype="f"), B)[0], B / 2)
    with pytest.raises(lx.ShapeError, match="gmres: A must be"):
        gmres(GENERAL[:3], B)


def test_gradients_agree_with_jax() -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")

    def loss(module: Any, a: Any, b: Any) -> Any:
        x = getattr(module.scipy.sparse.linalg, "gmres")(a, b, tol=1e-6)[0]  # noqa: B009
        return 2 * (x * b).sum()

    found = lx.grad(lambda a, b: loss(lx, a, b), (0, 1))(GENERAL, B)
    wanted = jax.grad(lambda a, b: loss(jax, a, b), (0, 1))(GENERAL, B)
    for one, other in zip(found, wanted, strict=True):
        close(one, other, 1e-4)
