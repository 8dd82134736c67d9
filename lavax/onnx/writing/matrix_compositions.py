"""Factors of matrices and systems of equations as loops over columns, whose steps are products and masks."""
from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import lavax.numpy as lnp
from lavax import lax


def _column(matrix: Any, here: Any) -> Any:
    """[..., rows], of the column where `here` is true."""
    return lnp.sum(lnp.where(here, matrix, 0), -1)


def _row(matrix: Any, here: Any) -> Any:
    return lnp.sum(lnp.where(here[:, None], matrix, 0), -2)


def _turned(matrix: Any) -> Any:
    return lnp.swapaxes(matrix, -1, -2)


def _cholesky(matrix: Any) -> Any:
    """Each step finds a column, and takes its outer product off the rest."""
    extent = matrix.shape[-1]
    at = lnp.arange(extent)

    def step(k: Any, carried: Any) -> Any:
        rest, factor = carried
        here = at == k
        column = _column(rest, here)
        pivot = lnp.sum(lnp.where(here, column, 0), -1, keepdims=True)
        column = lnp.where(at >= k, column / lnp.sqrt(pivot), 0)
        rest = rest - column[..., :, None] * column[..., None, :]
        return rest, lnp.where(here, column[..., :, None], factor)

    symmetric = lnp.tril(matrix) + _turned(lnp.tril(matrix, -1))
    _, factor = lax.fori_loop(0, extent, step, (symmetric, lnp.zeros_like(matrix)))
    return factor


def _triangular_solve(matrix: Any, right: Any, lower: bool, transposed: bool, unit_diagonal: bool) -> Any:
    """Substitution, a row of the result per step."""
    extent = matrix.shape[-1]
    at = lnp.arange(extent)
    oriented = _turned(matrix) if transposed else matrix
    ascending = lower != transposed

    def step(i: Any, found: Any) -> Any:
        k = i if ascending else extent - 1 - i
        here = at == k
        row = _row(oriented, here)
        known = lnp.sum(lnp.where((at < k) if ascending else (at > k), row, 0)[..., :, None] * found, -2)
        value = _row(right, here) - known
        if not unit_diagonal:
            value = value / lnp.sum(lnp.where(here, row, 0), -1, keepdims=True)
        return lnp.where(here[:, None], value[..., None, :], found)

    return lax.fori_loop(0, extent, step, lnp.zeros_like(right))


def _lu(matrix: Any) -> Any:
    """Gaussian elimination: each step swaps its pivot in, and takes multiples of its row off those below."""
    rows, columns = matrix.shape[-2:]
    batch = matrix.shape[:-2]
    i: Any = lnp.arange(rows, dtype="int32")
    j = lnp.arange(columns)

    def step(k: Any, carried: Any) -> Any:
        work, order, parity = carried
        size = lnp.where(i >= k, abs(_column(work, j == k)), -1)
        pivot: Any = lnp.argmax(size, -1)[..., None]
        swapped: Any = lnp.where(i == k, pivot, lnp.where(i == pivot, k, i))
        work = lnp.take_along_axis(work, swapped[..., :, None], -2)
        order = lnp.take_along_axis(order, swapped, -1)
        parity = lnp.where(pivot == k, parity, -parity)
        column, row = _column(work, j == k), _row(work, i == k)
        head = lnp.sum(lnp.where(i == k, column, 0), -1, keepdims=True)
        factor = lnp.where(i > k, column / lnp.where(head == 0, 1, head), 0)
        taken = factor[..., :, None] * lnp.where(j > k, row, 0)[..., None, :]
        is_factor = (i > k)[:, None] & (j == k)
        return lnp.where(is_factor, factor[..., :, None], work - taken), order, parity

    order = lnp.broadcast_to(i, (*batch, rows))
    start = (matrix, order, lnp.ones((*batch, 1), matrix.dtype))
    work, order, parity = lax.fori_loop(0, columns, step, start)
    flat = work.reshape(*batch, rows * columns)
    return lnp.concatenate([flat, order.astype(matrix.dtype), parity], -1)


def _linear_solve(matrix: Any, factored: Any, right: Any, transposed: bool) -> Any:
    """P·A = L·U: two triangles, between or behind the permutation."""
    extent = matrix.shape[-1]
    factors = factored[..., : extent * extent].reshape(matrix.shape)
    order = factored[..., extent * extent : extent * extent + extent].astype("int32")
    if not transposed:
        permuted = lnp.take_along_axis(right, order[..., :, None], -2)
        lower = _triangular_solve(factors, permuted, True, False, True)
        return _triangular_solve(factors, lower, False, False, False)
    upper = _triangular_solve(factors, right, False, True, False)
    lower = _triangular_solve(factors, upper, True, True, True)
    return lnp.take_along_axis(lower, lnp.argsort(order, -1)[..., :, None], -2)


def _qr(matrix: Any, complete: bool) -> Any:
    """Householder's reflections; a column with nothing below its diagonal needs none."""
    rows, columns = matrix.shape[-2:]
    batch = matrix.shape[:-2]
    i, j = lnp.arange(rows), lnp.arange(columns)

    def step(k: Any, carried: Any) -> Any:
        q, r = carried
        column = lnp.where(i >= k, _column(r, j == k), 0)
        head = lnp.sum(lnp.where(i == k, column, 0), -1, keepdims=True)
        below = lnp.sum(lnp.where(i > k, column * column, 0), -1, keepdims=True)
        norm = lnp.sqrt(head * head + below)
        vector = column + lnp.where(i == k, lnp.where(head < 0, -norm, norm), 0)
        size = lnp.sum(vector * vector, -1, keepdims=True)
        scale = lnp.where(below == 0, 0, 2 / lnp.where(size == 0, 1, size))
        scaled = scale * vector
        r = r - scaled[..., :, None] * lnp.sum(vector[..., :, None] * r, -2, keepdims=True)
        q = q - lnp.sum(q * vector[..., None, :], -1, keepdims=True) * scaled[..., None, :]
        return q, r

    identity = lnp.broadcast_to(lnp.eye(rows, dtype=matrix.dtype), (*batch, rows, rows))
    q, r = lax.fori_loop(0, min(rows - 1, columns), step, (identity, matrix))
    kept = rows if complete else columns
    parts = (q[..., :, :kept], (rows, kept)), (lnp.triu(r[..., :kept, :]), (kept, columns))
    return lnp.concatenate([lnp.reshape(part, (*batch, prod(shape))) for part, shape in parts], -1)


COMPOSITIONS: dict[str, Callable[..., Any]] = {
    "cholesky": _cholesky,
    "linear_solve": _linear_solve,
    "lu": _lu,
    "qr": _qr,
    "triangular_solve": _triangular_solve,
}
