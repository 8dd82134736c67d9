"""Matrices built from diagonals, triangles and powers, and diagonals and triangles of matrices."""
from __future__ import annotations

from typing import Any

from lavax.ir.types import TensorType, float32, int32
from lavax.numpy._core.application import apply
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import cut, padded, reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy._core.shape_arguments import Shape, checked_shape
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.manipulation import moveaxis, ravel
from lavax.numpy.elementwise.comparison import where
from lavax.numpy.elementwise.powers import power
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value

__all__ = ["diag", "diagflat", "diagonal", "tri", "tril", "triu", "vander"]


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The `offset`-th diagonals of the matrices in the axes `axis1` and `axis2`, as a last axis.

    Raises ShapeError below rank 2.
    """
    value = as_value(a)
    if value.ndim < 2:
        raise shape_error(f"diagonal: {value.type} needs at least two axes")
    moved = moveaxis(value, (axis1, axis2), (-2, -1))
    *outer, rows, columns = moved.shape
    length = _diagonal_length((rows, columns), offset)
    if not length:
        return reshaped(cut(reshaped(moved, (*outer, rows * columns)), len(outer), 0, 0), (*outer, 0))
    first = offset if offset >= 0 else -offset * columns
    flat = reshaped(moved, (*outer, rows * columns))
    return cut(flat, len(outer), first, first + (length - 1) * (columns + 1) + 1, columns + 1)


def _diagonal_length(shape: Shape, offset: int) -> int:
    rows, columns = shape
    offset = whole_number("offset", offset)
    return max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)


def diag(v: ArrayLike, k: int = 0) -> Value:
    """The `k`-th diagonal of a matrix; or the matrix with a one-axis array on it, and zeros elsewhere.

    Raises ShapeError for other ranks.
    """
    value = as_value(v)
    if value.ndim == 2:
        return diagonal(value, k)
    if value.ndim != 1:
        raise shape_error(f"diag: {value.type} must have one axis or two")
    return diagflat(value, k)


def diagflat(v: ArrayLike, k: int = 0) -> Value:
    """The matrix with the flattened `v` on its `k`-th diagonal, zeros elsewhere."""
    value, k = ravel(v), whole_number("k", k)
    count, side = value.size, value.size + max(k, -k)
    if not count:
        return broadcast_to(cast(as_value(0), value.type.dtype), (side, side))
    spaced = padded(reshaped(value, (count, 1)), (0, 0), (0, count))
    square = reshaped(cut(reshaped(spaced, (count * (count + 1),)), 0, 0, count * count), (count, count))
    above, below = max(k, 0), max(-k, 0)
    return padded(square, (below, above), (above, below))


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Value:
    """Ones on and below the `k`-th diagonal of an (N, M) matrix, zeros above; float32 without `dtype`."""
    shape = checked_shape("tri", (N, N if M is None else M))
    held = float32 if dtype is None else canonical_dtype(dtype)
    return cast(_below(TensorType(shape, int32), k), held)


def _below(type: TensorType, k: int) -> Value:
    """Whether elements of a type's last two axes are on or below the k-th diagonal."""
    row, column = iota(type, type.rank - 2), iota(type, type.rank - 1)
    k = max(-type.shape[-2] - 1, min(whole_number("k", k), type.shape[-1]))  # beyond, there are no diagonals
    return apply("less_equal", column, row + k)


def _matrices(name: str, x: ArrayLike) -> tuple[Value, TensorType]:
    value = as_value(x)
    if value.ndim < 2:
        raise shape_error(f"{name}: {value.type} needs at least two axes")
    return value, value.type.with_dtype(int32)


@one_program("k")
def tril(m: ArrayLike, k: int = 0) -> Value:
    """The matrices in the last two axes of `m` with zeros above the `k`-th diagonal."""
    value, kind = _matrices("tril", m)
    return where(_below(kind, k), value, 0) if value.type.dtype.kind != "bool" else _below(kind, k) & value


@one_program("k")
def triu(m: ArrayLike, k: int = 0) -> Value:
    """The matrices in the last two axes of `m` with zeros below the `k`-th diagonal."""
    value, kind = _matrices("triu", m)
    below = _below(kind, k - 1)
    return where(below, 0, value) if value.type.dtype.kind != "bool" else ~below & value


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Value:
    """The powers of the one-axis `x` as columns: from the (N - 1)-th down to 0, or rising.

    Raises ShapeError for other ranks.
    """
    value = as_value(x)
    if value.ndim != 1:
        raise shape_error(f"vander: {value.type} must have one axis")
    count = value.size if N is None else whole_number("N", N)
    column = reshaped(value, (value.size, 1))
    powers = iota(TensorType((1, count), int32), 1)
    return power(column, powers if increasing else count - 1 - powers)
