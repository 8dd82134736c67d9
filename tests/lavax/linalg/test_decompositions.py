"""Decompositions on the device: against NumPy in float64, and by the properties of their factors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ShapeError
from tests.lavax.linalg.linear_algebra import EPSILON, definite, with_condition

SQUARE = [(1, 1), (2, 2), (3, 4, 4), (2, 3, 5, 5), (17, 17), (33, 33), (70, 70)]
OBLONG = [(1, 4), (4, 1), (5, 3), (3, 5), (2, 7, 4), (2, 4, 7), (40, 18), (18, 40), (100, 3)]

SAMPLES = np.random.default_rng(17).normal(size=(2, 4, 4)).astype(np.float32)


def exact(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


def rounding(shape: tuple[int, ...]) -> float:
    """Backward stable methods err by the rounding of about as many operations as there are rows, in root."""
    return 8 * EPSILON * max(shape[-2:]) ** 0.5


def turned(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


def assert_orthonormal_columns(x: np.ndarray) -> None:
    product = turned(x) @ x
    np.testing.assert_allclose(product - np.eye(x.shape[-1]), np.zeros_like(product), atol=2 * rounding(x.shape))


@pytest.mark.parametrize("shape", [*SQUARE, (150, 150)])
def test_cholesky(shape: tuple[int, ...]) -> None:
    matrix = definite(shape)
    lower, upper = exact(lnp.linalg.cholesky(matrix)), exact(lnp.linalg.cholesky(matrix, upper=True))
    np.testing.assert_array_equal(upper, turned(lower))
    np.testing.assert_array_equal(np.triu(lower, 1), 0)
    np.testing.assert_allclose(lower @ turned(lower), matrix, rtol=0, atol=rounding(shape))
    np.testing.assert_allclose(lower, np.linalg.cholesky(exact(matrix)), rtol=0, atol=50 * rounding(shape))


@pytest.mark.parametrize("size", [2, 5, 100])
@pytest.mark.parametrize("place", [0, -1])
def test_what_is_not_positive_definite_gives_nan(size: int, place: int) -> None:
    matrices = np.stack([np.eye(size), np.eye(size)]).astype(np.float32)
    matrices[1, place, place] = -1
    factors = exact(lnp.linalg.cholesky(matrices))
    np.testing.assert_array_equal(factors[0], np.eye(size))
    below = np.tril(np.ones((size, size), bool))
    assert np.isnan(factors[1][below]).all() and (factors[1][~below] == 0).all()


def test_cholesky_reads_the_triangle_it_is_told() -> None:
    matrix = definite((4, 4))
    below, above = (np.where(keep, matrix, 7).astype(np.float32) for keep in (np.tri(4), np.tri(4).T))
    right = np.linalg.cholesky(exact(matrix))
    for found in (
        lnp.linalg.cholesky(below, symmetrize_input=False),
        lnp.linalg.cholesky(above, upper=True, symmetrize_input=False).mT,
    ):
        np.testing.assert_allclose(exact(found), right, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(exact(lnp.linalg.eigvalsh(below, "L")), exact(lnp.linalg.eigvalsh(above, "U")))


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [*SQUARE, *OBLONG, (150, 60)])
def test_qr(shape: tuple[int, ...], mode: Any) -> None:
    matrix = with_condition(shape, 100)
    if mode == "r":
        found = exact(lnp.linalg.qr(matrix, mode="r"))
        np.testing.assert_allclose(found, np.linalg.qr(exact(matrix), "r"), rtol=0, atol=rounding(shape) * 100)
        return
    q, r = map(exact, lnp.linalg.qr(matrix, mode=mode))
    expected = np.linalg.qr(exact(matrix), mode)
    assert q.shape == expected.Q.shape and r.shape == expected.R.shape
    assert_orthonormal_columns(q)
    np.testing.assert_array_equal(np.tril(r, -1), 0)
    np.testing.assert_allclose(q @ r, matrix, rtol=0, atol=rounding(shape))
    np.testing.assert_allclose(r, expected.R, rtol=0, atol=100 * rounding(shape))


def test_qr_of_dependent_columns_and_of_zeros() -> None:
    for matrix in (np.ones((6, 4)), np.zeros((5, 3)), np.diag([1.0, 0, 2])):
        q, r = map(exact, lnp.linalg.qr(matrix.astype(np.float32)))
        assert_orthonormal_columns(q)
        np.testing.assert_allclose(q @ r, matrix, rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [2, 9])
@pytest.mark.parametrize("scale", [1.0, 1e10, 1e-10])
def test_qr_of_what_is_nearly_triangular(size: int, scale: float) -> None:
    """Squares of what is below the diagonal are hardly numbers, or none; the factors belong together."""
    for exponent in (-8, -14, -16, -20, -22.5, -22.9, -23.5, -27):
        matrix = np.triu(with_condition((size, size), 10)) + np.eye(size)
        matrix = ((matrix + np.tril(np.ones((size, size)), -1) * 10.0**exponent) * scale).astype(np.float32)
        q, r = map(exact, lnp.linalg.qr(matrix))
        assert_orthonormal_columns(q)
        np.testing.assert_allclose(q @ r / scale, exact(matrix) / scale, rtol=0, atol=2e-6)


@pytest.mark.parametrize("shape", [(70_000, 2), (75_000, 1)], ids=str)
def test_qr_of_more_rows_than_loops_have_iterations(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    q, r = lnp.linalg.qr(x)
    expected_q, expected_r = np.linalg.qr(exact(x))
    np.testing.assert_allclose(q, expected_q, rtol=0, atol=rounding(shape) * np.abs(expected_q).max())
    np.testing.assert_allclose(r, expected_r, rtol=0, atol=rounding(shape) * np.abs(expected_r).max())


def test_qr_does_not_overflow() -> None:
    matrix = with_condition((6, 4), 10) * np.float32(1e30)
    q, r = map(exact, lnp.linalg.qr(matrix))
    np.testing.assert_allclose(q @ r / 1e30, exact(matrix) / 1e30, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", SQUARE)
def test_eigh(shape: tuple[int, ...]) -> None:
    matrix = definite(shape) - np.float32(0.3) * np.eye(shape[-1], dtype=np.float32)
    values, vectors = map(exact, lnp.linalg.eigh(matrix))
    expected = np.linalg.eigvalsh(exact(matrix))
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding(shape))
    np.testing.assert_allclose(exact(lnp.linalg.eigvalsh(matrix)), expected, rtol=0, atol=2 * rounding(shape))
    assert_orthonormal_columns(vectors)
    np.testing.assert_allclose((vectors * values[..., None, :]) @ turned(vectors), matrix, rtol=0, atol=rounding(shape))
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(-2, keepdims=True), -2)
    assert (largest > 0).all()


def test_eigenvalues_that_are_equal_or_opposite() -> None:
    for matrix in (np.zeros((4, 4)), np.eye(5), np.diag([1.0, -1, 1, -1]), np.ones((20, 20)), np.eye(18)[::-1]):
        values, vectors = map(exact, lnp.linalg.eigh(matrix.astype(np.float32)))
        np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), rtol=0, atol=1e-5)
        assert_orthonormal_columns(vectors)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [*SQUARE, *OBLONG])
def test_svd(shape: tuple[int, ...], full: bool) -> None:
    matrix = with_condition(shape, 100)
    u, s, vh = map(exact, lnp.linalg.svd(matrix, full_matrices=full))
    expected = np.linalg.svd(exact(matrix), full_matrices=full)
    assert [x.shape for x in (u, s, vh)] == [x.shape for x in expected]
    np.testing.assert_allclose(s, expected.S, rtol=0, atol=rounding(shape))
    np.testing.assert_allclose(exact(lnp.linalg.svdvals(matrix)), expected.S, rtol=0, atol=rounding(shape))
    np.testing.assert_array_equal(exact(lnp.linalg.svd(matrix, compute_uv=False)), exact(lnp.linalg.svdvals(matrix)))
    assert_orthonormal_columns(u)
    assert_orthonormal_columns(turned(vh))
    count = s.shape[-1]
    product = (u[..., :count] * s[..., None, :]) @ vh[..., :count, :]
    np.testing.assert_allclose(product, matrix, rtol=0, atol=rounding(shape))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (40, 20), (20, 20), (30, 20)])
def test_svd_of_dependent_columns(shape: tuple[int, int], full: bool) -> None:
    """Left vectors are orthonormal also where the singular value is zero."""
    rank = 3
    matrix = with_condition((shape[0], rank), 5) @ with_condition((rank, shape[1]), 5)
    for given in (matrix, np.zeros_like(matrix), np.ones_like(matrix)):
        u, s, vh = map(exact, lnp.linalg.svd(given, full_matrices=full))
        np.testing.assert_allclose(s, np.linalg.svd(exact(given))[1], rtol=0, atol=2e-6 * max(s.max(), 1))
        assert_orthonormal_columns(u)
        assert_orthonormal_columns(turned(vh))


def test_small_singular_values_keep_their_digits() -> None:
    """A triangle of columns of very different lengths: Jacobi's method finds each to its own rounding."""
    matrix = np.triu(with_condition((6, 6), 3)) * np.float32(10.0) ** -np.arange(0, 12, 2, dtype=np.float32)
    s = exact(lnp.linalg.svdvals(matrix))
    np.testing.assert_allclose(s, np.linalg.svd(exact(matrix))[1], rtol=2e-6)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_squares_do_not_overflow(scale: float) -> None:
    matrix = definite((5, 5))
    values, scaled = np.linalg.eigvalsh(exact(matrix)), (matrix * scale).astype(np.float32)
    np.testing.assert_allclose(exact(lnp.linalg.eigvalsh(scaled)) / scale, values, rtol=0, atol=1e-6)
    np.testing.assert_allclose(exact(lnp.linalg.svdvals(scaled)) / scale, values[::-1], rtol=0, atol=1e-6)


