"""Steps of decompositions of matrices."""
from __future__ import annotations

import numpy as np

from lavax.ir.operation import Operation, define
from lavax.ir.ops.linear_algebra import matrix_evaluation, packed_rule


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
