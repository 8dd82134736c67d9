"""Grids of coordinates, triangles and diagonals."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from lavax.ir.types import TensorType, float32, float64, int32
from lavax.numpy._core.application import apply
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy.arrays.creation import asarray, iota, linspace, ones
from lavax.numpy.arrays.data_dependent import nonzero
from lavax.numpy.arrays.joining import cut, stack
from lavax.numpy.arrays.manipulation import Shape, checked_shape, moveaxis, ravel, reshaped
from lavax.numpy.editing.padding import pad
from lavax.numpy.elementwise.arithmetic import abs, exp, log, multiply, sign
from lavax.numpy.elementwise.comparison import equal, where
from lavax.numpy.elementwise.exponential import power
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer import lift, with_weak
from lavax.tracer.calls.signature import require_function
from lavax.tracer.values.value import Value

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "geomspace", "indices", "logspace",
    "mask_indices", "meshgrid", "trace", "tri", "tril", "tril_indices", "tril_indices_from", "triu", "triu_indices",
    "triu_indices_from", "vander",
]  # fmt: skip


def meshgrid(*arrays: ArrayLike, indexing: Literal["xy", "ij"] = "xy", sparse: bool = False) -> list[Value]:
    """Coordinate arrays of a grid from one-axis arrays of coordinates, one each.

    With "ij" the array k varies along axis k; with "xy" axes 0 and 1 are exchanged. `sparse` leaves the other axes at
    extent 1. Raises ValueError for another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', got {indexing!r}")
    values = [ravel(array) for array in arrays]
    places = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        places[:2] = [1, 0]
    shape = [0] * len(values)
    for value, place in zip(values, places, strict=True):
        shape[place] = value.size
    result = []
    for value, place in zip(values, places, strict=True):
        line = reshaped(value, tuple(value.size if d == place else 1 for d in range(len(values))))
        result.append(line if sparse else broadcast_to(line, tuple(shape)))
    return result


def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """The coordinates of a grid of extents `dimensions` along each axis, stacked; int32 if no `dtype` is given.

    `sparse` gives a tuple of arrays that broadcast to the grid. Raises ShapeError for negative extents.
    """
    shape = checked_shape("indices", dimensions)
    held = int32 if dtype is None else canonical_dtype(dtype)
    if sparse:
        lines = (tuple(n if d == axis else 1 for d in range(len(shape))) for axis, n in enumerate(shape))
        return tuple(iota(TensorType(line, held), axis) for axis, line in enumerate(lines))
    if not shape:
        return reshaped(iota(TensorType((0,), held), 0), (0,))
    return stack([iota(TensorType(shape, held), axis) for axis in range(len(shape))])


def logspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None,
    axis: int = 0,
) -> Value:
    """Powers of `base` with exponents at equal distances from `start` to `stop`; as `linspace`."""
    result = power(float(base), linspace(start, stop, num, endpoint, _exponents(dtype), axis=axis))
    return result if dtype is None else cast(result, canonical_dtype(dtype))


def _exponents(dtype: Any) -> Any:
    """What exponents are computed in: float64 where that is wanted, else what their ends are."""
    return dtype if dtype is not None and canonical_dtype(dtype) == float64 else None


def geomspace(
    start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Value:
    """`num` numbers at equal ratios from `start` to `stop`, both of one sign and not 0; as `linspace`."""
    if _exponents(dtype) is not None:
        low, high = (asarray(end, dtype) for end in (start, stop))
    else:
        low, high = as_value(start) * 1.0, as_value(stop) * 1.0
    num = whole_number("num", num)
    exponents = linspace(log(abs(low)), log(abs(high)), num, endpoint)
    result = multiply(exp(exponents), sign(low))
    place = iota(TensorType((num, *(1,) * (result.ndim - 1)), int32), 0)
    result = where(equal(place, 0), low, result)
    if endpoint and num > 1:
        result = where(equal(place, num - 1), high, result)
    result = moveaxis(result, 0, normal_axis("geomspace", axis, result.type))
    return with_weak(result if dtype is None else cast(result, canonical_dtype(dtype)), False)


def tri(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: Any = None) -> Value:
    """Ones on and below the `k`-th diagonal of an (n_rows, n_cols) matrix, zeros above; float32 without `dtype`."""
    shape = checked_shape("tri", (n_rows, n_rows if n_cols is None else n_cols))
    held = float32 if dtype is None else canonical_dtype(dtype)
    return cast(_below(TensorType(shape, int32), k), held)


def _below(type: TensorType, k: int) -> Value:
    """Whether elements of a type's last two axes are on or below the k-th diagonal."""
    row, column = iota(type, type.rank - 2), iota(type, type.rank - 1)
    return apply("less_equal", column, row + whole_number("k", k))


def _matrices(name: str, x: ArrayLike) -> tuple[Value, TensorType]:
    value = as_value(x)
    if value.ndim < 2:
        raise shape_error(f"{name}: {value.type} needs at least two axes")
    return value, value.type.with_dtype(int32)


def tril(x: ArrayLike, /, k: int = 0) -> Value:
    """The matrices in the last two axes of `x` with zeros above the `k`-th diagonal."""
    value, kind = _matrices("tril", x)
    return where(_below(kind, k), value, 0) if value.type.dtype.kind != "bool" else _below(kind, k) & value


def triu(x: ArrayLike, /, k: int = 0) -> Value:
    """The matrices in the last two axes of `x` with zeros below the `k`-th diagonal."""
    value, kind = _matrices("triu", x)
    below = _below(kind, k - 1)
    return where(below, 0, value) if value.type.dtype.kind != "bool" else ~below & value


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, Value]:
    """The int32 rows and columns of the elements on and below the `k`-th diagonal of an (n, m) matrix."""
    return _in_a_matrix("tril_indices", np.tril_indices, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, Value]:
    """The int32 rows and columns of the elements on and above the `k`-th diagonal of an (n, m) matrix."""
    return _in_a_matrix("triu_indices", np.triu_indices, n, k, m)