def test_nan_gives_nan() -> None:
    """And nothing but NaN, in the matrix that has one; the other of the batch is as without it."""

    def parts(matrices: np.ndarray) -> list[Any]:
        return [*lnp.linalg.eigh(matrices), *lnp.linalg.svd(matrices), lnp.linalg.svdvals(matrices)]

    for size in (3, 40):
        matrices = np.stack([definite((size, size))] * 2)
        without = [exact(found)[0] for found in parts(matrices)]
        matrices[1, 1, 0] = np.nan
        results = parts(matrices)
        for found, right in zip(results, without, strict=True):
            np.testing.assert_allclose(exact(found)[0], right, rtol=0, atol=1e-5)
        below = np.tril(np.ones((size, size), bool))
        for found, own in [*((each, ...) for each in results), (lnp.linalg.cholesky(matrices), below)]:
            array = exact(found)
            assert np.isfinite(array[0]).all() and np.isnan(array[1][own]).all()


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (0, 4, 4)])
def test_nothing(shape: tuple[int, ...]) -> None:
    matrix = np.zeros(shape, np.float32)
    assert lnp.linalg.cholesky(matrix).shape == shape
    values, vectors = lnp.linalg.eigh(matrix)
    assert values.shape == shape[:-1] and vectors.shape == shape
    for full in (False, True):
        for ours, theirs in zip(lnp.linalg.svd(matrix, full), np.linalg.svd(matrix, full), strict=True):
            assert ours.shape == theirs.shape
    for ours, theirs in zip(lnp.linalg.qr(matrix), np.linalg.qr(matrix), strict=True):
        assert ours.shape == theirs.shape


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (2, 0, 3)])
def test_oblong_nothing(shape: tuple[int, ...]) -> None:
    matrix = np.zeros(shape, np.float32)
    for full in (False, True):
        for ours, theirs in zip(lnp.linalg.svd(matrix, full), np.linalg.svd(matrix, full), strict=True):
            np.testing.assert_array_equal(exact(ours), theirs)
    for mode in ("reduced", "complete"):
        for ours, theirs in zip(lnp.linalg.qr(matrix, mode=mode), np.linalg.qr(matrix, mode), strict=True):
            np.testing.assert_array_equal(exact(ours), theirs)


