"""Eigenvalues of matrices that are not symmetric, on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

from lavax.ir.types import complex64
from lavax.linalg.host_routines import on_host
from lavax.linalg.matrices import is_empty, square_matrices, unit_matrices
from lavax.linalg.solving import solve
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy._core.promotion import PROMOTION
from lavax.numpy.arrays.complex_parts import conj, real
from lavax.numpy.arrays.creation import zeros
from lavax.numpy.arrays.manipulation import expand_dims
from lavax.numpy.arrays.matrices import diagonal
from lavax.numpy.elementwise.arithmetic import divide, multiply, subtract
from lavax.numpy.elementwise.comparison import equal, where
from lavax.numpy.products.linear_algebra import matmul
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Value
    eigenvectors: Value


@custom_jvp
def _eig(value: Value) -> EigResult:
    return EigResult(*on_host("eig", value))


@_eig.defjvp
def _tangent(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[EigResult, EigResult]:
    """λ̇ = diag(V⁻¹·Ȧ·V), and V̇ = V·(F ∘ V⁻¹·Ȧ·V) with columns kept at length 1 (Giles 2008, section 3.1)."""
    (matrix,), (direction,) = primals, tangents
    values, vectors = _eig(matrix)
    inner = solve(vectors, matmul(direction, vectors))
    gaps = subtract(expand_dims(values, -2), expand_dims(values, -1))
    same = equal(gaps, 0)
    turned = matmul(vectors, where(same, 0.0, divide(inner, where(same, 1.0, gaps))))
    along = sum_over(multiply(conj(vectors), turned), -2, keepdims=True)
    moved = subtract(turned, multiply(vectors, real(along)))
    return EigResult(values, vectors), EigResult(diagonal(inner, 0, -2, -1), moved)


def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues [..., n], in LAPACK's order, and eigenvectors of length 1, the columns of [..., n, n].

    Both are complex, of real matrices too. Computed on the host by NumPy, in float64, so a compiled function waits for
    the device here. Gradients are defined if the eigenvalues differ. Raises ShapeError for matrices that are not
    square.
    """
    given = square_matrices("eig", a)
    value = cast(given, PROMOTION[given.type.dtype, complex64])
    if is_empty(value):
        return EigResult(zeros(value.shape[:-1], dtype=value.dtype), unit_matrices(value, 0))
    found: EigResult = _eig(value)
    return found


def eigvals(a: ArrayLike) -> Value:
    """The eigenvalues of `eig`, [..., n]."""
    return eig(a).eigenvalues
