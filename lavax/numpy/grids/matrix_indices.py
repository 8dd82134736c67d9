"""Positions of triangles and diagonals."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lavax.ir.default_dtypes import default_integer
from lavax.ir.types import TensorType
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.arrays.creation import iota, ones
from lavax.numpy.indexing.nonzero import nonzero
from lavax.tracer import lift
from lavax.tracer.calls.signature import require_function
from lavax.tracer.values.value import Value

__all__ = [
    "diag_indices", "diag_indices_from", "mask_indices", "tril_indices", "tril_indices_from", "triu_indices",
    "triu_indices_from",
]  # fmt: skip


_MOST_ELEMENTS = 2**31 - 1  # of the matrix; its positions are int32


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, Value]:
    """The rows and columns of the elements on and below the `k`-th diagonal of an (n, m) matrix."""
    return _in_a_matrix("tril_indices", np.tril_indices, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, Value]:
    """The rows and columns of the elements on and above the `k`-th diagonal of an (n, m) matrix."""
    return _in_a_matrix("triu_indices", np.triu_indices, n, k, m)


def _in_a_matrix(name: str, chosen: Callable[..., Any], n: int, k: int, m: int | None) -> tuple[Value, Value]:
    rows, columns = checked_shape(name, (n, n if m is None else m))
    if rows * columns > _MOST_ELEMENTS:
        raise shape_error(f"{name}: a matrix of {rows} by {columns} has more than {_MOST_ELEMENTS} elements")
    row, column = chosen(rows, whole_number("k", k), columns)
    positions = default_integer()
    return lift(row, positions), lift(column, positions)


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Value, Value]:
    """`tril_indices` of the shape of the matrix `arr`."""
    rows, columns = _square("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Value, Value]:
    """`triu_indices` of the shape of the matrix `arr`."""
    rows, columns = _square("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _square(name: str, x: ArrayLike) -> tuple[int, int]:
    """The rows and columns of a matrix."""
    kind = as_value(x).type
    if kind.rank != 2:
        raise shape_error(f"{name}: {kind} must have two axes")
    return kind.shape[0], kind.shape[1]


def diag_indices(n: int, ndim: int = 2) -> tuple[Value, ...]:
    """The positions of the diagonal of an array of `ndim` axes of extent `n`."""
    return (iota(TensorType(checked_shape("diag_indices", n), default_integer()), 0),) * whole_number("ndim", ndim)


def diag_indices_from(arr: ArrayLike) -> tuple[Value, ...]:
    """`diag_indices` of the shape of `arr`.

    Raises ShapeError unless it has two axes or more, all of one extent.
    """
    kind = as_value(arr).type
    if kind.rank < 2 or len(set(kind.shape)) > 1:
        raise shape_error(f"diag_indices_from: {kind} must have at least two axes, all of one extent")
    return diag_indices(kind.shape[0], kind.rank)


def mask_indices(
    n: int, mask_func: Callable[[Value, int], ArrayLike], k: int = 0, *, size: int | None = None
) -> tuple[Value, ...]:
    """The positions in an (n, n) matrix where `mask_func(ones, k)`, such as `triu`, is not 0; `size` of them.

    `size` is as in `nonzero`.
    """
    require_function(mask_func, "mask_indices takes a size and a function")
    result: tuple[Value, ...] = nonzero(mask_func(ones((n, n)), k), size=size)
    return result