def test_results_are_the_same_on_every_run() -> None:
    matrix = with_condition((3, 20, 20), 100)
    for function in (lnp.linalg.svd, lnp.linalg.qr, lambda x: lnp.linalg.eigh(x)):
        for first, second in zip(function(matrix), function(matrix), strict=True):
            np.testing.assert_array_equal(exact(first), exact(second))


def test_inside_compile_and_vmap() -> None:
    matrix = definite((3, 4, 4))

    def everything(x: Any) -> Any:
        return lnp.linalg.cholesky(x), *lnp.linalg.eigh(x), *lnp.linalg.svd(x), *lnp.linalg.qr(x)

    plain = [exact(x) for x in everything(matrix)]
    for others in (
        lx.compile(everything)(matrix),
        lx.vmap(everything)(matrix),
        lx.compile(lx.vmap(everything))(matrix),
    ):
        for one, other in zip(plain, others, strict=True):
            np.testing.assert_allclose(exact(other), one, rtol=0, atol=2e-6)


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh"])
def test_errors(name: str) -> None:
    function = getattr(lnp.linalg, name)
    with pytest.raises(ShapeError, match=rf"{name} takes square matrices: .* f32\[3,4\]"):
        function(np.zeros((3, 4), np.float32))
    with pytest.raises(ShapeError, match=rf"{name} takes matrices: .* f32\[3\]"):
        function(np.zeros(3, np.float32))


