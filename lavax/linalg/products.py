"""Products and diagonals as in the array API's extension: over the last axes, with fewer options."""

from __future__ import annotations

from typing import Any

from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.arrays import matrices
from lavax.numpy.arrays.manipulation import matrix_transpose
from lavax.numpy.products import linear_algebra as plain
from lavax.numpy.products import products as of_vectors
from lavax.numpy.products.linear_algebra import matmul, tensordot
from lavax.numpy.products.products import vecdot
from lavax.tracer.values.value import Value

__all__ = ["cross", "diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace", "vecdot"]


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Value:
    """The cross product of vectors of three components along `axis`; the other axes broadcast.

    Raises ShapeError for another number of components.
    """
    left, right = as_value(x1), as_value(x2)
    for value in (left, right):
        if not -value.ndim <= axis < value.ndim or value.shape[axis] != 3:
            given = f"{left.type} and {right.type}"
            raise shape_error(f"cross: vectors must have 3 components along axis {axis}, got {given}")
    return of_vectors.cross(left, right, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Value:
    """All products of an element of one vector [n] and one of another [m], as [n, m].

    Raises ShapeError for other ranks.
    """
    left, right = as_value(x1), as_value(x2)
    if left.ndim != 1 or right.ndim != 1:
        raise shape_error(f"outer: vectors must have one axis each, got {left.type} and {right.type}")
    return plain.outer(left, right)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Value:
    """The `offset`-th diagonals of the matrices in the last two axes. Raises ShapeError for fewer axes."""
    return matrices.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Value:
    """The sums of the `offset`-th diagonals of the matrices in the last two axes. Raises ShapeError for fewer axes."""
    return plain.trace(x, offset, -2, -1, dtype)
