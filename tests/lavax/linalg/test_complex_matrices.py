"""Linear algebra of complex matrices against NumPy; gradients against recorded values of JAX, and JAX beside them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import lavax as lx
import lavax.numpy as lnp
from lavax import linalg
from lavax.scipy import linalg as functions

pytestmark = pytest.mark.usefixtures("reference_backend")

_K = np.arange(16).reshape(4, 4)
A = (np.cos(_K**2 + 1) + 1j * np.sin(2 * _K + _K**2)).astype(np.complex64)
RANDOM = np.random.default_rng(8)


def sample(*shape: int) -> np.ndarray:
    return (RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)).astype(np.complex64)


BATCH, RIGHT, TALL, WIDE = sample(2, 4, 4), sample(2, 4, 3), sample(5, 3), sample(3, 5)
DEFINITE = (BATCH @ BATCH.conj().swapaxes(-1, -2) + np.eye(4)).astype(np.complex64)


def close(found: Any, wanted: np.ndarray) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-4, atol=1e-4)


def adjoint(x: Any) -> np.ndarray:
    return np.asarray(x).conj().swapaxes(-1, -2)


def test_systems_inverses_and_determinants() -> None:
    close(linalg.solve(BATCH, RIGHT), np.linalg.solve(BATCH, RIGHT))
    close(linalg.solve(A, RIGHT[0, :, 0]), np.linalg.solve(A, RIGHT[0, :, 0]))
    close(linalg.inv(BATCH), np.linalg.inv(BATCH))
    close(linalg.det(BATCH), np.linalg.det(BATCH))
    close(linalg.det(np.zeros((2, 2), np.complex64)), np.zeros((), np.complex64))
    for found, wanted in zip(linalg.slogdet(BATCH), np.linalg.slogdet(BATCH), strict=True):
        close(found, np.asarray(wanted))
    close(linalg.matrix_power(BATCH, -2), np.linalg.matrix_power(BATCH, -2))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_triangles(trans: int, lower: bool) -> None:
    triangle = np.tril(A) if lower else np.triu(A)
    turned = (triangle, triangle.T, triangle.conj().T)[trans]
    close(linalg.solve_triangular(A, RIGHT[0], trans, lower), np.linalg.solve(turned, RIGHT[0]))


def test_cholesky_factors() -> None:
    close(linalg.cholesky(DEFINITE), np.linalg.cholesky(DEFINITE))
    close(linalg.cholesky(DEFINITE, upper=True), adjoint(np.linalg.cholesky(DEFINITE)))


def test_diagonals_of_cholesky_factors_are_real_and_zeros_have_signs() -> None:
    """As JAX's: those of an upper factor are conjugates."""
    lower, upper = (np.asarray(linalg.cholesky(DEFINITE, upper=upper)) for upper in (False, True))
    for factor, is_conjugate in ((lower, False), (upper, True)):
        zeros = np.stack([np.diagonal(factor.imag, axis1=-2, axis2=-1)])
        assert not zeros.any() and (np.signbit(zeros) == is_conjugate).all()
        beside = (np.triu(factor.imag, 1) if factor is lower else np.tril(factor.imag, -1))[factor == 0]
        assert not beside.any()
    given = np.array([[4 + 9j, 77], [2 - 2j, 6]], np.complex64)  # of the diagonal the real parts are read
    close(linalg.cholesky(given, symmetrize_input=False), np.array([[2, 0], [1 - 1j, 2]]))
    failed = np.asarray(linalg.cholesky(np.array([[1, 2], [2, 1]], np.complex64)))
    assert np.isnan(failed[[0, 1, 1], [0, 0, 1]].imag).all() and failed[0, 1] == 0


