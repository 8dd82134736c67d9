"""Complex matrices by real ones: [[a, −b], [b, a]] stands for a + bi.

Products, inverses and triangles of such matrices are such matrices again, so routines for real matrices of twice the
size serve complex ones. With the parts of an element side by side (`interleaved`), a triangle with real diagonal stays
a triangle, and what is unique for complex matrices, such as a Cholesky factor, is what the real routine finds.
"""

from __future__ import annotations

from typing import Any

from lavax.ir.types import int32
from lavax.linalg.host_routines import on_host
from lavax.linalg.matrices import unit_matrices
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy.arrays.complex_parts import conj, imag, real
from lavax.numpy.arrays.creation import full, iota
from lavax.numpy.arrays.joining import concatenate, stack
from lavax.numpy.arrays.manipulation import expand_dims, matrix_transpose
from lavax.numpy.arrays.matrices import diagonal
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, sign, subtract
from lavax.numpy.elementwise.comparison import equal, greater, greater_equal, logical_and, where
from lavax.numpy.elementwise.exponential import log
from lavax.numpy.products.linear_algebra import matmul
from lavax.numpy.reductions.reductions import argmax, prod
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer import bind
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value


def adjoint(value: Value) -> Value:
    """The conjugate transposes of matrices; the transposes of real ones."""
    return matrix_transpose(conj(value))


def in_blocks(value: Value) -> Value:
    """c[..., m, n] -> f[..., 2m, 2n], a matrix of four blocks."""
    upper = concatenate([real(value), negative(imag(value))], -1)
    return concatenate([upper, concatenate([imag(value), real(value)], -1)], -2)


def columns_in_blocks(value: Value) -> Value:
    """c[..., n, k] -> f[..., 2n, k], the first columns of the blocks."""
    return concatenate([real(value), imag(value)], -2)


def from_columns(value: Value) -> Value:
    """The inverse of `columns_in_blocks`."""
    axis, size = value.ndim - 2, value.shape[-2] // 2
    return bind("complex", cut(value, axis, 0, size), cut(value, axis, size, 2 * size))


def interleaved(value: Value) -> Value:
    """c[..., m, n] -> f[..., 2m, 2n], with the four numbers of an element side by side."""
    *batch, rows, columns = value.shape
    parts = [[real(value), negative(imag(value))], [imag(value), real(value)]]
    pairs = stack([stack(row, -1) for row in parts], -3)  # [..., m, 2, n, 2]
    return reshaped(pairs, (*batch, 2 * rows, 2 * columns))