def _in_a_matrix(name: str, chosen: Callable[..., Any], n: int, k: int, m: int | None) -> tuple[Value, Value]:
    rows, columns = checked_shape(name, (n, n if m is None else m))
    row, column = chosen(rows, whole_number("k", k), columns)
    return lift(row.astype(np.int32)), lift(column.astype(np.int32))


def diag_indices(n: int, ndim: int = 2) -> tuple[Value, ...]:
    """The int32 positions of the diagonal of an array of `ndim` axes of extent `n`."""
    return (iota(TensorType(checked_shape("diag_indices", n), int32), 0),) * whole_number("ndim", ndim)


def _square(name: str, x: ArrayLike) -> tuple[int, int]:
    """The rows and columns of a matrix."""
    kind = as_value(x).type
    if kind.rank != 2:
        raise shape_error(f"{name}: {kind} must have two axes")
    return kind.shape[0], kind.shape[1]


def tril_indices_from(x: ArrayLike, k: int = 0) -> tuple[Value, Value]:
    """`tril_indices` of the shape of the matrix `x`."""
    rows, columns = _square("tril_indices_from", x)
    return tril_indices(rows, k, columns)


def triu_indices_from(x: ArrayLike, k: int = 0) -> tuple[Value, Value]:
    """`triu_indices` of the shape of the matrix `x`."""
    rows, columns = _square("triu_indices_from", x)
    return triu_indices(rows, k, columns)


def diag_indices_from(x: ArrayLike) -> tuple[Value, ...]:
    """`diag_indices` of the shape of `x`, whose axes, two or more, must be of one extent.

    Raises ShapeError unless it has two axes or more, all of one extent.
    """
    kind = as_value(x).type
    if kind.rank < 2 or len(set(kind.shape)) > 1:
        raise shape_error(f"diag_indices_from: {kind} must have at least two axes, all of one extent")
    return diag_indices(kind.shape[0], kind.rank)


def mask_indices(n: int, mask_func: Callable[[Value, int], ArrayLike], k: int = 0) -> tuple[Value, ...]:
    """The int32 positions in an (n, n) matrix where `mask_func(ones, k)`, such as `triu`, is not 0."""
    require_function(mask_func, "mask_indices takes a size and a function")
    result: tuple[Value, ...] = nonzero(mask_func(ones((n, n)), k))
    return result


def _diagonal_length(shape: Shape, offset: int) -> int:
    rows, columns = shape
    offset = whole_number("offset", offset)
    return max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)


def diagonal(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The `offset`-th diagonals of the matrices in the axes `axis1` and `axis2`, as a last axis.

    Raises ShapeError below rank 2.
    """
    value = as_value(x)
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


def diag(x: ArrayLike, k: int = 0) -> Value:
    """The `k`-th diagonal of a matrix; of a one-axis array: the matrix that has it there, zeros elsewhere.

    Raises ShapeError for other ranks.
    """
    value = as_value(x)
    if value.ndim == 2:
        return diagonal(value, k)
    if value.ndim != 1:
        raise shape_error(f"diag: {value.type} must have one axis or two")
    return diagflat(value, k)


def diagflat(x: ArrayLike, k: int = 0) -> Value:
    """The matrix with the flattened `x` on its `k`-th diagonal, zeros elsewhere."""
    value, k = ravel(x), whole_number("k", k)
    count, side = value.size, value.size + max(k, -k)
    if not count:
        return broadcast_to(cast(as_value(0), value.type.dtype), (side, side))
    spaced = pad(reshaped(value, (count, 1)), ((0, 0), (0, count)))
    square = reshaped(cut(reshaped(spaced, (count * (count + 1),)), 0, 0, count * count), (count, count))
    return pad(square, ((max(-k, 0), max(k, 0)), (max(k, 0), max(-k, 0))))


def trace(x: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Value:
    """The sums of the `offset`-th diagonals of the matrices in the axes `axis1` and `axis2`."""
    return sum_over(diagonal(x, offset, axis1, axis2), -1, dtype)


def vander(x: ArrayLike, n: int | None = None, increasing: bool = False) -> Value:
    """The powers of the one-axis `x` as columns: from the (n - 1)-th down to 0, or rising.

    Raises ShapeError for other ranks.
    """
    value = as_value(x)
    if value.ndim != 1:
        raise shape_error(f"vander: {value.type} must have one axis")
    count = value.size if n is None else whole_number("n", n)
    column = reshaped(value, (value.size, 1))
    powers = iota(TensorType((1, count), int32), 1)
    return power(column, powers if increasing else count - 1 - powers)