@pytest.mark.parametrize("matrix", [BATCH, TALL, WIDE, A[:1, :1]], ids=["square", "tall", "wide", "one"])
def test_elimination(matrix: np.ndarray) -> None:
    places, lower, upper = functions.lu(matrix)
    assert places.dtype == np.float32
    close(np.asarray(places) @ np.asarray(lower) @ np.asarray(upper), matrix)
    factors, swaps = functions.lu_factor(matrix)
    for number, one in enumerate(np.reshape(matrix, (-1, *matrix.shape[-2:]))):
        wanted, pivots = scipy.linalg.lu_factor(one)
        close(np.reshape(factors, (-1, *matrix.shape[-2:]))[number], wanted)
        assert np.reshape(swaps, (-1, pivots.shape[0]))[number].tolist() == pivots.tolist()


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_systems_by_elimination(trans: int) -> None:
    turned = (BATCH, BATCH.swapaxes(-1, -2), adjoint(BATCH))[trans]
    close(functions.lu_solve(functions.lu_factor(BATCH), RIGHT, trans), np.linalg.solve(turned, RIGHT))


@pytest.mark.parametrize("matrix", [BATCH[0], TALL, WIDE], ids=["square", "tall", "wide"])
def test_derivatives_of_elimination(matrix: np.ndarray) -> None:
    """In the middle of a graph, forwards and backwards, against a difference in complex128."""
    kept, direction = min(matrix.shape), (matrix * (0.3 - 0.8j) + 0.2).astype(matrix.dtype)
    weights = (matrix[:, :kept] * 1j, matrix[:kept].conj())

    def loss(lu: Any, numpy: Any, x: Any) -> Any:
        _, *triangles = lu(numpy.sin(x))
        return 3 * sum(numpy.sum(numpy.imag(w * t * t)) for w, t in zip(weights, triangles, strict=True))

    def near(step: float) -> float:
        return float(loss(scipy.linalg.lu, np, matrix.astype(complex) + step * direction))

    wanted = (near(1e-6) - near(-1e-6)) / 2e-6
    of_lavax = lambda x: loss(functions.lu, lnp, x)  # noqa: E731
    _, forwards = lx.jvp(of_lavax, (matrix,), (direction,))
    backwards = np.sum(np.asarray(lx.grad(of_lavax)(matrix)) * direction).real
    np.testing.assert_allclose([forwards, backwards], wanted, rtol=1e-4)


@pytest.mark.parametrize("matrix", [BATCH[0], TALL, WIDE], ids=["square", "tall", "wide"])
def test_gradients_of_elimination_against_jax(matrix: np.ndarray) -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")
    kept = min(matrix.shape)
    weights = (matrix[:, :kept] * 1j, matrix[:kept].conj())

    def loss(module: Any, numpy: Any, x: Any) -> Any:
        _, *triangles = module.scipy.linalg.lu(numpy.sin(x))
        return 3 * sum(numpy.sum(numpy.imag(w * t * t)) for w, t in zip(weights, triangles, strict=True))

    wanted = np.asarray(jax.grad(lambda x: loss(jax, jax.numpy, x))(matrix))
    found = np.asarray(lx.grad(lambda x: loss(lx, lnp, x))(matrix))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("matrix", [BATCH, TALL, WIDE], ids=["square", "tall", "wide"])
def test_orthonormal_columns_and_a_triangle(matrix: np.ndarray) -> None:
    q, r = map(np.asarray, linalg.qr(matrix))
    close(q @ r, matrix)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])))
    for found, wanted in zip((q, r), np.linalg.qr(matrix), strict=True):
        close(found, wanted)


@pytest.mark.parametrize("matrix", [BATCH, TALL, WIDE], ids=["square", "tall", "wide"])
def test_gradients_of_orthonormal_columns(matrix: np.ndarray) -> None:
    jax = pytest.importorskip("jax", reason="compares with JAX")

    def loss(module: Any, x: Any) -> Any:
        q, r = module.numpy.linalg.qr(x * x)
        weights = np.arange(q.size).reshape(q.shape) * (0.1 + 0.2j), np.arange(r.size).reshape(r.shape) * 0.3j
        return 3 * module.numpy.real(module.numpy.sum(weights[0] * q) + module.numpy.sum(weights[1] * r * r))

    wanted = np.asarray(jax.grad(lambda x: loss(jax, x))(matrix))
    found = np.asarray(lx.grad(lambda x: loss(lx, x))(matrix))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * np.abs(wanted).max())