def from_interleaved(value: Value) -> Value:
    """The inverse of `interleaved`, from the first column of each element."""
    *batch, rows, columns = value.shape
    pairs = reshaped(value, (*batch, rows // 2, 2, columns // 2, 2))
    first = reshaped(cut(pairs, pairs.ndim - 1, 0, 1), pairs.shape[:-1])
    halves = [reshaped(cut(first, first.ndim - 2, k, k + 1), (*batch, rows // 2, columns // 2)) for k in (0, 1)]
    return bind("complex", *halves)


def eliminated(value: Value) -> tuple[Value, Value, Value]:
    """L and U packed into c[..., m, n], m ≥ n, the order [..., m] of its rows in L·U, and the parity [..., 1] of that.

    Pivots have the largest sum of the sizes of both parts, as LAPACK's.
    """
    rows, columns = value.shape[-2:]
    row, column = (iota(value.type.with_dtype(int32).with_shape((size,)), 0) for size in (rows, columns))

    def step(k: Any, state: tuple[Value, Value, Value]) -> tuple[Value, Value, Value]:
        matrix, order, parity = state
        entries = _at(matrix, k, column, -1)
        sizes = add(abs(real(entries)), abs(imag(entries)))
        chosen = argmax(where(greater_equal(row, k), sizes, -1.0), -1, keepdims=True)
        is_chosen, is_current = equal(row, chosen), equal(row, k)
        pivot_row = sum_over(where(expand_dims(is_chosen, -1), matrix, 0), -2, keepdims=True)
        own_row = expand_dims(_at(matrix, k, row, -2), -2)
        matrix = where(expand_dims(is_chosen, -1), own_row, matrix)
        matrix = where(expand_dims(is_current, -1), pivot_row, matrix)
        place = sum_over(where(is_chosen, order, 0), -1, keepdims=True, promote_integers=False)
        own_place = sum_over(where(is_current, order, 0), -1, keepdims=True, promote_integers=False)
        order = where(is_current, place, where(is_chosen, own_place, order))
        pivot = expand_dims(_at(reshaped(pivot_row, (*value.shape[:-2], columns)), k, column, -1), -1)
        is_zero = equal(pivot, 0)
        factors = expand_dims(divide(_at(matrix, k, column, -1), where(is_zero, 1, pivot)), -1)
        below = expand_dims(greater(row, k), -1)
        rest = subtract(matrix, multiply(factors, pivot_row))
        matrix = where(logical_and(below, greater(column, k)), rest, matrix)
        matrix = where(logical_and(below, equal(column, k)), factors, matrix)
        return matrix, order, where(equal(chosen, k), parity, negative(parity))

    places = broadcast_to(row, (*value.shape[:-2], rows))
    parity = full((*value.shape[:-2], 1), 1, value.type.dtype.part)
    found: tuple[Value, Value, Value] = fori_loop(0, columns, step, (value, places, parity))
    return found


def _pivots(value: Value) -> Value:
    """Numbers [..., n] whose product is the determinant of c[..., n, n]."""
    factors, _, parity = eliminated(value)
    place = iota(value.type.with_dtype(int32).with_shape((value.shape[-1],)), 0)
    return multiply(diagonal(factors, 0, -2, -1), where(equal(place, 0), parity, 1))


@custom_jvp
def sign_and_logarithm(value: Value) -> tuple[Value, Value]:
    """The determinants of c[..., n, n] as numbers of length 1 (or 0) and logarithms of sizes, which do not overflow."""
    pivots = _pivots(value)
    return prod(sign(pivots), -1), sum_over(log(abs(pivots)), -1)


def _at(value: Value, k: Any, place: Value, axis: int) -> Value:
    """The entry number k along an axis of matrices, or of vectors."""
    mask = equal(place, k)
    return sum_over(where(mask if axis == -1 else expand_dims(mask, -1), value, 0), axis)


@sign_and_logarithm.defjvp
def _of_logarithm(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The imaginary part of tr(A⁻¹·Ȧ) turns the sign, and the real part is the change of the logarithm."""
    (matrix,), (direction,) = primals, tangents
    signs, logarithms = sign_and_logarithm(matrix)
    change = _relative_change(matrix, direction)
    turn = multiply(signs, multiply(1j, imag(change)))
    return (signs, logarithms), (turn, real(change))


def _relative_change(matrix: Value, direction: Value) -> Value:
    """tr(A⁻¹·Ȧ), by which the determinant of a regular matrix changes, over itself."""
    return sum_over(diagonal(solved(matrix, direction), 0, -2, -1), -1)


def solved(matrix: Value, right: Value) -> Value:
    """x of matrix·x = right."""
    whole = in_blocks(matrix)
    factored = bind("lu", whole)
    return from_columns(bind("linear_solve", whole, factored, columns_in_blocks(right), transposed=False))


@custom_jvp
def hermitian_eigenvalues(value: Value) -> tuple[Value, Value]:
    """Rising eigenvalues f[..., n] and eigenvectors c[..., n, n] of Hermitian matrices, by LAPACK on the host."""
    values, vectors = on_host("eigh", value)
    return values, vectors


@hermitian_eigenvalues.defjvp
def _of_eigenvalues(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """λ̇ = diag(Vᴴ·Ȧ·V), and V̇ = V·(F ∘ Vᴴ·Ȧ·V) with F = 1/(λⱼ − λᵢ), 0 where they are equal."""
    (matrix,), (direction,) = primals, tangents
    values, vectors = hermitian_eigenvalues(matrix)
    inner = matmul(adjoint(vectors), matmul(direction, vectors))
    gaps = subtract(expand_dims(values, -2), expand_dims(values, -1))
    same = equal(gaps, 0)
    turned = matmul(vectors, where(same, 0, divide(inner, where(same, 1.0, gaps))))
    return (values, vectors), (real(diagonal(inner, 0, -2, -1)), turned)


@custom_jvp
def singular_values(value: Value) -> tuple[Value, Value, Value]:
    """U c[..., m, k], S f[..., k] and Vᴴ c[..., k, n] with U·diag(S)·Vᴴ = value, by LAPACK on the host."""
    u, s, vh = on_host("svd", value)
    return u, s, vh


@singular_values.defjvp
def _of_singular_values(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Wan and Zhang (2019), "Automatic differentiation for complex valued SVD": the phases of U and V are shared."""
    (matrix,), (direction,) = primals, tangents
    u, s, vh = singular_values(matrix)
    v, uh = adjoint(vh), adjoint(u)
    inner = matmul(uh, matmul(direction, v))
    squares = multiply(s, s)
    gaps = subtract(expand_dims(squares, -2), expand_dims(squares, -1))
    same = equal(gaps, 0)
    inverse_gaps = where(same, 0.0, divide(1.0, where(same, 1.0, gaps)))
    inverse = where(greater(s, 0), divide(1.0, where(greater(s, 0), s, 1.0)), 0.0)
    beside, above = multiply(inner, expand_dims(s, -2)), multiply(expand_dims(s, -1), inner)
    of_u = multiply(inverse_gaps, add(beside, adjoint(beside)))
    of_v = multiply(inverse_gaps, add(above, adjoint(above)))
    turn = multiply(imag(diagonal(inner, 0, -2, -1)), multiply(inverse, 0.5))
    phase = multiply(unit_matrices(of_u, s.shape[-1]), expand_dims(multiply(turn, 1j), -2))
    du, dv = matmul(u, add(of_u, phase)), matmul(v, subtract(of_v, phase))
    outside_u = subtract(matmul(direction, v), matmul(u, inner))
    outside_v = subtract(matmul(adjoint(direction), u), matmul(v, adjoint(inner)))
    du = add(du, multiply(outside_u, expand_dims(inverse, -2)))
    dv = add(dv, multiply(outside_v, expand_dims(inverse, -2)))
    return (u, s, vh), (du, real(diagonal(inner, 0, -2, -1)), adjoint(dv))


def complete_singular_values(value: Value) -> tuple[Value, ...]:
    """U c[..., m, m], S f[..., k] and Vᴴ c[..., n, n], as `singular_values`, without a derivative."""
    return on_host("svd_full", value)
