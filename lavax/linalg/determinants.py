"""Determinants of matrices, and their cofactors, which are the derivatives."""
from __future__ import annotations

from typing import Any

from lavax.ir.types import int32
from lavax.linalg.complex_matrices import eliminated
from lavax.linalg.matrices import Parts, is_empty, square_matrices, unit_matrices
from lavax.linalg.solving import solve_triangular
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy.arrays.creation import iota, ones
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.arrays.manipulation import expand_dims, matrix_transpose
from lavax.numpy.arrays.matrices import diagonal
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, subtract
from lavax.numpy.elementwise.comparison import equal, where
from lavax.numpy.indexing.indexing import index
from lavax.numpy.indexing.taking import take_along_axis
from lavax.numpy.reductions.reductions import any as any_of
from lavax.numpy.reductions.reductions import argmin, prod
from lavax.numpy.reductions.reductions import max as largest
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value

_EXPANDED = 3  # rows of matrices whose determinants are expanded


def det(a: ArrayLike) -> Value:
    """The determinants [...] of matrices [..., n, n].

    The gradient is that of cofactors, and finite for singular matrices, too; where elimination meets more than one
    pivot that is 0 it is 0, as in JAX. From n = 4 on, further derivatives are those of regular matrices. Raises
    ShapeError for matrices that are not square.
    """
    value = square_matrices("det", a)
    if is_empty(value):
        return ones(value.shape[:-2], dtype=value.dtype)
    found: Value = _expanded(value) if value.shape[-1] <= _EXPANDED else _by_elimination(value)
    return found


@one_program()
def _expanded(matrix: Value) -> Value:
    """Determinants by the first row: few products, whose derivatives exist for singular matrices, too."""
    size = matrix.shape[-1]

    def entry(row: int, column: int) -> Value:
        return index(matrix, (Ellipsis, row, column))

    if size == 1:
        return entry(0, 0)
    if size == 2:
        return subtract(multiply(entry(0, 0), entry(1, 1)), multiply(entry(0, 1), entry(1, 0)))
    minors = [
        subtract(multiply(entry(1, j), entry(2, k)), multiply(entry(1, k), entry(2, j)))
        for j, k in ((1, 2), (2, 0), (0, 1))
    ]
    first, second, third = (multiply(entry(0, column), minor) for column, minor in enumerate(minors))
    return add(add(first, second), third)


def _factors(matrix: Value) -> tuple[Value, Value, Value]:
    """L and U packed into [..., n, n], the order [..., n] of the rows in L·U as int32, and the sign [...] of it."""
    if matrix.type.dtype.is_complex:
        factors, order, parity = eliminated(matrix)
    else:
        parts = Parts("lu", matrix)
        factors, order, parity = parts["factors"], cast(parts["permutation"], int32), parts["parity"]
    return factors, order, reshaped(parity, matrix.shape[:-2])


@custom_jvp
def _by_elimination(matrix: Value) -> Value:
    factors, _, parity = _factors(matrix)
    return multiply(prod(diagonal(factors, 0, -2, -1), -1), parity)


@_by_elimination.defjvp
def _of_determinant(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Value, Value]:
    """The sum of the changes of all entries, each times its cofactor (Jacobi's formula)."""
    (matrix,), (direction,) = primals, tangents
    change = sum_over(multiply(cofactors(matrix), direction), (-2, -1))
    return _by_elimination(matrix), change


def cofactors(matrix: Value) -> Value:
    """The cofactors [..., n, n] of matrices: det(A)·A⁻ᵀ where A is regular.

    With A = P·L·U, the smallest pivot u of U, at place k, becomes t, the size of the largest. That gives A' = P·L·U'
    and, by the formula of Sherman and Morrison, transposed cofactors det(A')·((u/t)·A'⁻¹ − (u − t)·U'⁻¹·eₖ·eₖᵀ·A'⁻¹),
    which do not divide by u. They are 0 if another pivot is 0.
    """
    factors, order, parity = _factors(matrix)
    size = matrix.shape[-1]
    place = iota(matrix.type.with_dtype(int32).with_shape((size,)), 0)
    pivots = diagonal(factors, 0, -2, -1)
    sizes = stop_gradient(abs(pivots))
    is_least = equal(place, argmin(sizes, -1, keepdims=True))
    greatest = largest(sizes, -1, keepdims=True)
    other = where(equal(greatest, 0), 1, greatest)
    least = sum_over(where(is_least, pivots, 0), -1, keepdims=True)
    is_lost = any_of(equal(where(is_least, other, pivots), 0), -1, keepdims=True)
    changed = where(is_least, other, where(is_lost, 1, pivots))
    upper = where(equal(place, expand_dims(place, -1)), expand_dims(changed, -1), factors)

    units = unit_matrices(matrix, size)
    half = solve_triangular(
        factors, take_along_axis(units, expand_dims(order, -1), axis=-2), lower=True, unit_diagonal=True
    )
    unit = expand_dims(where(is_least, ones((), dtype=matrix.dtype), 0), -1)
    solved = solve_triangular(upper, concatenate([half, unit], -1))
    inverse, column = index(solved, (Ellipsis, slice(0, size))), index(solved, (Ellipsis, slice(size, None)))
    row = sum_over(where(expand_dims(is_least, -1), inverse, 0), -2, keepdims=True)
    share, step = (expand_dims(part, -1) for part in (divide(least, other), subtract(least, other)))
    found = subtract(multiply(share, inverse), multiply(step, multiply(column, row)))
    whole = multiply(prod(changed, -1, keepdims=True), expand_dims(parity, -1))
    scaled = multiply(expand_dims(whole, -1), found)
    return matrix_transpose(where(expand_dims(is_lost, -1), 0, scaled))
