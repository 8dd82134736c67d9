"""Matrix decompositions and systems of equations over the last two axes; the axes before them are a batch.

The result of lu, qr, eigh or svd is one array whose last axis holds the parts one after the other; `parts_of` gives the
position of each. A singular or indefinite matrix gives NaN or infinities, never an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Evaluation, Operation, TypeRule, define
from lavax.ir.types import TensorType, float32, float64

Shape = tuple[int, ...]


def _lu_parts(rows: int, columns: int, attrs: Attributes) -> dict[str, Shape]:
    return {"factors": (rows, columns), "permutation": (rows,), "parity": (1,)}


def _householder_parts(rows: int, columns: int, attrs: Attributes) -> dict[str, Shape]:
    return {"vectors": (rows, columns), "r": (columns, columns)}


def _qr_parts(rows: int, columns: int, attrs: Attributes) -> dict[str, Shape]:
    kept = rows if attrs["complete"] else columns
    return {"q": (rows, kept), "r": (kept, columns)}


def _eigh_parts(rows: int, columns: int, attrs: Attributes) -> dict[str, Shape]:
    return {"values": (rows,), **({"vectors": (rows, rows)} if attrs["vectors"] else {})}


def _jacobi_parts(rows: int, columns: int, attrs: Attributes) -> dict[str, Shape]:
    return {"rotated": (rows, rows), "rotation": (rows, rows)}


def _tridiagonal_parts(rows: int, columns: int, attrs: Attributes) -> dict[str, Shape]:
    return {"diagonal": (rows,), "beside": (rows,), "reflections": (rows, rows)}


def _bidiagonal_parts(rows: int, columns: int, attrs: Attributes) -> dict[str, Shape]:
    return {"diagonal": (rows,), "beside": (rows,), "left": (rows, rows), "right": (rows, rows)}


def _bidiagonal_svd_parts(rows: int, columns: int, attrs: Attributes) -> dict[str, Shape]:
    if not attrs["vectors"]:
        return {"values": (rows,)}
    return {"values": (rows,), "left": (rows, rows), "right": (rows, rows)}


def _svd_parts(rows: int, columns: int, attrs: Attributes) -> dict[str, Shape]:
    if not attrs["vectors"]:
        return {"values": (columns,), "scratch": (rows * columns,)}
    return {"values": (columns,), "right": (columns, columns), "left": (rows, rows if attrs["complete"] else columns)}


_PARTS: dict[str, Callable[[int, int, Attributes], dict[str, Shape]]] = {
    "lu": _lu_parts,
    "householder": _householder_parts,
    "qr": _qr_parts,
    "eigh": _eigh_parts,
    "jacobi": _jacobi_parts,
    "tridiagonal": _tridiagonal_parts,
    "tridiagonal_eigh": _eigh_parts,
    "bidiagonal": _bidiagonal_parts,
    "bidiagonal_svd": _bidiagonal_svd_parts,
    "svd": _svd_parts,
}


def parts_of(op: str, matrix: TensorType, attrs: Attributes) -> dict[str, tuple[int, Shape]]:
    """The start of each part of a matrix's result in the last axis, and its shape."""
    start, found = 0, {}
    rows, columns = matrix.shape[-2:]
    for name, shape in _PARTS[op](rows, columns, attrs).items():
        found[name] = (start, shape)
        start += prod(shape)
    return found


# Type rules


def _check_matrix(name: str, type: TensorType, square: bool) -> None:
    if type.dtype not in (float32, float64):
        raise DtypeError(f"{name} is defined for f32 and f64, got {type}: cast it to one of them")
    if type.rank < 2 or 0 in type.shape[-2:]:
        raise ShapeError(f"{name} takes matrices with at least one row and column, got {type}")
    if square and type.shape[-1] != type.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, got {type}")


