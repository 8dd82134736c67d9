"""jax.lax.linalg's names: its order of arguments and results, and what lavax.linalg lacks."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import lavax as lx
import lavax.numpy as lnp
from lavax.lax import linalg
from lavax.test_util import check_grads

pytestmark = pytest.mark.usefixtures("reference_backend")

RANDOM = np.random.default_rng(7)
SQUARE = RANDOM.normal(size=(4, 4)).astype("f")
TALL = RANDOM.normal(size=(5, 3)).astype("f")
STACK = RANDOM.normal(size=(2, 4, 4)).astype("f")
COMPLEX = (RANDOM.normal(size=(4, 4)) + 1j * RANDOM.normal(size=(4, 4))).astype("F")
DEFINITE = SQUARE @ SQUARE.T + 4 * np.eye(4, dtype="f")
HERMITIAN = (COMPLEX @ COMPLEX.conj().T + 4 * np.eye(4)).astype("F")


def close(found: Any, wanted: Any, tolerance: float = 2e-5) -> None:
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


def test_eigenvectors_come_first() -> None:
    vectors, values = linalg.eigh(DEFINITE)
    close(DEFINITE @ np.asarray(vectors), np.asarray(vectors) * np.asarray(values))
    some, two = linalg.eigh(DEFINITE, subset_by_index=(1, 3))
    close(two, np.asarray(values)[1:3])
    close(some, np.asarray(vectors)[:, 1:3])
    upper = np.triu(DEFINITE)
    close(linalg.eigh(upper, lower=False, symmetrize_input=False)[1], values)


@pytest.mark.parametrize("matrix", [SQUARE, COMPLEX], ids=["real", "complex"])
def test_left_eigenvectors(matrix: np.ndarray) -> None:
    values, left, right = (np.asarray(part) for part in linalg.eig(matrix))
    close(matrix @ right, right * values)
    close(left.conj().T @ matrix, values[:, None] * left.conj().T)
    close(np.linalg.norm(left, axis=0), np.ones(4))
    assert len(linalg.eig(matrix, compute_left_eigenvectors=False)) == 2
    assert len(linalg.eig(matrix, compute_left_eigenvectors=False, compute_right_eigenvectors=False)) == 1


@pytest.mark.parametrize("matrix", [SQUARE, TALL, TALL.T, STACK, COMPLEX], ids=str)
def test_orders_and_swaps_of_rows(matrix: np.ndarray) -> None:
    factors, swaps, order = (np.asarray(part) for part in linalg.lu(matrix))
    k = min(matrix.shape[-2:])
    lower = np.tril(factors[..., :, :k], -1) + np.eye(matrix.shape[-2], k, dtype=matrix.dtype)
    close(lower @ np.triu(factors[..., :k, :]), np.take_along_axis(matrix, order[..., None], -2))
    assert swaps.shape == (*matrix.shape[:-2], k)
    assert np.array_equal(linalg.lu_pivots_to_permutation(swaps, matrix.shape[-2]), order)


def test_columns_in_order_of_length() -> None:
    matrix = TALL @ np.diag([0.1, 1, 5]).astype("f")
    q, r, order = linalg.qr(matrix, pivoting=True, full_matrices=False)
    assert np.array_equal(order, scipy.linalg.qr(matrix, pivoting=True)[2])
    close(np.asarray(q) @ np.asarray(r), matrix[:, np.asarray(order)])
    (alone, again) = lx.scipy.linalg.qr(matrix, mode="r", pivoting=True)
    close(np.abs(np.asarray(alone)[:3]), np.abs(np.asarray(r)))
    assert np.array_equal(again, order)
    check_grads(lambda x: linalg.qr(x, pivoting=True, full_matrices=False)[1], (matrix,), 1, ["fwd", "rev"])


def test_some_singular_values() -> None:
    u, s, vh = linalg.svd(TALL, full_matrices=False, subset_by_index=(0, 2))
    whole = np.linalg.svd(TALL, full_matrices=False)
    close((np.asarray(u) * np.asarray(s)) @ np.asarray(vh), (whole[0][:, :2] * whole[1][:2]) @ whole[2][:2])
    close(linalg.svd(TALL, compute_uv=False, subset_by_index=(1, 3)), whole[1][1:])
    with pytest.raises(ValueError, match="subset_by_index"):
        linalg.svd(TALL, subset_by_index=(0, 1))
    with pytest.raises(TypeError, match="svd: subset_by_index must be"):
        linalg.svd(TALL, full_matrices=False, subset_by_index=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="eigh: subset_by_index must be"):
        linalg.eigh(DEFINITE, subset_by_index=(1,))  # type: ignore[arg-type]


@pytest.mark.parametrize("left_side", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(("transpose", "conjugate"), [(False, False), (True, False), (True, True), (False, True)])
def test_triangles(left_side: bool, lower: bool, transpose: bool, conjugate: bool) -> None:
    triangle = np.tril(HERMITIAN * (1 + 0.2j)) if lower else np.triu(HERMITIAN * (1 + 0.2j))
    meant = triangle.T if transpose else triangle
    meant = meant.conj() if conjugate else meant
    right = COMPLEX[:, :3] if left_side else COMPLEX[:3]
    found = np.asarray(
        linalg.triangular_solve(
            HERMITIAN * np.complex64(1 + 0.2j), right, left_side=left_side, lower=lower, transpose_a=transpose,
            conjugate_a=conjugate,
        )
    )
    close(meant @ found if left_side else found @ meant, right)


@pytest.mark.parametrize("left_side", [True, False])
def test_triangles_with_ones_on_their_diagonal(left_side: bool) -> None:
    meant = np.tril(SQUARE, -1) + np.eye(4, dtype="f")
    found = np.asarray(linalg.triangular_solve(SQUARE, DEFINITE, left_side=left_side, lower=True, unit_diagonal=True))
    close(meant @ found if left_side else found @ meant, DEFINITE, 1e-4)


def _banded(dl: Any, d: Any, du: Any) -> Any:
    return lnp.diag(dl[1:], -1) + lnp.diag(d) + lnp.diag(du[:-1], 1)


def test_tridiagonal_systems() -> None:
    dl, d, du = RANDOM.normal(size=(3, 6)).astype("f")
    d[0] = d[3] = 0  # without exchanges of rows, elimination would divide by it
    right = RANDOM.normal(size=(6, 2)).astype("f")
    matrix = np.asarray(_banded(dl, d, du))
    close(matrix @ np.asarray(linalg.tridiagonal_solve(dl, d, du, right)), right, 1e-4)
    stacked = linalg.tridiagonal_solve(*(np.stack([x, 2 * x]) for x in (dl, d, du)), np.stack([right, right]))
    close(np.asarray(stacked)[1], np.linalg.solve(2 * matrix, right), 1e-4)
    one = linalg.tridiagonal_solve(dl[:1], d[1:2], du[:1], right[:1])
    close(one, right[:1] / d[1])
    weights = RANDOM.normal(size=(6, 2)).astype("f")
    given = (dl, d + 3, du, right)
    found = lx.grad(lambda *x: lnp.sum(weights * linalg.tridiagonal_solve(*x)), argnums=(0, 1, 2, 3))(*given)
    wanted = lx.grad(lambda a, b, c, r: lnp.sum(weights * lnp.linalg.solve(_banded(a, b, c), r)), argnums=(0, 1, 2, 3))(
        *given
    )
    for own, other in zip(found, wanted, strict=True):
        close(own, np.asarray(other), 1e-4)
    with pytest.raises(lx.ShapeError, match="tridiagonal_solve takes"):
        linalg.tridiagonal_solve(dl, d[1:], du, right)
    with pytest.raises(ValueError, match="perturb_singular"):
        linalg.tridiagonal_solve(dl, d, du, right, perturb_singular=True)


@pytest.mark.parametrize("is_complex", [False, True])
def test_reflections(is_complex: bool) -> None:
    matrix = COMPLEX[:, :3] if is_complex else SQUARE[:, :3]
    (form, scalars), _ = scipy.linalg.qr(matrix, mode="raw")
    whole = scipy.linalg.qr(matrix)[0]
    close(linalg.householder_product(form, scalars), whole[:, :3])
    other = COMPLEX if is_complex else SQUARE
    for transpose, q in [(False, whole), (True, whole.conj().T)]:
        close(linalg.ormqr(form, scalars, other, transpose=transpose), q @ other)
        close(linalg.ormqr(form, scalars, other, left=False, transpose=transpose), other @ q)
    if not is_complex:
        check_grads(linalg.householder_product, (np.ascontiguousarray(form), scalars), 1, ["rev"])
    with pytest.raises(lx.ShapeError, match="householder_product takes"):
        linalg.householder_product(form, np.ones(9, "f"))


@pytest.mark.parametrize("matrix", [DEFINITE, HERMITIAN], ids=["real", "complex"])
def test_forms_of_few_diagonals(matrix: np.ndarray) -> None:
    form, scalars = linalg.hessenberg(matrix)
    below = np.zeros((4, 4), matrix.dtype)
    below[1:, :3] = np.asarray(form)[1:, :3]
    q = np.eye(4, dtype=matrix.dtype)
    q[1:, 1:] = linalg.householder_product(below[1:, :3], np.asarray(scalars))
    upper = np.triu(np.asarray(form), -1)
    close(q @ upper @ q.conj().T, matrix)
    _, diagonal, beside, scalars = linalg.tridiagonal(matrix)
    assert np.asarray(diagonal).dtype == np.asarray(beside).dtype == np.float32 and scalars.shape == (3,)
    found = scipy.linalg.eigvalsh_tridiagonal(np.asarray(diagonal), np.asarray(beside))
    close(found, np.linalg.eigvalsh(matrix))
    for lower, triangle in [(True, np.tril(matrix)), (False, np.triu(matrix))]:
        _, diagonal, beside, _ = linalg.tridiagonal(triangle, lower=lower)
        found = scipy.linalg.eigvalsh_tridiagonal(np.asarray(diagonal), np.asarray(beside))
        close(found, np.linalg.eigvalsh(matrix))


def test_schur_forms() -> None:
    t, z = linalg.schur(SQUARE)
    close(np.asarray(z) @ np.asarray(t) @ np.asarray(z).T, SQUARE)
    assert len(linalg.schur(SQUARE, compute_schur_vectors=False)) == 1


def test_updated_factors_and_products() -> None:
    vector = TALL[:4, 0]
    factor = np.linalg.cholesky(DEFINITE).T
    close(linalg.cholesky_update(factor, vector), np.linalg.cholesky(DEFINITE + np.outer(vector, vector)).T)
    close(linalg.cholesky(DEFINITE, symmetrize_input=False), factor.T)
    turned = COMPLEX[0]
    found = np.asarray(linalg.cholesky_update(np.linalg.cholesky(HERMITIAN).conj().T, turned))
    close(found.conj().T @ found, HERMITIAN + np.outer(turned, turned.conj()))
    for given, symmetrize in [(DEFINITE, False), (np.tril(DEFINITE), True)]:
        found = linalg.symmetric_product(SQUARE, given, alpha=2.0, beta=0.5, symmetrize_output=symmetrize)
        close(found, 2 * SQUARE @ SQUARE.T + 0.5 * DEFINITE)
    u, h, _, converged = linalg.qdwh(SQUARE)
    close(np.asarray(u) @ np.asarray(h), SQUARE)
    assert bool(converged)


def test_functions_of_eigenvalues() -> None:
    jsl = lx.scipy.linalg
    close(jsl.funm(SQUARE, lnp.sin), scipy.linalg.funm(SQUARE.astype("d"), np.sin), 1e-4)
    close(jsl.funm(np.diag([2.0, 2.0]), lnp.exp), np.diag(np.exp([2.0, 2.0])))
    found, error = jsl.funm(SQUARE, lnp.exp, disp=False)
    close(found, scipy.linalg.expm(SQUARE), 1e-4)
    assert 0 < float(error) < 1e-3
    t, z = scipy.linalg.schur(SQUARE)
    upper, vectors = (np.asarray(part) for part in jsl.rsf2csf(t.astype("f"), z.astype("f")))
    assert np.array_equal(upper, np.triu(upper)) and upper.dtype == np.complex64
    close(vectors @ upper @ vectors.conj().T, SQUARE)


def test_arguments_of_jax() -> None:
    assert lnp.linalg.slogdet(SQUARE, method="qr")[0] == lnp.linalg.slogdet(SQUARE)[0]
    with pytest.raises(ValueError, match="slogdet: method"):
        lnp.linalg.slogdet(SQUARE, method="svd")
    thin = TALL[:, :2] @ TALL[:2]
    close(lnp.linalg.pinv(thin, rcond=1e-3), np.linalg.pinv(thin, rcond=1e-3))
    with pytest.raises(ValueError, match="pinv: give rtol or rcond"):
        lnp.linalg.pinv(thin, rcond=1e-3, rtol=1e-3)
    truth = SQUARE > 0
    for exponent in range(4):
        found = np.asarray(lnp.linalg.matrix_power(truth, exponent))
        assert found.dtype == bool
        assert np.array_equal(found, np.linalg.matrix_power(truth.astype(int), exponent) > 0)
