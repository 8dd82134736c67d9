"""lavax.scipy.linalg against SciPy, and gradients against differences in float64 and against JAX."""
from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import scipy.linalg as reference

import lavax as lx
import lavax.numpy as lnp
from lavax.scipy import linalg
from lavax.scipy.linalg.decompositions import swaps_of
from lavax.test_util import check_grads
from tests.closeness import close
from tests.lavax.linalg.linear_algebra import definite, with_condition

pytestmark = pytest.mark.usefixtures("reference_backend")

A, TALL, WIDE = (with_condition(shape, 4) for shape in ((4, 4), (5, 3), (3, 5)))
DEFINITE, RIGHT, V = definite((4, 4), 4), with_condition((4, 2), 3), np.array([1.0, -2.0, 0.5, 3.0], "f")

# name -> arguments of the function, which is called alike in both libraries.
ALIKE: dict[str, list[tuple[Any, ...]]] = {
    "block_diag": [(A, V, 2.0), ()],
    "circulant": [(V,)],
    "companion": [(V,), (V[:2],), (np.stack([V, -V[::-1]]),)],
    "convolution_matrix": [(V, 3), (V, 6, "same"), (V, 3, "valid")],
    "det": [(A,)],
    "expm": [(A,), (8 * A,), (np.stack([A, 0.1 * A]),), (np.zeros((2, 2), "f"),)],
    "expm_frechet": [(A, DEFINITE)],
    "fiedler": [(V,), (A,)],
    "fiedler_companion": [(np.arange(1, n, dtype="f"),) for n in (4, 5, 6, 8)] + [(2 + A,)],
    "hadamard": [(1,), (8,)],
    "hankel": [(V,), (V, V[::-1].copy())],
    "helmert": [(4,), (3, True), (1, True)],
    "hessenberg": [(A,)],
    "hilbert": [(4,)],
    "inv": [(A,)],
    "invhilbert": [(4,)],
    "invpascal": [(4,), (4, "lower"), (4, "upper")],
    "leslie": [(np.abs(V), np.array([0.2, 0.8, 0.7], "f"))],
    "pascal": [(4,), (4, "lower"), (4, "upper")],
    "polar": [(A,), (TALL,), (WIDE, "left")],
    "solve": [(A, RIGHT), (A, V)],
    "solve_sylvester": [(A, DEFINITE, RIGHT @ RIGHT.T), (A, DEFINITE[:2, :2].copy(), RIGHT)],
    "sqrtm": [(DEFINITE,)],
    "toeplitz": [(V,), (V, V[1:])],
}


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 3, 0)])
def test_factors_of_matrices_without_elements(shape: tuple[int, ...], dtype: str) -> None:
    empty = np.zeros(shape, dtype)
    places, lower, upper = linalg.lu(empty)
    np.testing.assert_array_equal(np.asarray(places), np.broadcast_to(np.eye(shape[-2]), (*shape[:-1], shape[-2])))
    np.testing.assert_array_equal(np.asarray(places @ lower @ upper), empty)
    packed, pivots = linalg.lu_factor(empty)
    assert packed.shape == shape and pivots.shape == (*shape[:-2], 0)
    assert lx.lax.linalg.lu(empty)[2].shape == shape[:-1]


@pytest.mark.parametrize("name", ALIKE)
def test_alike(name: str) -> None:
    for arguments in ALIKE[name]:
        found, wanted = getattr(linalg, name)(*arguments), getattr(reference, name)(*arguments)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for one, other in pairs:
            scale = max(1.0, float(np.abs(other).max(initial=0)))
            close(np.asarray(one) / scale, np.asarray(other) / scale, 2e-5)


@pytest.mark.parametrize("lower", [False, True])
def test_cholesky_and_its_solutions(lower: bool) -> None:
    triangle = np.tril(DEFINITE) if lower else np.triu(DEFINITE)
    close(linalg.cholesky(triangle, lower=lower), reference.cholesky(DEFINITE, lower=lower))
    factor = linalg.cho_factor(triangle, lower=lower)
    assert factor[1] is lower
    close(linalg.cho_solve(factor, RIGHT), np.linalg.solve(DEFINITE, RIGHT), 1e-4)
    close(linalg.solve(triangle, V, lower=lower, assume_a="pos"), np.linalg.solve(DEFINITE, V), 1e-4)
    close(linalg.solve_triangular(triangle, V, lower=lower, trans=1), np.linalg.solve(triangle.T, V), 1e-4)


