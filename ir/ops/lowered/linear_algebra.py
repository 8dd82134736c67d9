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
