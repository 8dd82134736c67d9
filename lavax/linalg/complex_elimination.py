"""Complex matrices as products of triangles, with their derivative."""

from __future__ import annotations

from typing import Any

from lavax.ir.types import int32
from lavax.linalg.complex_matrices import eliminated
from lavax.linalg.matrices import unit_matrices
from lavax.linalg.solving import solve_triangular
from lavax.numpy._core.operands import cast
from lavax.numpy.arrays.creation import zeros_like
from lavax.numpy.arrays.manipulation import expand_dims, matrix_transpose
from lavax.numpy.arrays.matrices import tril, triu
from lavax.numpy.elementwise.arithmetic import add
from lavax.numpy.indexing.taking import take_along_axis
from lavax.numpy.products.linear_algebra import matmul
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value


@custom_jvp
def complex_factors(value: Value) -> tuple[Value, Value]:
    """L and U packed into c[..., n, n], and the order f[..., n] of its rows in L·U."""
    factors, order, _ = eliminated(value)
    return factors, cast(order, value.type.dtype.part)


@complex_factors.defjvp
def _of_factors(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """L̇ and U̇ are L·F and F·U below and above the diagonal, with F = L⁻¹·Ȧ·U⁻¹ of the rows in their order."""
    (matrix,), (direction,) = primals, tangents
    factors, order = complex_factors(matrix)
    rows = take_along_axis(direction, expand_dims(cast(order, int32), -1), axis=-2)
    half = solve_triangular(factors, rows, lower=True, unit_diagonal=True)
    whole = matrix_transpose(solve_triangular(factors, matrix_transpose(half), trans=1))
    lower = add(tril(factors, -1), unit_matrices(factors, factors.shape[-1]))
    change = add(matmul(lower, tril(whole, -1)), matmul(triu(whole), triu(factors)))
    return (factors, order), (change, zeros_like(order))