def test_eigenvalues() -> None:
    values, vectors = linalg.eigh(DEFINITE)
    close(values, np.linalg.eigvalsh(DEFINITE))
    close(np.asarray(vectors) * np.asarray(values)[..., None, :] @ adjoint(vectors), DEFINITE)
    close(linalg.eigvalsh(np.triu(DEFINITE), "U"), np.linalg.eigvalsh(DEFINITE))
    close(linalg.eigvalsh(np.tril(DEFINITE), "L"), np.linalg.eigvalsh(DEFINITE))
    values, vectors = linalg.eigh(np.eye(3, dtype=np.complex64))  # equal ones
    close(adjoint(vectors) @ np.asarray(vectors), np.eye(3))


@pytest.mark.parametrize("matrix", [BATCH, TALL, WIDE], ids=["square", "tall", "wide"])
def test_singular_values(matrix: np.ndarray) -> None:
    u, s, vh = map(np.asarray, linalg.svd(matrix, full_matrices=False))
    close(u * s[..., None, :] @ vh, matrix)
    close(linalg.svdvals(matrix), np.linalg.svd(matrix, compute_uv=False))
    close(linalg.pinv(matrix), np.linalg.pinv(matrix))


@pytest.mark.parametrize("matrix", [BATCH, TALL, WIDE], ids=["square", "tall", "wide"])
def test_complete_factors(matrix: np.ndarray) -> None:
    rows, columns = matrix.shape[-2:]
    q, r = map(np.asarray, linalg.qr(matrix, mode="complete"))
    assert q.shape[-2:] == (rows, rows) and r.shape[-2:] == (rows, columns)
    close(q @ r, matrix)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(rows), q.shape))
    close(r, np.linalg.qr(matrix, mode="complete").R)
    u, s, vh = map(np.asarray, linalg.svd(matrix))
    assert u.shape[-2:] == (rows, rows) and vh.shape[-2:] == (columns, columns)
    kept = s.shape[-1]
    close(u[..., :kept] * s[..., None, :] @ vh[..., :kept, :], matrix)
    close(adjoint(u) @ u, np.broadcast_to(np.eye(rows), u.shape))
    close(vh @ adjoint(vh), np.broadcast_to(np.eye(columns), vh.shape))


def test_what_is_made_of_factors() -> None:
    close(linalg.matrix_power(A, 3), A @ A @ A)
    close(linalg.matrix_power(A, -1), np.linalg.inv(A))
    assert int(linalg.matrix_rank(TALL[:, :1] * WIDE[:1])) == 1
    np.testing.assert_allclose(float(linalg.cond(A)), np.linalg.cond(A), rtol=1e-4)
    close(linalg.lstsq(TALL, TALL[:, 0])[0], np.linalg.lstsq(TALL, TALL[:, 0], rcond=None)[0])
    sign, logarithm = linalg.slogdet(A)
    close(np.asarray(sign) * np.exp(np.asarray(logarithm)), np.linalg.det(A))


def test_eigenvalues_of_any_matrix() -> None:
    values, vectors = map(np.asarray, linalg.eig(A))
    close(A @ vectors, vectors * values)
    gradient = np.asarray(lx.grad(lambda z: lnp.sum(lnp.abs(linalg.eigvals(z)) ** 2))(A))
    step, along = 1e-2, TALL[:4, :1] * WIDE[:1, :4]

    def total(z: np.ndarray) -> float:
        return float(np.sum(np.abs(np.linalg.eigvals(z.astype(np.complex128))) ** 2))

    wanted = (total(A + step * along) - total(A - step * along)) / (2 * step)
    np.testing.assert_allclose(np.sum(gradient * along).real, wanted, rtol=2e-3)


def test_norms_are_real() -> None:
    for order in (None, "fro", "nuc", 1, 2, np.inf):
        found = linalg.norm(TALL, order)
        assert found.dtype == np.float32
        close(found, np.asarray(np.linalg.norm(TALL, order)))
    close(linalg.vector_norm(A, axis=1, ord=3), np.linalg.norm(A, 3, 1))


