"""Systems of equations, inverses, determinants and least squares on the device, against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.base.errors import ShapeError
from tests.lavax.linalg.linear_algebra import EPSILON, with_condition

CONDITION = 30
SHAPES = [(1, 1), (2, 2), (4, 4), (2, 3, 5, 5), (17, 17), (70, 70), (140, 140)]


def exact(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


def tolerance(shape: tuple[int, ...]) -> float:
    """What backward stable methods lose: the condition times the rounding of about as many operations as rows."""
    return 8 * EPSILON * CONDITION * max(shape[-2:]) ** 0.5


def right_side(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).uniform(-1, 1, shape).astype(np.float32)


def assert_close(found: Any, expected: np.ndarray, shape: tuple[int, ...]) -> None:
    assert exact(found).shape == expected.shape
    scale = np.abs(expected).max(initial=1)
    np.testing.assert_allclose(exact(found), expected, rtol=0, atol=tolerance(shape) * scale)


@pytest.mark.parametrize("shape", SHAPES)
def test_solve_and_inv(shape: tuple[int, ...]) -> None:
    matrix = with_condition(shape, CONDITION)
    for columns in (1, 3, 20):
        right = right_side(*shape[:-1], columns)
        assert_close(lnp.linalg.solve(matrix, right), np.linalg.solve(exact(matrix), exact(right)), shape)
    vector = right_side(shape[-1])
    assert_close(lnp.linalg.solve(matrix, vector), np.linalg.solve(exact(matrix), exact(vector)), shape)
    assert_close(lnp.linalg.inv(matrix), np.linalg.inv(exact(matrix)), shape)


def test_batches_broadcast() -> None:
    matrix, right = with_condition((3, 1, 4, 4), CONDITION), right_side(2, 4, 5)
    expected = np.linalg.solve(exact(matrix), exact(right))
    assert_close(lnp.linalg.solve(matrix, right), expected, matrix.shape)
    lower = np.tril(matrix) + 2 * np.eye(4, dtype=np.float32)
    found = lnp.linalg.solve_triangular(lower, right, lower=True)
    assert_close(found, np.linalg.solve(exact(lower), exact(right)), matrix.shape)


@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("trans", [0, "T"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(("size", "columns"), [(3, 1), (5, 12), (150, 20), (300, 2), (300, 1)])
def test_solve_triangular(size: int, columns: int, lower: bool, trans: Any, unit_diagonal: bool) -> None:
    """The other triangle, and the diagonal if it is one, are not read."""
    matrix = right_side(size, size) / size + 2 * np.eye(size, dtype=np.float32)
    right = right_side(size, columns)
    triangle = exact(np.tril(matrix) if lower else np.triu(matrix))
    given = np.where(triangle != 0, matrix, np.nan).astype(np.float32)
    if unit_diagonal:
        np.fill_diagonal(triangle, 1)
        np.fill_diagonal(given, np.nan)
    expected = np.linalg.solve(triangle.T if trans else triangle, exact(right))
    found = lnp.linalg.solve_triangular(given, right, trans, lower, unit_diagonal)
    np.testing.assert_allclose(exact(found), expected, rtol=0, atol=20 * EPSILON * np.abs(expected).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_determinants(shape: tuple[int, ...]) -> None:
    matrix = with_condition(shape, CONDITION)
    sign, logarithm = lnp.linalg.slogdet(matrix)
    right = np.linalg.slogdet(exact(matrix))
    np.testing.assert_array_equal(exact(sign), right.sign)
    bound = tolerance(shape) * shape[-1]
    np.testing.assert_allclose(exact(logarithm), right.logabsdet, rtol=EPSILON * 4, atol=bound)
    if shape[-1] <= 17:
        np.testing.assert_allclose(exact(lnp.linalg.det(matrix)), np.linalg.det(exact(matrix)), rtol=bound)


def test_permutations_and_singular_matrices() -> None:
    order = np.random.default_rng(1).permutation(40)
    permutation = np.eye(40, dtype=np.float32)[order]
    np.testing.assert_array_equal(exact(lnp.linalg.inv(permutation)), permutation.T)
    assert float(lnp.linalg.det(permutation)) == round(np.linalg.det(permutation))
    for singular in (np.zeros((3, 3)), np.ones((4, 4)), np.diag([1.0, 0, 2])):
        matrix = singular.astype(np.float32)
        assert float(lnp.linalg.det(matrix)) == 0
        sign, logarithm = map(float, lnp.linalg.slogdet(matrix))
        assert sign == 0 and logarithm == -np.inf
        assert not np.isfinite(exact(lnp.linalg.inv(matrix))).all()


def cofactors(matrix: np.ndarray) -> np.ndarray:
    found = np.empty(matrix.shape)
    for row, column in np.ndindex(*matrix.shape):
        minor = np.delete(np.delete(exact(matrix), row, 0), column, 1)
        found[row, column] = (-1) ** (row + column) * np.linalg.det(minor)
    return found


def _with_equal_rows(size: int) -> np.ndarray:
    matrix = with_condition((size, size), 3.0)
    matrix[-1] = 2 * matrix[0] if size > 1 else 0
    return matrix


SINGULAR = {f"{size} rows": _with_equal_rows(size) for size in (1, 2, 3, 4, 5, 9)} | {
    "the last pivot": np.diag([1, 2, 3, 0]),
    "the first pivot": np.diag([0, 1, 2, 3]),
    "equal columns": np.outer(np.arange(1, 6), np.ones(5)) + np.diag([0, 0, 1, 2, 3]),
    "a row of zeros": np.concatenate([with_condition((5, 5), 3.0)[:4], np.zeros((1, 5))]),
    "of rank 1": np.outer([1, 2, 3, 4], [1, 1, 2, 3]),
    "of zeros": np.zeros((4, 4)),
}


@pytest.mark.parametrize("complex_too", [False, True])
@pytest.mark.parametrize("name", SINGULAR)
def test_determinants_have_gradients_where_they_are_singular(name: str, complex_too: bool) -> None:
    """The gradient of a determinant is its cofactors, which are finite."""
    matrix = SINGULAR[name].astype(np.float32)
    expected = cofactors(matrix)
    if complex_too:
        value, gradient = lx.value_and_grad(lnp.linalg.det, holomorphic=True)(matrix * np.complex64(1j))
        expected = expected * 1j ** (len(matrix) - 1)
    else:
        value, gradient = lx.value_and_grad(lnp.linalg.det)(matrix)
    assert abs(complex(value)) < 1e-5
    np.testing.assert_allclose(np.asarray(gradient), expected, atol=2e-6 * max(1, np.abs(expected).max()))


def test_gradients_of_determinants_are_cofactors() -> None:
    """Of a stack of regular and singular matrices, inside a graph, and twice."""
    stack = np.stack([_with_equal_rows(4), np.eye(4)[[1, 0, 3, 2]], *with_condition((2, 4, 4), 5.0)]).astype(np.float32)
    found = lx.grad(lambda x: lnp.sum(lnp.sin(3 + lnp.linalg.det(2 * x)) * lnp.arange(1, 5)))(stack)
    weights = np.cos(3 + np.linalg.det(exact(2 * stack))) * np.arange(1, 5)
    expected = 2 * weights[:, None, None] * np.stack([cofactors(2 * matrix) for matrix in stack])
    np.testing.assert_allclose(exact(found), expected, atol=1e-5 * np.abs(expected).max())
    regular = stack[2]
    second = exact(lx.hessian(lnp.linalg.det)(regular))
    inverse = np.linalg.inv(exact(regular))
    products = np.einsum("ji,lk->ijkl", inverse, inverse) - np.einsum("jk,li->ijkl", inverse, inverse)
    expected = np.linalg.det(exact(regular)) * products
    np.testing.assert_allclose(second, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 4), (40, 20)])
def test_pinv(shape: tuple[int, ...]) -> None:
    matrix = with_condition(shape, CONDITION)
    assert_close(lnp.linalg.pinv(matrix), np.linalg.pinv(exact(matrix)), shape)


def test_ranks_and_tolerances() -> None:
    matrices = np.stack([with_condition((5, k), 3) @ with_condition((k, 4), 3) for k in (1, 2, 3, 4)])
    np.testing.assert_array_equal(np.asarray(lnp.linalg.matrix_rank(matrices)), [1, 2, 3, 4])
    assert_close(lnp.linalg.pinv(matrices), np.linalg.pinv(exact(matrices), rcond=1e-5), (5, 4))
    falling = np.diag([1, 1e-2, 1e-4]).astype(np.float32)
    assert int(lnp.linalg.matrix_rank(falling, tol=1e-3)) == int(lnp.linalg.matrix_rank(falling, 1e-3)) == 2
    assert int(lnp.linalg.matrix_rank(10 * falling, 1e-3)) == int(lnp.linalg.matrix_rank(falling, rtol=1e-3)) == 2
    np.testing.assert_allclose(exact(lnp.linalg.pinv(falling, rtol=1e-3)), np.diag([1, 100, 0]), rtol=1e-6)
    limits = np.array([1e-1, 1e-3], np.float32)
    assert np.asarray(lnp.linalg.matrix_rank(np.stack([falling] * 2), rtol=limits)).tolist() == [1, 2]
    for few in (np.array([0, 2j], np.complex64), np.zeros(3, np.float32), np.float32(3), np.zeros(0, np.float32)):
        rank = np.asarray(lnp.linalg.matrix_rank(few))
        assert (rank.dtype, rank.shape, int(rank)) == (np.int32, (), int(np.linalg.matrix_rank(few)))


@pytest.mark.parametrize(("shape", "columns"), [((7, 3), 2), ((7, 3), None), ((3, 5), 2), ((4, 4), 1)])
def test_lstsq(shape: tuple[int, int], columns: int | None) -> None:
    matrix, right = with_condition(shape, CONDITION), right_side(*(shape[0], columns)[: 1 if columns is None else 2])
    x, squares, rank, values = lnp.linalg.lstsq(matrix, right)
    expected = np.linalg.lstsq(exact(matrix), exact(right), rcond=None)
    assert_close(x, expected[0], shape)
    if shape[0] > shape[1]:
        np.testing.assert_allclose(exact(squares), expected[1], rtol=1e-4)
    assert int(rank) == expected[2]
    np.testing.assert_allclose(exact(values), expected[3], rtol=0, atol=1e-6)


def test_lstsq_finds_one_decomposition() -> None:
    """Within the rule of its gradient; its singular values are of it, too, and so is their gradient."""
    matrix, right = with_condition((7, 3), CONDITION), right_side(7, 2)
    assert not any(node.op == "svd" for node in lx.trace(lnp.linalg.lstsq)(matrix, right).nodes)
    found = lx.grad(lambda a: (lnp.linalg.lstsq(a, right)[3] ** 2 * lnp.arange(3.0)).sum())(matrix)
    expected = lx.grad(lambda a: (lnp.linalg.svdvals(a) ** 2 * lnp.arange(3.0)).sum())(matrix)
    assert_close(found, np.asarray(expected), (7, 3))


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 5])
def test_matrix_power(n: int) -> None:
    matrix = with_condition((2, 4, 4), 3)
    expected = np.linalg.matrix_power(exact(matrix), n)
    np.testing.assert_allclose(exact(lnp.linalg.matrix_power(matrix, n)), expected, rtol=0, atol=1e-4)


def test_nothing() -> None:
    none = np.zeros((2, 0, 0), np.float32)
    np.testing.assert_array_equal(np.asarray(lnp.linalg.det(none)), [1, 1])
    assert lnp.linalg.inv(none).shape == (2, 0, 0)
    assert lnp.linalg.solve(np.eye(3, dtype=np.float32), np.zeros((3, 0), np.float32)).shape == (3, 0)
    assert lnp.linalg.pinv(np.zeros((0, 3), np.float32)).shape == (3, 0)


def test_inside_compile_and_vmap() -> None:
    matrix, right = with_condition((3, 4, 4), CONDITION), right_side(3, 4)

    def everything(a: Any, b: Any) -> Any:
        return (
            lnp.linalg.solve(a, b),
            lnp.linalg.inv(a),
            lnp.linalg.det(a),
            lnp.linalg.pinv(a),
            lnp.linalg.lstsq(a, b)[0],
        )

    one_by_one = [everything(a, b) for a, b in zip(matrix, right, strict=True)]
    for found in (lx.vmap(everything)(matrix, right), lx.compile(lx.vmap(everything))(matrix, right)):
        for result, parts in zip(found, zip(*one_by_one, strict=True), strict=True):
            np.testing.assert_allclose(exact(result), np.stack([exact(part) for part in parts]), rtol=0, atol=1e-4)
    shared = lx.vmap(lnp.linalg.solve, (None, 0))(matrix[0], right)
    np.testing.assert_allclose(exact(shared), np.linalg.solve(exact(matrix[0]), exact(right).T).T, rtol=0, atol=1e-4)


def test_errors() -> None:
    square, oblong = np.eye(3, dtype=np.float32), np.zeros((3, 4), np.float32)
    for name in ("inv", "det", "slogdet"):
        with pytest.raises(ShapeError, match=rf"{name} takes square matrices: .* f32\[3,4\]"):
            getattr(lnp.linalg, name)(oblong)
    with pytest.raises(ShapeError, match=r"solve: the matrices f32\[3,3\] need right sides \[..., 3, k\].*f32\[4,1\]"):
        lnp.linalg.solve(square, np.zeros(4, np.float32))
    with pytest.raises(ShapeError, match=r"lstsq takes a matrix \[m, n\].*f32\[3,4\] and f32\[4\]"):
        lnp.linalg.lstsq(oblong, np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got 3"):
        lnp.linalg.solve_triangular(square, square, 3)
    with pytest.raises(ValueError, match="matrix_rank: give tol or rtol, not both"):
        lnp.linalg.matrix_rank(square, 1e-3, tol=1e-3)
    with pytest.raises(TypeError):
        lnp.linalg.matrix_power(square, 0.5)  # type: ignore[arg-type]


def test_powers_of_integers_are_integers() -> None:
    matrix = np.array([[3, 1], [2, 20_001]], np.int32)
    for n in range(3):
        found = np.asarray(lnp.linalg.matrix_power(matrix, n))
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, np.linalg.matrix_power(matrix, n))
    assert lnp.linalg.matrix_power(matrix, -1).dtype == np.float32


def test_sums_of_squares_as_numpy_has_them() -> None:
    tall = np.array([[1, 2], [3, 4], [5, 7]], np.float32)
    for matrix in (tall, tall[:2], tall.T, np.ones((3, 2), np.float32)):
        right = np.arange(matrix.shape[0], dtype=np.float32)
        found = lnp.linalg.lstsq(matrix, right, numpy_resid=True)[1]
        np.testing.assert_allclose(np.asarray(found), np.linalg.lstsq(matrix, right, rcond=None)[1], atol=1e-4)
        assert lnp.linalg.lstsq(matrix, right)[1].shape == (1,)
