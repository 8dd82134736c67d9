"""Matrices as products of triangles and orthonormal columns."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import linalg
from lavax.linalg.matrices import matrices, square_matrices
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.scipy.linalg import decompositions
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.values.value import Value


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Value:
    """The lower triangle of `linalg.cholesky`."""
    return linalg.cholesky(x, symmetrize_input=symmetrize_input)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Value:
    """The upper triangle R with Rᴴ·R = r_matrixᴴ·r_matrix + w·wᴴ, for an upper triangle [n, n] and a vector [n].

    The signs of its rows are those that leave the diagonal positive. Raises ShapeError for other shapes.
    """
    triangle, vector = square_matrices("cholesky_update", r_matrix), as_value(w_vector)
    if triangle.ndim != 2 or vector.shape != triangle.shape[:1]:
        raise shape_error(f"cholesky_update takes [n, n] and [n], got {triangle.type} and {vector.type}")
    row = lnp.astype(vector, triangle.dtype)
    whole = lnp.concatenate([lnp.triu(triangle), lnp.conj(row)[None, :]], axis=0)
    found = linalg.qr(whole, mode="r")
    assert isinstance(found, Value)
    signs = lnp.where(lnp.real(lnp.diagonal(found)) < 0, -1.0, 1.0)
    return lnp.multiply(found, signs[:, None])


def lu(x: ArrayLike) -> tuple[Value, Value, Value]:
    """L and U packed into the shape of `x` [..., m, n], the swaps of rows [..., min(m, n)], and the order of the rows
    [..., m]: x[order] = L·U, with ones on the diagonal of L.

    Raises ShapeError for fewer than two axes.
    """
    factors, order = decompositions.factored(matrices("lu", x))
    return factors, decompositions.swaps_of(order, min(factors.shape[-2:])), order


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Value:
    """The order [..., permutation_size] that swaps [..., k] give: row i is swapped with row pivots[i], one by one.

    Raises ShapeError if there are more swaps than rows.
    """
    swaps = lnp.astype(as_value(pivots), "int32")
    count = swaps.shape[-1] if swaps.ndim else permutation_size + 1
    if count > permutation_size:
        raise shape_error(f"lu_pivots_to_permutation: {swaps.type} are not swaps of {permutation_size} rows")
    places = lnp.arange(permutation_size, dtype="int32")

    def step(place: Any, order: Value) -> Value:
        other = lnp.take(swaps, place, axis=-1)[..., None]
        is_here, is_there = places == place, places == other
        here = lnp.sum(lnp.where(is_here, order, 0), axis=-1, keepdims=True)
        there = lnp.sum(lnp.where(is_there, order, 0), axis=-1, keepdims=True)
        found: Value = lnp.where(is_here, there, lnp.where(is_there, here, order))
        return found

    found: Value = fori_loop(0, count, step, lnp.broadcast_to(places, (*swaps.shape[:-1], permutation_size)))
    return found


def qr(
    x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Value, ...]:
    """Q and R of `linalg.qr`, square Q with `full_matrices`; with `pivoting` also the order of the columns.

    `use_magma` changes nothing. Raises ShapeError for fewer than two axes.
    """
    found: tuple[Value, ...] = decompositions.qr(
        x, mode="full" if full_matrices else "economic", pivoting=pivoting
    )
    return found


def symmetric_product(
    a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Value:
    """alpha·A·Aᵀ + beta·C, for matrices A [..., m, n] and symmetric C [..., m, m].

    `symmetrize_output` takes the lower triangle for both. Raises ShapeError if the shapes do not fit.
    """
    a, c = matrices("symmetric_product", a_matrix), square_matrices("symmetric_product", c_matrix)
    if c.shape != (*a.shape[:-1], a.shape[-2]):
        raise shape_error(f"symmetric_product: A {a.type} needs C [..., {a.shape[-2]}, {a.shape[-2]}], got {c.type}")
    whole = alpha * lnp.matmul(a, lnp.matrix_transpose(a)) + beta * c
    return lnp.tril(whole) + lnp.matrix_transpose(lnp.tril(whole, -1)) if symmetrize_output else whole


