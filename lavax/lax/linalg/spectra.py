"""Eigenvalues and singular values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax import linalg
from lavax.lax.linalg.choices import EighImplementation, EigImplementation, SvdAlgorithm
from lavax.linalg.complex_matrices import adjoint
from lavax.linalg.matrices import chosen_part, square_matrices
from lavax.numpy._core.operands import ArrayLike
from lavax.scipy.linalg import decompositions, matrix_functions
from lavax.tracer.values.value import Value


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Value, Value]:
    """Eigenvectors and eigenvalues of `linalg.eigh`: the vectors come first.

    `subset_by_index` [start, end) chooses some of the rising eigenvalues. They are always sorted, and `implementation`
    changes nothing.
    """
    found = linalg.eigh(x, None if symmetrize_input else "L" if lower else "U")
    chosen = slice(None) if subset_by_index is None else chosen_part("eigh", subset_by_index)
    return found.eigenvectors[..., chosen], found.eigenvalues[..., chosen]


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Value]:
    """Eigenvalues of `linalg.eig`, then the left and the right eigenvectors that are asked for, in columns.

    A left vector u has uᴴ·x = λ·uᴴ and length 1. Other arguments change nothing.
    """
    values, right = linalg.eig(x)
    results = [values]
    if compute_left_eigenvectors:
        left = adjoint(linalg.inv(right))
        results.append(left / linalg.vector_norm(left, axis=-2, keepdims=True))
    return [*results, right] if compute_right_eigenvectors else results


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Value | tuple[Value, Value, Value]:
    """U, S and Vᴴ of `linalg.svd`, as a tuple. `algorithm` changes nothing."""
    found = linalg.svd(x, full_matrices, compute_uv, subset_by_index=subset_by_index)
    return found if isinstance(found, Value) else (found.U, found.S, found.Vh)


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> tuple[Value, ...]:
    """T and Z of `scipy.linalg.schur`, or T alone in a tuple; other arguments change nothing."""
    value = square_matrices("schur", x)
    found = matrix_functions.schur(value, "complex" if value.type.dtype.is_complex else "real")
    return found if compute_schur_vectors else found[:1]


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Value, Value, Value, Value]:
    """U and H of `scipy.linalg.polar`, U·H = x, then 0 iterations and True: both come from singular values.

    Other arguments change nothing, but `dynamic_shape`, for which it raises ValueError.
    """
    if dynamic_shape is not None:
        raise ValueError("qdwh: dynamic_shape is not supported: give the matrix without its padding")
    orthonormal, definite = decompositions.polar(x)
    return orthonormal, definite, lnp.asarray(0, dtype="int32"), lnp.asarray(True)