def _hermitian(m: Any, z: Any) -> Any:
    return z + m.conj(z).T


FUNCTIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "det": lambda m: lambda z: m.abs(m.linalg.det(z)),
    "inv": lambda m: lambda z: m.sum(m.abs(m.linalg.inv(z)) * _K),
    "cholesky": lambda m: lambda z: m.sum(m.abs(m.linalg.cholesky(z @ m.conj(z).T + m.eye(4))) * _K),
    "eigvalsh": lambda m: lambda z: m.sum(m.linalg.eigvalsh(_hermitian(m, z)) ** 3),
    "eigh": lambda m: lambda z: m.sum(m.abs(m.linalg.eigh(_hermitian(m, z))[1]) * _K),
    "svdvals": lambda m: lambda z: m.sum(m.linalg.svd(z, compute_uv=False) ** 3),
    "svd": lambda m: lambda z: m.sum(m.abs(m.linalg.svd(z, full_matrices=False)[0]) * _K),
}
# From jax 0.10.0 on a CPU: Σ gradient·k of each function at A, for positions k from 0 to 15.
RECORDED: dict[str, complex] = {
    "det": 8.628964+41.73456j,
    "inv": 183.0704-795.732j,
    "cholesky": 365.1947+510.8368j,
    "eigvalsh": 3143.561+461.9151j,
    "eigh": 21.13845-11.26507j,
    "svdvals": 400.4351+481.3685j,
    "svd": 47.60988+35.20861j,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_jax(name: str) -> None:
    gradient = np.asarray(lx.grad(FUNCTIONS[name](lnp))(A), np.complex128)
    size = np.sum(np.abs(gradient) * _K)
    np.testing.assert_allclose(np.sum(gradient * _K), RECORDED[name], atol=1e-4 * size)


def test_jax_still_gives_what_is_recorded() -> None:
    jax = pytest.importorskip("jax", reason="jax is the oracle of gradients")
    for name, function in FUNCTIONS.items():
        gradient = np.asarray(jax.grad(function(jax.numpy))(A), np.complex128)
        size = np.sum(np.abs(gradient) * _K)
        np.testing.assert_allclose(np.sum(gradient * _K), RECORDED[name], atol=1e-4 * size, err_msg=name)


def test_functions_of_matrices() -> None:
    close(functions.expm(A), scipy.linalg.expm(A))
    root = np.asarray(functions.sqrtm(A))
    close(root @ root, A)
    for matrix in (A, A.real.copy()):
        t, z = map(np.asarray, functions.schur(matrix, output="complex"))
        close(z @ t @ adjoint(z), matrix)
        close(np.triu(t), t)
    x = np.asarray(functions.solve_sylvester(A, DEFINITE[0, :2, :2], A[:, :2]))
    close(A @ x + x @ DEFINITE[0, :2, :2], A[:, :2])
    gradient = np.asarray(lx.grad(lambda m: lnp.sum(lnp.abs(functions.sqrtm(m)) ** 2))(A))
    step = 1e-3 * A[::-1]

    def total(m: np.ndarray) -> float:
        return float(np.sum(np.abs(scipy.linalg.sqrtm(m.astype(np.complex128))) ** 2))

    slope = (total(A + step) - total(A - step)) / 2
    np.testing.assert_allclose(np.sum(gradient * step).real, slope, rtol=1e-3)


def test_logarithms_of_determinants_that_overflow() -> None:
    """Their derivative by the real part of a gradient is that of the parts, in the middle of a graph."""
    draw = np.random.default_rng(11).normal
    large = (30 * (draw(size=(40, 40)) + 1j * draw(size=(40, 40)))).astype("complex64")
    sign, logarithm = lnp.linalg.slogdet(large)
    right = np.linalg.slogdet(large.astype("complex128"))
    assert right[1] > 89, "exp of it is no float32"
    np.testing.assert_allclose(np.asarray(sign), right[0], atol=1e-4)
    np.testing.assert_allclose(np.asarray(logarithm), right[1], rtol=1e-5)

    def loss(m: Any) -> Any:
        sign, logarithm = lnp.linalg.slogdet(m @ m)
        return 1.5 * lnp.real((2 - 1j) * sign) * logarithm**2

    sign, logarithm = np.linalg.slogdet(A.astype("complex128") @ A)
    inverse = np.linalg.inv(A.astype("complex128")).mT
    weight = (2 - 1j) * sign
    turned = 2 * logarithm * weight.real - 1j * logarithm**2 * (1j * weight).real
    found = np.asarray(lx.grad(loss)(A))
    np.testing.assert_allclose(found, 3 * turned * inverse, atol=2e-3 * np.abs(3 * turned * inverse).max())


def test_results_of_nothing_are_real_where_those_of_matrices_are() -> None:
    nothing = np.zeros((2, 0, 0), "complex64")
    for name in ("eigvalsh", "svdvals", "slogdet", "eigh", "svd"):
        found, right = getattr(lnp.linalg, name)(nothing), getattr(np.linalg, name)(nothing)
        pairs = zip(found, right, strict=True) if isinstance(found, tuple) else [(found, right)]
        assert [(one.shape, str(one.dtype)) for one, _ in pairs] == [
            (other.shape, str(other.dtype)) for other in (right if isinstance(right, tuple) else (right,))
        ], name


def test_second_derivatives_of_singular_values() -> None:
    """Real matrices of twice the size have each value twice, and what tells left from right vectors still counts."""
    matrix, direction = BATCH[0].astype("complex128"), DEFINITE[0].astype("complex128")

    def largest(t: Any) -> Any:
        return lnp.sin(linalg.svdvals(lnp.asarray(matrix, "complex64") + t * lnp.asarray(direction, "complex64"))[0])

    def exactly(t: float) -> float:
        return float(np.sin(np.linalg.svd(matrix + t * direction, compute_uv=False)[0]))

    curvature = (exactly(0.3001) - 2 * exactly(0.3) + exactly(0.2999)) / 1e-8
    np.testing.assert_allclose(float(lx.grad(lx.grad(largest))(np.float32(0.3))), curvature, rtol=2e-3)


def test_second_derivatives_where_singular_values_are_equal() -> None:
    """Of sums over equal values, for which it is no matter what vectors are chosen."""
    draw = np.random.default_rng(12).normal
    left, right = (np.linalg.qr(draw(size=(4, 4)))[0] for _ in range(2))
    matrix, direction = left @ np.diag([2, 2, 1, 1]) @ right, draw(size=(4, 4))

    def both(t: Any) -> Any:
        return lnp.sum(linalg.svdvals(lnp.asarray(matrix, "float32") + t * direction.astype("f"))[:2])

    step = 1e-4
    ends = sum(np.linalg.svdvals(matrix + sign * step * direction)[:2].sum() for sign in (1, -1))
    curvature = (ends - 2 * np.linalg.svdvals(matrix)[:2].sum()) / step**2
    found = lx.grad(lx.grad(both))(np.float32(0))
    np.testing.assert_allclose(float(found), curvature, rtol=2e-3)


@pytest.mark.parametrize("seed", range(3))
def test_tangents_of_gradients_of_singular_values(seed: int) -> None:
    """The two values of a pair differ by rounding, whose inverse must not meet terms that cancel."""
    draw = np.random.default_rng(seed).normal
    matrix, direction = (draw(size=(3, 3)) + 1j * draw(size=(3, 3)) for _ in range(2))
    with lx.enable_x64():

        def loss(z: Any) -> Any:
            return lnp.sum(lnp.sin(linalg.svdvals(z) * lnp.asarray([1.0, 2.0, 3.0])))

        step = 1e-5 * direction
        wanted = (np.asarray(lx.grad(loss)(matrix + step)) - np.asarray(lx.grad(loss)(matrix - step))) / 2e-5
        found = lx.jvp(lx.grad(loss), (lnp.asarray(matrix),), (lnp.asarray(direction),))[1]
        np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-6 * np.abs(wanted).max())
