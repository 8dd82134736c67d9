"""Steps of decompositions of matrices."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.linear_algebra import matrix_evaluation, packed_rule
from lavax.ir.types import TensorType


def _householder(matrix: np.ndarray) -> np.ndarray:
    work, columns = np.array(matrix), matrix.shape[1]
    vectors = np.zeros_like(work)
    for k in range(columns):
        vector = np.array(work[k:, k])
        if np.any(vector[1:] != 0):
            diagonal = -np.copysign(np.linalg.norm(vector), vector[0])
            vector /= vector[0] - diagonal
            vector[0] = 1
            vectors[k:, k] = vector
            work[k:, k:] -= np.outer(vector, 2 / (vector @ vector) * (vector @ work[k:, k:]))
    return np.concatenate([vectors.ravel(), np.triu(work[:columns]).ravel()])


def _meetings(size: int, across: bool) -> list[tuple[int, int]]:
    """The pairs of a round-robin tournament in order: all players but the last sit in a circle, and with an odd number
    one is left out. If `across`, the first half of the players meets the second instead."""
    if across:
        half = size // 2
        return [(t, half + (turn + t) % half) for turn in range(half) for t in range(half)]
    circle = size + size % 2 - 1
    pairs = [
        (circle if t == 0 else (turn + t) % circle, (turn - t) % circle)
        for turn in range(circle)
        for t in range((circle + 1) // 2)
    ]
    return [(min(pair), max(pair)) for pair in pairs if max(pair) < size]


def _jacobi(matrix: np.ndarray, relative: bool, across: bool, sweeps: int) -> np.ndarray:
    size = len(matrix)
    work, rotation = np.tril(matrix) + np.tril(matrix, -1).T, np.eye(size)
    for p, q in _meetings(size, across) * sweeps:
        if work[p, q] == 0:
            continue
        tilt = (work[q, q] - work[p, p]) / (2 * work[p, q])
        angle = np.arctan((-1 if tilt < 0 else 1) / (abs(tilt) + np.hypot(1, tilt)))
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        work[[p, q]] = turn @ work[[p, q]]
        work[:, [p, q]] = work[:, [p, q]] @ turn.T
        rotation[[p, q]] = turn @ rotation[[p, q]]
        work[p, q] = work[q, p] = 0
    return np.concatenate([work.ravel(), rotation.ravel()])


def _tridiagonal(matrix: np.ndarray) -> np.ndarray:
    size = len(matrix)
    work = np.tril(matrix) + np.tril(matrix, -1).T
    reflections, beside = np.zeros_like(work), np.zeros_like(work[0])
    for k in range(size - 1):
        column = np.array(work[k + 1 :, k])
        beside[k] = column[0]
        if np.any(column[1:] != 0):
            beside[k] = -np.copysign(np.linalg.norm(column), column[0])
            column[0] -= beside[k]
            reflections[k, k + 1 :] = column * np.sqrt(2 / (column @ column))
        reflection = np.eye(size, dtype=work.dtype) - np.outer(reflections[k], reflections[k])
        work = reflection @ work @ reflection
    return np.concatenate([np.diagonal(work), beside, reflections.ravel()])


def _infer_tridiagonal_eigh(
    operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None
) -> TensorType:
    reflections, diagonal, beside = operands
    if diagonal != reflections.with_shape(reflections.shape[:-1]) or beside != diagonal:
        raise ShapeError(f"tridiagonal_eigh: {diagonal} and {beside} do not fit the reflections {reflections}")
    return packed_rule("tridiagonal_eigh", True)([reflections], attrs, None)


def _tridiagonal_eigh(
    reflections: np.ndarray, diagonal: np.ndarray, beside: np.ndarray, vectors: bool
) -> np.ndarray:
    matrix = np.diag(diagonal[:, 0]) + np.diag(beside[:-1, 0], -1) + np.diag(beside[:-1, 0], 1)
    values, found = np.linalg.eigh(matrix)
    for reflection in reflections[::-1]:
        found -= np.outer(reflection, reflection @ found)
    return np.concatenate([values, found.T.ravel()]) if vectors else np.asarray(values)


def _evaluate_tridiagonal_eigh(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    reflections, *lines = arrays
    columns = [line[..., None] for line in lines]
    return matrix_evaluation(_tridiagonal_eigh)([reflections, *columns], attrs, type, dtype)


def _reflection_of(vector: np.ndarray) -> tuple[float, np.ndarray]:
    """The only element of the reflected vector, and the reflection's u, which is zero if none is needed."""
    if not np.any(vector[1:] != 0):
        return float(vector[0]), np.zeros_like(vector)
    found = -np.copysign(np.linalg.norm(vector), vector[0])
    u = np.array(vector)
    u[0] -= found
    return float(found), u * np.sqrt(2 / (u @ u))