def test_errors_of_settings() -> None:
    square = np.eye(3, dtype=np.float32)
    with pytest.raises(ValueError, match="qr: mode must be 'reduced', 'complete', 'r' or 'raw', got 'full'"):
        lnp.linalg.qr(square, mode="full")
    with pytest.raises(ValueError, match="eigh: UPLO must be 'L' or 'U', got 'l'"):
        lnp.linalg.eigh(square, "l")
    with pytest.raises(ShapeError, match=r"svd takes matrices: .* f32\[\]"):
        lnp.linalg.svd(np.float32(1))


@pytest.mark.parametrize("given", [SAMPLES, SAMPLES[0] + 1j * np.triu(SAMPLES[1], 1)], ids=["real", "complex"])
def test_matrices_that_are_taken_to_be_hermitian(given: np.ndarray) -> None:
    matrix = (given + np.swapaxes(given.conj(), -1, -2)).astype(np.result_type(given, np.float32))
    u, s, vh = map(np.asarray, lnp.linalg.svd(matrix, hermitian=True))
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, matrix, atol=1e-5)
    np.testing.assert_allclose(s, np.linalg.svd(matrix, compute_uv=False), atol=1e-5)
    alone = lnp.linalg.svd(matrix, compute_uv=False, hermitian=True)
    np.testing.assert_allclose(np.asarray(alone), s, atol=1e-5)
    np.testing.assert_allclose(np.asarray(lnp.linalg.pinv(matrix, hermitian=True)), np.linalg.pinv(matrix), atol=1e-4)
    ranks = lnp.linalg.matrix_rank(matrix * (np.arange(4) < 2) * (np.arange(4) < 2)[:, None], hermitian=True)
    assert (np.asarray(ranks) == 2).all()


def test_the_mode_of_qr_by_its_place() -> None:
    for mode in ("reduced", "complete", "r"):
        by_name = lnp.linalg.qr(SAMPLES, mode=mode)
        for one, other in zip(lnp.linalg.qr(SAMPLES, mode), by_name, strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (1, 1), (3, 0), (0, 2)])
def test_packed_reflections_are_those_of_lapack(dtype: str, shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(3).normal
    matrix = (draw(size=shape) + (1j * draw(size=shape) if dtype == "complex64" else 0)).astype(dtype)
    found, wanted = lnp.linalg.qr(matrix, mode="raw"), np.linalg.qr(matrix, mode="raw")
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(one), other, atol=2e-6)


def test_packed_reflections_give_the_factors_back() -> None:
    singular = np.ones((4, 3), "f") * np.array([1, 2, 0], "f")
    for matrix in (singular, singular * (1 + 2j), np.zeros((3, 3), "f")):
        reflections, scalars = lnp.linalg.qr(matrix, mode="raw")
        q = np.asarray(lx.lax.linalg.householder_product(reflections.mT, scalars))
        np.testing.assert_allclose(q @ np.triu(np.asarray(reflections.mT))[:3], matrix, atol=1e-5)
        np.testing.assert_allclose(q.conj().T @ q, np.eye(3), atol=1e-5)
        plain = np.asarray(lnp.linalg.qr(matrix).Q)
        np.testing.assert_allclose(plain.conj().T @ plain, np.eye(3), atol=1e-5)
