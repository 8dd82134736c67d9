"""Pseudoinverses, least squares, ranks and powers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lavax.ir.types import int32
from lavax.linalg.complex_matrices import adjoint
from lavax.linalg.decompositions import eigvalsh, qr, svd, svdvals
from lavax.linalg.matrices import epsilon, is_empty, matrices, square_matrices, unit_matrices
from lavax.linalg.solving import inv, solve_triangular
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy.arrays.complex_parts import conj, real
from lavax.numpy.arrays.manipulation import expand_dims, matrix_transpose
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, square, subtract
from lavax.numpy.elementwise.comparison import greater, less, not_equal, where
from lavax.numpy.elementwise.extrema import maximum, minimum
from lavax.numpy.products.linear_algebra import matmul
from lavax.numpy.reductions.reductions import all as all_of
from lavax.numpy.reductions.reductions import any as any_of
from lavax.numpy.reductions.reductions import count_nonzero, squared_length
from lavax.numpy.reductions.reductions import max as max_over
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer import with_weak
from lavax.tracer.control_flow.branches import cond
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

# Singular values of matrices of no more rows or columns take fewer kernels than factors Q·R and what follows them.
_FEW_VALUES = 16
# The larger extent over the smaller one, from which on most of a decomposition's time is that of factors Q·R, which it
# begins with.
_OBLONG = 2


def _begins_with_factors(matrix: Value, relative: ArrayLike) -> bool:
    """Whether a pseudoinverse begins with factors Q·R, and needs nothing else if the rank is full.

    It does not if one matrix has several tolerances, and so several pseudoinverses.
    """
    least, most = sorted(matrix.shape[-2:])
    is_oblong = least > _FEW_VALUES and most >= _OBLONG * least
    batch = matrix.shape[:-2]
    has_one_each = np.broadcast_shapes(batch, as_value(relative).shape[:-1]) == batch
    return not matrix.type.dtype.is_complex and is_oblong and has_one_each


def _relative(value: Value, tolerance: ArrayLike | None) -> ArrayLike:
    """The tolerance, given once or per matrix; by default the dtype's epsilon times the larger extent."""
    if tolerance is None:
        return max(value.shape[-2:]) * epsilon(value)
    return expand_dims(tolerance, -1) if as_value(tolerance).ndim else tolerance


def _limit(values: Value, relative: ArrayLike) -> Value:
    return multiply(max_over(values, -1, keepdims=True), relative)