def _bidiagonal(matrix: np.ndarray) -> np.ndarray:
    size, work = len(matrix), np.array(matrix)
    diagonal, beside = np.zeros_like(work[0]), np.zeros_like(work[0])
    left, right = np.zeros_like(work), np.zeros_like(work)
    for k in range(size):
        diagonal[k], left[k, k:] = _reflection_of(work[k:, k])
        work -= np.outer(left[k], left[k] @ work)
        if k + 1 < size:
            beside[k], right[k, k + 1 :] = _reflection_of(work[k, k + 1 :])
            work -= np.outer(work @ right[k], right[k])
    return np.concatenate([diagonal, beside, left.ravel(), right.ravel()])


def _infer_bidiagonal_svd(
    operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None
) -> TensorType:
    left, right, diagonal, beside = operands
    if right != left or diagonal != left.with_shape(left.shape[:-1]) or beside != diagonal:
        raise ShapeError(f"bidiagonal_svd: {right}, {diagonal} and {beside} do not fit the left reflections {left}")
    return packed_rule("bidiagonal_svd", True)([left], attrs, None)


def _bidiagonal_svd(
    left: np.ndarray, right: np.ndarray, diagonal: np.ndarray, beside: np.ndarray, vectors: bool
) -> np.ndarray:
    u, values, v = np.linalg.svd(np.diag(diagonal[:, 0]) + np.diag(beside[:-1, 0], 1))
    columns = [u, v.T]
    for found, reflections in zip(columns, (left, right), strict=True):
        for reflection in reflections[::-1]:
            found -= np.outer(reflection, reflection @ found)
    return np.concatenate([values, *(found.T.ravel() for found in columns)]) if vectors else np.asarray(values)


def _evaluate_bidiagonal_svd(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    left, right, *lines = arrays
    columns = [line[..., None] for line in lines]
    return matrix_evaluation(_bidiagonal_svd)([left, right, *columns], attrs, type, dtype)


# A symmetric matrix, of which the lower triangle is read, as q·t·qᵀ: the `diagonal` of t, the elements `beside` it,
# with a zero behind them, and the `reflections` I - u·uᵀ whose product, the first one first, is q. Row k of them is u,
# which is zero up to element k; all of it is zero if no reflection is needed.
define(Operation("tridiagonal", "lowered", packed_rule("tridiagonal", True), matrix_evaluation(_tridiagonal)))
# The eigenvalues of such a matrix, rising, and its vectors, which are rows of either sign.
define(
    Operation(
        "tridiagonal_eigh", "lowered", _infer_tridiagonal_eigh, _evaluate_tridiagonal_eigh, ("vectors",)
    )
)
# A square matrix as l·b·rᵀ: the `diagonal` of b, the elements `beside` it on its right, with a zero behind them, and
# the `left` and `right` reflections I - u·uᵀ whose products, the first one first, are l and r. Row k of left ones is
# zero up to element k - 1, of right ones up to element k; all of it is zero if no reflection is needed.
define(Operation("bidiagonal", "lowered", packed_rule("bidiagonal", True), matrix_evaluation(_bidiagonal)))
# The singular values of such a matrix, falling, and its vectors of both sides, which are rows; pairs have either sign.
define(Operation("bidiagonal_svd", "lowered", _infer_bidiagonal_svd, _evaluate_bidiagonal_svd, ("vectors",)))
# The vectors v of the reflections I - 2·v·vᵀ/(vᵀ·v) that turn the matrix, one after another, into an upper triangle r.
# Vector k starts with a one in row k; it is zero if no reflection is needed.
define(Operation("householder", "lowered", packed_rule("householder", False), matrix_evaluation(_householder)))
# Jacobi's rotations, each of at most an eighth of a turn: an orthogonal `rotation`, and the symmetric matrix
# rotation·matrix·rotationᵀ. A sweep rotates every pair of rows or, if `across`, every pair of a row of the first half
# and one of the second; after some sweeps the matrix is diagonal. Off-diagonal elements remain that are rounding errors
# next to 1 or, if `relative`, next to the roots of the diagonal elements of their row and column. Pairs are rotated in
# the order of a tournament (`_meetings`).
_JACOBI = ("relative", "across", "sweeps")
define(Operation("jacobi", "lowered", packed_rule("jacobi", True), matrix_evaluation(_jacobi), _JACOBI))