@pytest.mark.parametrize("matrix", [A, TALL, WIDE, np.stack([A, A.T])], ids=["square", "tall", "wide", "batch"])
def test_elimination(matrix: np.ndarray) -> None:
    places, lower, upper = linalg.lu(matrix)
    close(np.asarray(places) @ np.asarray(lower) @ np.asarray(upper), matrix)
    close(np.matmul(*map(np.asarray, linalg.lu(matrix, permute_l=True))), matrix)
    factors, swaps = linalg.lu_factor(matrix)
    for number, one in enumerate(np.reshape(matrix, (-1, *matrix.shape[-2:]))):
        wanted, pivots = reference.lu_factor(one)
        close(np.reshape(factors, (-1, *matrix.shape[-2:]))[number], wanted)
        assert np.reshape(swaps, (-1, pivots.shape[0]))[number].tolist() == pivots.tolist()
    if matrix.shape[-1] == matrix.shape[-2]:
        for trans in (0, 1):
            turned = np.swapaxes(matrix, -1, -2) if trans else matrix
            close(linalg.lu_solve((factors, swaps), RIGHT, trans), np.linalg.solve(turned, RIGHT), 1e-4)
        close(linalg.lu_solve(linalg.lu_factor(A), V), np.linalg.solve(A, V), 1e-4)


def test_swaps_of_every_permutation() -> None:
    orders = np.array(list(permutations(range(5))), np.int32)
    for order, swaps in zip(orders, np.asarray(swaps_of(lnp.asarray(orders), 5)), strict=True):
        rows = list(range(5))
        for place, other in enumerate(swaps):
            assert other >= place
            rows[place], rows[other] = rows[other], rows[place]
        assert rows == order.tolist()
    assert np.asarray(swaps_of(lnp.asarray(orders), 3)).shape == (120, 3)


def test_eigenvalues_of_pairs_and_bands() -> None:
    other = definite((4, 4), 3)
    for lower in (True, False):
        given = [np.tril(each) if lower else np.triu(each) for each in (DEFINITE, other)]
        values, vectors = linalg.eigh(*given, lower=lower)
        close(values, reference.eigh(DEFINITE, other, eigvals_only=True), 1e-4)
        close(np.asarray(vectors).T @ other @ np.asarray(vectors), np.eye(4), 1e-4)
        close(DEFINITE @ np.asarray(vectors), other @ np.asarray(vectors) * np.asarray(values), 1e-4)
    close(linalg.eigh(DEFINITE, eigvals_only=True), np.linalg.eigvalsh(DEFINITE))
    d, e = V, np.array([0.5, 1.0, 2.0], "f")
    close(linalg.eigh_tridiagonal(d, e, eigvals_only=True), reference.eigh_tridiagonal(d, e, eigvals_only=True))
    some = linalg.eigh_tridiagonal(d, e, select="i", select_range=(1, 2))
    close(some[0], reference.eigh_tridiagonal(d, e, eigvals_only=True)[1:3])
    assert some[1].shape == (4, 2)


def test_orthogonal_factors() -> None:
    for mode in ("full", "economic"):
        q, r = linalg.qr(TALL, mode=mode)
        wanted = reference.qr(TALL, mode=mode)
        close(r, wanted[1])
        close(q, wanted[0])
    close(linalg.qr(TALL, mode="r")[0], reference.qr(TALL, mode="r")[0])
    for mode, other in (("right", TALL.T.copy()), ("left", DEFINITE[:3, :3].copy())):
        found, wanted = linalg.qr_multiply(TALL, other, mode), reference.qr_multiply(TALL, other, mode)
        close(found[0], wanted[0])
    left, values, right = linalg.svd(TALL, full_matrices=False)
    close(np.asarray(left) * np.asarray(values) @ np.asarray(right), TALL)


def test_eigenvalues_of_matrices_that_are_not_symmetric() -> None:
    matrix = np.array([[2.0, 1.0, 0.0], [0.5, 1.0, 0.3], [0.2, 0.0, -1.0]], "f")
    values, vectors = lx.linalg.eig(matrix)
    wanted = np.linalg.eig(matrix)
    close(values, wanted.eigenvalues)
    close(vectors, wanted.eigenvectors)
    both = lx.compile(lnp.linalg.eigvals)(np.stack([matrix, matrix.T]))
    close(both, [wanted.eigenvalues, np.linalg.eigvals(matrix.T)])
    assert values.dtype == vectors.dtype == np.complex64
    close(lnp.sort(lx.linalg.eigvals(np.array([[0.0, 1.0], [-1.0, 0.0]], "f"))), np.array([-1j, 1j], np.complex64))
    assert np.isnan(np.asarray(lx.linalg.eigvals(np.array([[np.nan, 1.0], [-1.0, 0.0]], "f")))).all()


def test_schur_forms() -> None:
    t, z = (np.asarray(part) for part in linalg.schur(A))
    close(z @ t @ z.T, A)
    close(z @ z.T, np.eye(4))
    assert not np.tril(t, -2).any()
    h, q = (np.asarray(part) for part in linalg.hessenberg(A, calc_q=True))
    close(q @ h @ q.T, A)


