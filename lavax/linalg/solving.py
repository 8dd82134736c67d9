"""Systems of equations, inverses and logarithms of determinants, by elimination."""

from __future__ import annotations

from typing import NamedTuple

from lavax.linalg.complex_matrices import sign_and_logarithm, solved
from lavax.linalg.matrices import Parts, is_empty, matrices, square_matrices, unit_matrices
from lavax.numpy._core.broadcasting import broadcast_shapes, broadcast_to, common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.complex_parts import conj, real
from lavax.numpy.arrays.creation import ones, zeros
from lavax.numpy.arrays.manipulation import matrix_transpose
from lavax.numpy.arrays.matrices import diagonal, tril, triu
from lavax.numpy.elementwise.arithmetic import abs, add, multiply, sign
from lavax.numpy.elementwise.exponential import log
from lavax.numpy.reductions.reductions import prod
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer import bind, with_weak
from lavax.tracer.values.value import Value

_TRANSPOSED: dict[int | str, bool] = {0: False, 1: True, 2: True, "N": False, "T": True, "C": True}


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Value
    logabsdet: Value


def _system(name: str, a: ArrayLike, b: ArrayLike) -> tuple[Value, Value, bool]:
    """Matrices and right sides with a common batch, and whether there is one right side without its own axis."""
    matrix, right = (with_weak(value, False) for value in common_dtype([a, b]))
    matrix = square_matrices(name, matrix)
    is_vector = right.ndim == 1
    if is_vector:
        right = reshaped(right, (right.size, 1))
    right = matrices(name, right) if right.ndim else right
    if right.ndim < 2 or right.shape[-2] != matrix.shape[-1]:
        raise shape_error(
            f"{name}: the matrices {matrix.type} need right sides [..., {matrix.shape[-1]}, k], or one vector "
            f"[{matrix.shape[-1]}], got {right.type}"
        )
    stack = broadcast_shapes(matrix.shape[:-2], right.shape[:-2])
    matrix = broadcast_to(matrix, (*stack, *matrix.shape[-2:]))
    return matrix, broadcast_to(right, (*stack, *right.shape[-2:])), is_vector


def _without_column(x: Value, is_vector: bool) -> Value:
    return reshaped(x, x.shape[:-1]) if is_vector else x


def solve(a: ArrayLike, b: ArrayLike) -> Value:
    """x of a·x = b, for matrices `a` [..., n, n] and right sides `b` [..., n, k] or one vector [n]; batches broadcast.

    By elimination with partial pivoting. A singular matrix gives infinities or NaN. Raises ShapeError if the shapes
    do not fit.
    """
    matrix, right, is_vector = _system("solve", a, b)
    if not right.size:
        return _without_column(right, is_vector)
    if matrix.type.dtype.is_complex:
        return _without_column(solved(matrix, right), is_vector)
    factored = Parts("lu", matrix).packed
    return _without_column(bind("linear_solve", matrix, factored, right, transposed=False), is_vector)


def inv(a: ArrayLike) -> Value:
    """The inverses of matrices [..., n, n]. A singular one gives infinities or NaN.

    Raises ShapeError for matrices that are not square.
    """
    value = square_matrices("inv", a)
    return value if is_empty(value) else solve(value, unit_matrices(value, value.shape[-1]))


def solve_triangular(
    a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Value:
    """x of a·x = b, of aᵀ·x = b with `trans` 1 or "T", or of aᴴ·x = b with 2 or "C".

    `a` [..., n, n] is triangular. Only the upper triangle is read, or the lower one if `lower`; with `unit_diagonal`
    the diagonal is not read and taken as ones. `b` is [..., n, k] or one vector [n]; batches broadcast. Raises
    ShapeError if the shapes do not fit, ValueError for another `trans`.
    """
    if trans not in _TRANSPOSED:
        raise ValueError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    matrix, right, is_vector = _system("solve_triangular", a, b)
    if not right.size:
        return _without_column(right, is_vector)
    if matrix.type.dtype.is_complex:
        return _without_column(_complex_triangular(matrix, right, trans, lower, unit_diagonal), is_vector)
    found = bind(
        "triangular_solve",
        matrix,
        right,
        lower=bool(lower),
        transposed=_TRANSPOSED[trans],
        unit_diagonal=bool(unit_diagonal),
    )
    return _without_column(found, is_vector)


def _complex_triangular(
    matrix: Value, right: Value, trans: int | str, lower: bool, unit_diagonal: bool
) -> Value:
    triangle = tril(matrix) if lower else triu(matrix)
    if unit_diagonal:
        size = matrix.shape[-1]
        strict = tril(matrix, -1) if lower else triu(matrix, 1)
        triangle = add(strict, unit_matrices(matrix, size))
    if _TRANSPOSED[trans]:
        triangle = matrix_transpose(conj(triangle) if trans in (2, "C") else triangle)
    return solved(triangle, right)


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The sign and the logarithm of the magnitude of the determinants of matrices [..., n, n], each [...].

    A singular matrix has 0 and minus infinity. `method`, "lu" or "qr", changes nothing: it is by elimination. Raises
    ShapeError for matrices that are not square, ValueError for another `method`.
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be 'lu' or 'qr', got {method!r}")
    value = square_matrices("slogdet", a)
    if is_empty(value):
        shape = value.shape[:-2]
        return SlogdetResult(ones(shape, dtype=value.dtype), zeros(shape, dtype=real(value).dtype))
    if value.type.dtype.is_complex:
        return SlogdetResult(*sign_and_logarithm(value))
    parts = Parts("lu", value)
    pivots = diagonal(parts["factors"], 0, -2, -1)
    signs = multiply(prod(sign(pivots), -1), reshaped(parts["parity"], value.shape[:-2]))
    return SlogdetResult(signs, sum_over(log(abs(pivots)), -1))