def _infer_cholesky(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (matrix,) = operands
    _check_matrix("cholesky", matrix, square=True)
    return matrix


def packed_rule(name: str, square: bool) -> TypeRule:
    def infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
        (matrix,) = operands
        _check_matrix(name, matrix, square)
        if matrix.shape[-2] < matrix.shape[-1]:
            raise ShapeError(f"{name} takes matrices with at least as many rows as columns, got {matrix}")
        start, shape = list(parts_of(name, matrix, attrs).values())[-1]
        return matrix.with_shape((*matrix.shape[:-2], start + prod(shape)))

    return infer


def _check_right_side(name: str, matrix: TensorType, right: TensorType) -> None:
    _check_matrix(name, matrix, square=True)
    if right.dtype != matrix.dtype:
        raise DtypeError(f"{name}: operands must have one dtype, got {matrix} and {right}")
    if right.rank != matrix.rank or right.shape[:-1] != matrix.shape[:-1]:
        raise ShapeError(f"{name}: {right} must agree with {matrix} in all axes but the last")


def _infer_triangular_solve(
    operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None
) -> TensorType:
    matrix, right = operands
    _check_right_side("triangular_solve", matrix, right)
    return right


def _infer_linear_solve(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    matrix, factored, right = operands
    _check_right_side("linear_solve", matrix, right)
    expected = packed_rule("lu", False)([matrix], {}, None)
    if factored != expected:
        raise ShapeError(f"linear_solve: {factored} must be what lu gives for {matrix}: {expected}")
    return right


# Evaluation in NumPy


def _for_each(function: Callable[..., np.ndarray], *stacks: np.ndarray) -> list[np.ndarray]:
    """`function` of each matrix of the batch."""
    batch = stacks[0].shape[:-2]
    flat = [stack.reshape(prod(batch), *stack.shape[len(batch) :]) for stack in stacks]
    return [function(*matrices) for matrices in zip(*flat, strict=True)]


def matrix_evaluation(function: Callable[..., np.ndarray]) -> Evaluation:
    """The evaluation of an operation on one matrix per operand; if the decomposition fails, the result is NaN."""

    def evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
        shape = type.shape[len(arrays[0].shape[:-2]) :]

        def one(*matrices: np.ndarray) -> np.ndarray:
            try:
                return function(*matrices, **attrs)
            except np.linalg.LinAlgError:
                return np.full(shape, np.nan)

        with np.errstate(all="ignore"):
            return np.array(_for_each(one, *arrays), dtype).reshape(type.shape)

    return evaluate


def _cholesky(matrix: np.ndarray) -> np.ndarray:
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return np.tril(np.full(matrix.shape, np.nan))


def _triangular_solve(
    matrix: np.ndarray, right: np.ndarray, lower: bool, transposed: bool, unit_diagonal: bool
) -> np.ndarray:
    triangle = np.tril(matrix) if lower else np.triu(matrix)
    if unit_diagonal:
        np.fill_diagonal(triangle, 1)
    oriented = triangle.T if transposed else triangle
    order = range(len(matrix)) if lower != transposed else reversed(range(len(matrix)))
    result = np.zeros_like(right)
    for row in order:
        result[row] = (right[row] - oriented[row] @ result) / oriented[row, row]
    return result


def _lu(matrix: np.ndarray) -> np.ndarray:
    work, (rows, columns) = np.array(matrix), matrix.shape
    order, parity = np.arange(rows), 1.0
    for k in range(columns):
        pivot = k + int(np.argmax(np.abs(work[k:, k])))
        if pivot != k:
            work[[k, pivot]], order[[k, pivot]], parity = work[[pivot, k]], order[[pivot, k]], -parity
        if work[k, k] != 0:
            work[k + 1 :, k] /= work[k, k]
        work[k + 1 :, k + 1 :] -= np.outer(work[k + 1 :, k], work[k, k + 1 :])
    return np.concatenate([work.ravel(), order, [parity]])


def _linear_solve(matrix: np.ndarray, factored: np.ndarray, right: np.ndarray, transposed: bool) -> np.ndarray:
    return np.asarray(np.linalg.solve(matrix.T if transposed else matrix, right))


def _evaluate_linear_solve(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    matrix, factored, right = arrays
    return matrix_evaluation(_linear_solve)([matrix, factored[..., None], right], attrs, type, dtype)


def _qr(matrix: np.ndarray, complete: bool) -> np.ndarray:
    q, r = np.linalg.qr(matrix, "complete" if complete else "reduced")
    return np.concatenate([q.ravel(), r.ravel()])


def _signs(rows: np.ndarray) -> np.ndarray:
    """The sign of the component of largest magnitude of each row, as a column."""
    largest = np.take_along_axis(rows, np.argmax(np.abs(rows), axis=-1)[:, None], -1)
    return np.where(largest < 0, -1, 1)


def _eigh(matrix: np.ndarray, vectors: bool) -> np.ndarray:
    values, columns = np.linalg.eigh(matrix)
    rows = columns.T
    return np.concatenate([values, *([(rows * _signs(rows)).ravel()] if vectors else [])])


def _svd(matrix: np.ndarray, vectors: bool, complete: bool) -> np.ndarray:
    left, values, right = np.linalg.svd(matrix, full_matrices=complete)
    if not vectors:
        return np.concatenate([values, np.zeros(matrix.size)])
    signs = _signs(right)
    left[:, : len(values)] *= signs[:, 0]
    return np.concatenate([values, (right * signs).ravel(), left.ravel()])


# The lower triangular factor L of a symmetric matrix L·Lᵀ, of which only the lower triangle is read.
# The lower triangle, which is NaN where there is no factor; zeros above it.
define(Operation("cholesky", "routine", _infer_cholesky, matrix_evaluation(_cholesky)))
# x of op(T)·x = b for a triangle T of the first operand; op transposes if `transposed`.
define(
    Operation(
        "triangular_solve",
        "routine",
        _infer_triangular_solve,
        matrix_evaluation(_triangular_solve),
        ("lower", "transposed", "unit_diagonal"),
    )
)
# Gaussian elimination with the pivot of largest magnitude. `factors` holds U, and below the diagonal L, whose diagonal
# is 1. Row i of L·U is row `permutation`[i] of the matrix; `parity` is that of the permutation, 1 or -1.
define(Operation("lu", "routine", packed_rule("lu", False), matrix_evaluation(_lu)))
# x of op(A)·x = b, given A, the result of lu for A, and b.
define(Operation("linear_solve", "routine", _infer_linear_solve, _evaluate_linear_solve, ("transposed",)))
# Householder's method: orthonormal columns q (a whole basis if `complete`) and an upper triangle r; q·r is the matrix.
define(Operation("qr", "routine", packed_rule("qr", False), matrix_evaluation(_qr), ("complete",)))
# Ascending eigenvalues, and unit eigenvectors as rows, of a symmetric matrix whose lower triangle alone is read.
define(Operation("eigh", "routine", packed_rule("eigh", True), matrix_evaluation(_eigh), ("vectors",)))
# Descending singular values, right vectors as rows and left ones as columns (a whole basis if `complete`).
# The component of largest magnitude of eigenvectors and right vectors is positive.
define(Operation("svd", "routine", packed_rule("svd", False), matrix_evaluation(_svd), ("vectors", "complete")))