def test_products_and_tensors() -> None:
    chain = [V, A, RIGHT, RIGHT.T.copy(), V]
    close(lx.linalg.multi_dot(chain), np.linalg.multi_dot(chain), 1e-4)
    close(lx.linalg.multi_dot(chain[1:3]), A @ RIGHT)
    tensor = with_condition((6, 6), 4).reshape(2, 3, 6)
    close(lx.linalg.tensorinv(tensor), np.linalg.tensorinv(tensor), 1e-4)
    right = np.arange(6, dtype="f").reshape(2, 3)
    close(lx.linalg.tensorsolve(tensor, right), np.linalg.tensorsolve(tensor, right), 1e-4)
    moved = np.moveaxis(tensor, 2, 0).copy()
    close(lx.linalg.tensorsolve(moved, right, axes=(0,)), np.linalg.tensorsolve(moved, right, axes=(0,)), 1e-4)


GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "expm": (linalg.expm, (A,)),
    "large expm": (lambda x: linalg.expm(6 * x) / 100, (A,)),
    "sqrtm": (linalg.sqrtm, (DEFINITE,)),
    "solve_sylvester": (linalg.solve_sylvester, (A, DEFINITE[:2, :2].copy(), RIGHT)),
    "eig": (
        lambda a: [lnp.real(part) for part in lx.linalg.eig(a)],
        (np.array([[2.0, 1.0, 0.0], [0.5, 1.0, 0.3], [0.2, 0.0, -1.0]]),),
    ),
    "lu": (lambda x: linalg.lu(x)[1:], (A,)),
    "lu, tall": (lambda x: linalg.lu(x)[1:], (TALL,)),
    "lu, wide": (lambda x: linalg.lu(x)[1:], (WIDE,)),
    "lu_solve": (lambda x, b: linalg.lu_solve(linalg.lu_factor(x), b), (A, RIGHT)),
    "cho_solve": (lambda x, b: linalg.cho_solve(linalg.cho_factor(x @ x.T), b), (A, V)),
    "eigh of a pair": (lambda a, b: linalg.eigh(a @ a.T, b @ b.T + 4 * lnp.eye(4), eigvals_only=True), (A, DEFINITE)),
    "polar": (linalg.polar, (A,)),
    "toeplitz": (linalg.toeplitz, (V, V[::-1].copy())),
    "block_diag": (linalg.block_diag, (A, V)),
    "multi_dot": (lambda *given: lx.linalg.multi_dot(given), (V, A, RIGHT)),
    "tensorsolve": (lx.linalg.tensorsolve, (A.reshape(2, 2, 4), RIGHT[:2])),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    function, arguments = GRADIENTS[name]
    with lx.enable_x64():
        check_grads(lambda *given: function(*map(lnp.sin, given)), tuple(np.asarray(x, float) for x in arguments), 1)


def test_matrix_functions_agree_with_jax() -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")
    weights = np.random.default_rng(3).normal(size=(4, 4)).astype("f")

    def loss(module: Any, numpy: Any, x: Any) -> Any:
        parts = module.scipy.linalg.lu(x)
        return numpy.sum(weights * module.scipy.linalg.expm(x)) + numpy.sum(weights * (parts[1] + parts[2]))

    value, gradient = lx.value_and_grad(lambda x: loss(lx, lnp, x))(A)
    wanted = jax.value_and_grad(lambda x: loss(jax, jax.numpy, x))(A)
    close(value, wanted[0], 1e-4)
    close(gradient, wanted[1], 1e-4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linalg.expm(TALL), lx.ShapeError, "expm takes square matrices"),
        (lambda: linalg.schur(A, "upper"), ValueError, "'real' or 'complex'"),
        (lambda: linalg.hadamard(6), ValueError, "power of two"),
        (lambda: linalg.solve_sylvester(A, A, RIGHT), lx.ShapeError, r"need C \[..., 4, 4\]"),
        (lambda: lx.linalg.multi_dot([A, V[:3]]), lx.ShapeError, "multi_dot"),
        (lambda: lx.linalg.tensorinv(A, 0), ValueError, "positive"),
        (lambda: linalg.leslie(V, V), lx.ShapeError, "n - 1 rates"),
        (lambda: linalg.eigh_tridiagonal(V, V), lx.ShapeError, "eigh_tridiagonal"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_too_many_squarings_give_nan() -> None:
    assert np.isnan(np.asarray(linalg.expm(1e6 * np.eye(2, dtype="f"), max_squarings=4))).all()


@pytest.mark.parametrize("scale", [None, "sqrtn", "n"])
def test_matrices_of_transforms(scale: str | None) -> None:
    for n in (0, 1, 5, 64):
        found = linalg.dft(n, scale)
        assert found.dtype == np.complex64
        np.testing.assert_allclose(np.asarray(found), reference.dft(n, scale), rtol=0, atol=3e-7)
    for arguments, error in (((3, "m"), ValueError), ((-1,), ValueError)):
        with pytest.raises(error, match="dft: "):
            linalg.dft(*arguments)
    with pytest.raises(lx.DtypeError, match="dft: dtype must be complex"):
        linalg.dft(3, dtype=np.float32)