def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Value:
    """The pseudoinverses [..., n, m] of matrices [..., m, n].

    Singular values of at most `rtol` times the largest count as zero: by default max(m, n) times the
    dtype's epsilon. `rcond` is another name of `rtol`. With `hermitian` the matrices are taken to be so. The gradient
    is that of matrices of constant rank (Golub and Pereyra 1973). Raises ShapeError for fewer than two axes, ValueError
    if both `rtol` and `rcond` are given.
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: give rtol or rcond, which mean the same, not both")
    value = matrices("pinv", a)
    if is_empty(value):
        return adjoint(value)
    relative = _relative(value, rcond if rtol is None else rtol)

    return _inverse_and_values(value, relative, hermitian)[0]


def _inverse_and_values(value: Value, relative: ArrayLike, hermitian: bool = False) -> tuple[Value, Value]:
    """The pseudoinverses, and the singular values that they are found by."""

    def by_values(matrix: Value) -> tuple[Value, Value]:
        left, values, right = svd(matrix, full_matrices=False, hermitian=hermitian)
        kept = greater(values, _limit(values, relative))
        inverses = where(kept, divide(1.0, where(kept, values, 1.0)), 0.0)
        return matmul(multiply(adjoint(right), expand_dims(inverses, -2)), adjoint(left)), values

    @custom_jvp
    def inverse(matrix: Value) -> tuple[Value, Value]:
        if hermitian or not _begins_with_factors(matrix, relative):
            return by_values(matrix)
        is_high = matrix.shape[-2] > matrix.shape[-1]
        q, r = qr(matrix if is_high else matrix_transpose(matrix))
        of_triangle = solve_triangular(r, unit_matrices(r, r.shape[-1]))
        surely = _surely_has_full_rank(r, of_triangle, relative, max(matrix.shape[-2:]))
        of_triangle = cond(surely, lambda found, r: found, lambda found, r: by_values(r)[0], of_triangle, r)
        found = matmul(of_triangle, matrix_transpose(q))
        return found if is_high else matrix_transpose(found), svdvals(r)

    @inverse.defjvp
    def tangent(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        (matrix,), (direction,) = primals, tangents
        p, values = inverse(matrix)
        turned = adjoint(direction)
        outside = subtract(turned, matmul(turned, matmul(matrix, p)))
        inside = subtract(turned, matmul(matmul(p, matrix), turned))
        within = matmul(matmul(p, direction), p)
        first = matmul(matmul(p, adjoint(p)), outside)
        second = matmul(matmul(inside, adjoint(p)), p)
        left, _, right = svd(matrix, full_matrices=False, hermitian=hermitian)
        of_values = real(sum_over(multiply(conj(left), matmul(direction, adjoint(right))), -2))
        return (p, values), (subtract(add(first, second), within), of_values)

    found: tuple[Value, Value] = inverse(value)
    return found


def _surely_has_full_rank(triangle: Value, inverse: Value, relative: ArrayLike, extent: int) -> Value:
    """Whether no singular value of any of the matrices with these triangles counts as zero, however it is rounded.

    By bounds of the largest singular values of the triangles and of their inverses.
    """
    conditions = multiply(_square_of_bound(triangle), _square_of_bound(inverse))
    least = maximum(2.0 * as_value(relative), 2.0 * extent * epsilon(triangle))
    if least.ndim:
        least = least[..., 0]
    return all_of(less(multiply(conditions, square(least)), 1.0))


def _square_of_bound(matrix: Value) -> Value:
    """What the square of the largest singular value does not exceed (Golub and Van Loan, 2.3.2 and 2.3.3)."""
    magnitudes = abs(matrix)
    by_sums = multiply(*(max_over(sum_over(magnitudes, axis), -1) for axis in (-2, -1)))
    return minimum(by_sums, sum_over(squared_length(matrix), (-2, -1)))


def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Value:
    """The number of singular values of matrices [..., m, n] above `rtol` times the largest, or above `tol`; int32.

    `rtol` is max(m, n) times the dtype's epsilon by default. With `hermitian` magnitudes of eigenvalues are counted.
    Of a vector or a number it is 1, or 0 if all are zero, as in NumPy. Raises ValueError if both are given.
    """
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: give tol or rtol, not both")
    if as_value(M).ndim < 2:
        return cast(any_of(not_equal(M, 0)), int32)
    value = matrices("matrix_rank", M)
    values = abs(eigvalsh(value)) if hermitian else svdvals(value)
    if is_empty(value):
        return count_nonzero(values, -1)
    limit: ArrayLike = _limit(values, _relative(value, rtol))
    if tol is not None:
        limit = expand_dims(tol, -1) if as_value(tol).ndim else tol
    return count_nonzero(greater(values, limit), -1)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Value, Value, Value, Value]:
    """The shortest x that minimizes ‖a·x - b‖, for one matrix `a` [m, n] and `b` [m] or [m, k].

    Returns (x [n] or [n, k], sums of squares of a·x - b [k], the rank of `a`, its singular values). Singular values of
    at most `rcond` times the largest count as zero: by default max(m, n) times the dtype's epsilon. With `numpy_resid`
    there are no sums of squares unless m > n and the rank, which must be known, is n. Raises ShapeError if shapes do
    not fit.
    """
    matrix, right = matrices("lstsq", a), as_value(b)
    if matrix.ndim != 2 or right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        given = f"{matrix.type} and {right.type}"
        raise shape_error(f"lstsq takes a matrix [m, n] and right sides [m] or [m, k], got {given}")
    columns = reshaped(right, (right.size, 1)) if right.ndim == 1 else right
    if is_empty(matrix):
        inverse, values = adjoint(matrix), svdvals(matrix)
    else:
        inverse, values = _inverse_and_values(matrix, _relative(matrix, rcond))
    solution = matmul(inverse, columns)
    beyond = subtract(matmul(matrix, solution), columns)
    squares = sum_over(squared_length(beyond), 0)
    found = reshaped(solution, (solution.shape[0],)) if right.ndim == 1 else solution
    limit = _limit(values, _relative(matrix, rcond)) if values.size else values
    rank = count_nonzero(greater(values, limit), -1)
    if numpy_resid and (matrix.shape[0] <= matrix.shape[1] or int(rank) < matrix.shape[1]):
        squares = squares[:0]
    return found, squares, rank, values


def matrix_power(a: ArrayLike, n: int) -> Value:
    """The `n`-th powers of matrices [..., m, m]; powers of the inverse for negative n.

    Those of integers and of truth values keep their dtype if n is not negative. Raises ShapeError for matrices that are
    not square, TypeError for an `n` that is not an integer.
    """
    exponent = whole_number("n", n)
    floats = square_matrices("matrix_power", a)
    value = with_weak(as_value(a), False) if exponent >= 0 else floats
    if exponent < 0:
        value, exponent = inv(value), -exponent
    result: Value | None = None
    while exponent:
        if exponent % 2:
            result = own(value) if result is None else matmul(result, value)
        exponent //= 2
        value = matmul(value, value) if exponent else value
    return unit_matrices(value, value.shape[-1]) if result is None else result
