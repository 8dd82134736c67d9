"""Products of vectors and matrices other than plain contractions."""
from __future__ import annotations

from typing import Any

from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import broadcast_arrays, broadcast_shapes, common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.numpy._core.promotion import averaging
from lavax.numpy.arrays.complex_parts import conj
from lavax.numpy.arrays.joining import stack
from lavax.numpy.arrays.manipulation import moveaxis
from lavax.numpy.elementwise.arithmetic import multiply, subtract
from lavax.numpy.products.element_types import with_element_type
from lavax.numpy.products.linear_algebra import matmul
from lavax.tracer.values.value import Value

__all__ = ["cross", "kron", "matvec", "vecdot", "vecmat"]


def kron(a: ArrayLike, b: ArrayLike) -> Value:
    """The Kronecker product: each element of `a` times all of `b`, as blocks."""
    left, right = as_value(a), as_value(b)
    rank = max(left.ndim, right.ndim)
    outer = (1,) * (rank - left.ndim) + left.shape
    inner = (1,) * (rank - right.ndim) + right.shape
    first = reshaped(left, tuple(extent for pair in zip(outer, (1,) * rank, strict=True) for extent in pair))
    second = reshaped(right, tuple(extent for pair in zip((1,) * rank, inner, strict=True) for extent in pair))
    return reshaped(multiply(first, second), tuple(m * n for m, n in zip(outer, inner, strict=True)))


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Value:
    """The cross product of vectors of 3 (or 2) components along `axis`; if both have 2, its third component.

    Raises ShapeError for other extents.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    together = common_dtype([a, b])
    held = together[0].type.dtype
    left, right = (
        moveaxis(cast(value, averaging(held)), at, -1) for value, at in zip(together, (axisa, axisb), strict=True)
    )
    if left.shape[-1] not in (2, 3) or right.shape[-1] not in (2, 3):
        raise shape_error(f"cross: vectors have 2 or 3 components, got {left.type} and {right.type}")
    first, second = ([value[..., k] for k in range(value.shape[-1])] for value in (left, right))
    third = subtract(multiply(first[0], second[1]), multiply(first[1], second[0]))
    if len(first) == len(second) == 2:
        return cast(third, held)
    zero = multiply(third, 0)
    first, second = (parts if len(parts) == 3 else [*parts, zero] for parts in (first, second))
    parts = [
        subtract(multiply(first[1], second[2]), multiply(first[2], second[1])),
        subtract(multiply(first[2], second[0]), multiply(first[0], second[2])),
        third,
    ]
    result = cast(stack(broadcast_arrays(*parts), -1), held)
    return moveaxis(result, -1, normal_axis("cross", axisc, result.type))


@with_element_type
def vecdot(
    x: ArrayLike,
    y: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: str | None = None,
    preferred_element_type: Any = None,
) -> Value:
    """The sum over `axis`, counted from the end, of the products of elements; the other axes broadcast.

    `precision` and `preferred_element_type` are as in `matmul`. Raises ShapeError if the extents along `axis` differ.
    """
    left, right = common_dtype([x, y])
    if axis >= 0:
        axis = normal_axis("vecdot", axis, left.type) - left.ndim
    rows, columns = (moveaxis(value, normal_axis("vecdot", axis, value.type), -1) for value in (left, right))
    if rows.shape[-1] != columns.shape[-1]:
        raise shape_error(f"vecdot: {left.type} and {right.type} differ along axis {axis}")
    shape = broadcast_shapes(rows.shape[:-1], columns.shape[:-1])
    row = reshaped(conj(rows), (*rows.shape[:-1], 1, rows.shape[-1]))
    return reshaped(matmul(row, reshaped(columns, (*columns.shape, 1)), precision), shape)


def matvec(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The products of matrices [..., m, n] with vectors [..., n]; the axes in front broadcast.

    Raises ShapeError if the shapes do not fit.
    """
    matrix, vector = _matrix_and_vector("matvec", x, y, -1)
    found = matmul(matrix, reshaped(vector, (*vector.shape, 1)))
    return reshaped(found, found.shape[:-1])


def vecmat(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The products of vectors [..., m] with matrices [..., m, n]; the axes in front broadcast.

    Raises ShapeError if the shapes do not fit.
    """
    matrix, vector = _matrix_and_vector("vecmat", y, x, -2)
    vector = conj(vector)
    row = reshaped(vector, (*vector.shape[:-1], 1, vector.shape[-1]))
    found = matmul(row, matrix)
    return reshaped(found, (*found.shape[:-2], found.shape[-1]))


def _matrix_and_vector(name: str, x: ArrayLike, y: ArrayLike, axis: int) -> tuple[Value, Value]:
    matrix, vector = as_value(x), as_value(y)
    if matrix.ndim < 2 or not vector.ndim or matrix.shape[axis] != vector.shape[-1]:
        raise shape_error(f"{name}: a matrix {matrix.type} and a vector {vector.type} have no product")
    return matrix, vector
