"""Functions of SciPy whose formulas conjugate something when numbers are complex."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.special

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.base.errors import DtypeError
from lavax.scipy import linalg, signal, special
from lavax.scipy.sparse.linalg import bicgstab, cg, gmres

pytestmark = pytest.mark.usefixtures("reference_backend")


def complex_normal(seed: int, *shape: int) -> np.ndarray:
    draw = np.random.default_rng(seed).normal
    return (draw(size=shape) + 1j * draw(size=shape)).astype("complex64")


HALF = complex_normal(0, 5, 5)
HERMITIAN = (HALF @ HALF.conj().T + 3 * np.eye(5)).astype("complex64")
RIGHT = complex_normal(1, 5)
SOLVERS = {"cg": (cg, HERMITIAN), "bicgstab": (bicgstab, HALF + 5 * np.eye(5, dtype="f")), "gmres": (gmres, HALF)}


@pytest.mark.parametrize("name", SOLVERS)
def test_complex_systems_are_solved(name: str) -> None:
    solver, matrix = SOLVERS[name]
    right = np.linalg.solve(matrix, RIGHT)
    np.testing.assert_allclose(np.asarray(solver(matrix, RIGHT, tol=1e-6)[0]), right, atol=1e-4)
    of_reals = np.linalg.solve(matrix, RIGHT.real)
    np.testing.assert_allclose(np.asarray(solver(matrix, RIGHT.real, tol=1e-6)[0]), of_reals, atol=1e-4)
    real = (matrix.real + matrix.real.T) / 2 + 3 * np.eye(5, dtype="f")
    if name == "cg":
        np.testing.assert_allclose(np.asarray(cg(real, RIGHT, tol=1e-6)[0]), np.linalg.solve(real, RIGHT), atol=1e-4)


@pytest.mark.parametrize("name", SOLVERS)
def test_derivatives_of_complex_solutions(name: str) -> None:
    """Those of dense solutions, by both sides, in the middle of a graph."""
    solver, matrix = SOLVERS[name]
    weights = complex_normal(2, 5)

    def loss(solve: Any) -> Any:
        return lambda a, b: 1.5 * lnp.sum(lnp.real(weights * solve(a, lnp.sin(b)) ** 2))

    found = lx.grad(loss(lambda a, b: solver(lambda v: a @ v, b, tol=1e-7)[0]), (0, 1))(matrix, RIGHT)
    expected = lx.grad(loss(lnp.linalg.solve), (0, 1))(matrix, RIGHT)
    for one, other in zip(found, expected, strict=True):
        size = np.abs(np.asarray(other)).max()
        np.testing.assert_allclose(np.asarray(one) / size, np.asarray(other) / size, atol=3e-4)


def test_eigenvalues_of_three_complex_diagonals() -> None:
    diagonal, beside = RIGHT.real, RIGHT[1:] * 1j
    matrix = np.diag(diagonal) + np.diag(beside, -1) + np.diag(beside.conj(), 1)
    values = np.asarray(linalg.eigh_tridiagonal(diagonal, beside, eigvals_only=True))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=2e-6)
    of_complex = linalg.eigh_tridiagonal(diagonal + 2j, beside, eigvals_only=True)
    np.testing.assert_allclose(np.asarray(of_complex), values, atol=2e-6)
    some, vectors = (np.asarray(part) for part in linalg.eigh_tridiagonal(diagonal, beside))
    np.testing.assert_allclose(matrix @ vectors, vectors * some, atol=1e-5)


def test_the_first_row_of_a_toeplitz_matrix_is_conjugate() -> None:
    np.testing.assert_array_equal(np.asarray(linalg.toeplitz(RIGHT)), scipy.linalg.toeplitz(RIGHT))


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_correlations_of_matrices_conjugate_the_second(boundary: str) -> None:
    second = complex_normal(3, 3, 2)
    found = np.asarray(signal.correlate2d(HALF, second, "same", boundary))
    np.testing.assert_allclose(found, scipy.signal.correlate2d(HALF, second, "same", boundary), atol=1e-4)


def test_logarithms_of_complex_sums() -> None:
    x = 40 * complex_normal(4, 3, 4)
    weights = complex_normal(5, 3, 4)
    for arguments in ({}, {"b": weights}):
        right = scipy.special.logsumexp(x.astype("complex128"), axis=1, **arguments)
        found = np.asarray(special.logsumexp(x, axis=1, **arguments))
        np.testing.assert_allclose(found.real, right.real, rtol=1e-5)
        np.testing.assert_allclose(np.exp(1j * found.imag), np.exp(1j * right.imag), atol=2e-5)
        size, sign = special.logsumexp(x, axis=1, return_sign=True, **arguments)
        np.testing.assert_allclose(np.asarray(size), right.real, rtol=1e-5)
        np.testing.assert_allclose(np.asarray(sign), np.exp(1j * right.imag), atol=2e-5)
    slope = lx.grad(lambda x: special.logsumexp(x), holomorphic=True)(RIGHT)
    np.testing.assert_allclose(np.asarray(slope), np.exp(RIGHT) / np.exp(RIGHT).sum(), rtol=1e-4)


@pytest.mark.parametrize("lower", [True, False])
def test_hermitian_systems_by_cholesky(lower: bool) -> None:
    right = np.linalg.solve(HERMITIAN, RIGHT)
    found = linalg.cho_solve(linalg.cho_factor(HERMITIAN, lower=lower), RIGHT)
    np.testing.assert_allclose(np.asarray(found), right, atol=1e-4)
    found = linalg.solve(HERMITIAN, RIGHT, assume_a="pos", lower=lower)
    np.testing.assert_allclose(np.asarray(found), right, atol=1e-4)


@pytest.mark.parametrize("lower", [True, False])
def test_hermitian_eigenvalues_of_two_matrices(lower: bool) -> None:
    matrix = HALF + HALF.conj().T
    values, vectors = linalg.eigh(matrix, HERMITIAN, lower=lower)
    np.testing.assert_allclose(np.asarray(values), scipy.linalg.eigh(matrix, HERMITIAN)[0], atol=1e-4)
    np.testing.assert_allclose(matrix @ vectors, np.asarray(HERMITIAN @ vectors * values), atol=1e-4)
    np.testing.assert_allclose(np.conj(np.asarray(vectors)).T @ HERMITIAN @ vectors, np.eye(5), atol=1e-4)


@pytest.mark.parametrize("side", ["right", "left"])
def test_polar_factors(side: str) -> None:
    for found, right in zip(linalg.polar(HALF, side), scipy.linalg.polar(HALF, side), strict=True):
        np.testing.assert_allclose(np.asarray(found), right, atol=1e-4)


def test_the_dilogarithm_refuses_complex_numbers() -> None:
    with pytest.raises(DtypeError, match="spence is not defined for c64"):
        special.spence(RIGHT)


def test_conjugates_of_lax_are_complex() -> None:
    found = lax.conj(np.float32([1, -2]))
    assert found.dtype == "complex64"
    np.testing.assert_array_equal(np.asarray(found), [1, -2])
