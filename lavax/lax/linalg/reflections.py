"""Orthogonal matrices as products of Householder's reflections 1 - τ·v·vᴴ, in LAPACK's form.

Column k of a matrix holds v below the diagonal; its first component, on the diagonal, is 1 and not stored.
"""
from __future__ import annotations

import lavax.numpy as lnp
from lavax.linalg.complex_matrices import adjoint
from lavax.linalg.host_routines import on_host
from lavax.linalg.matrices import matrices, square_matrices
from lavax.linalg.packed_reflections import applied
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


def _reflections(name: str, a: ArrayLike, taus: ArrayLike) -> tuple[Value, Value]:
    value, sizes = matrices(name, a), as_value(taus)
    if sizes.ndim == 0 or sizes.shape[:-1] != value.shape[:-2] or sizes.shape[-1] > min(value.shape[-2:]):
        given = f"{value.type} and {sizes.type}"
        raise shape_error(f"{name} takes matrices [..., m, n] and scalars [..., k], k ≤ min(m, n), got {given}")
    return value, lnp.astype(sizes, value.dtype)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Value:
    """The first n columns of the product of reflections, [..., m, n]: `a` [..., m, n] has their vectors, `taus`
    [..., k] their scalars.

    Raises ShapeError if the shapes do not fit.
    """
    value, sizes = _reflections("householder_product", a, taus)
    start = lnp.broadcast_to(lnp.eye(value.shape[-2], value.shape[-1], dtype=value.dtype), value.shape)
    return applied(value, sizes, start, from_last=True, conjugate=False)


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False) -> Value:
    """Q·c, or with `transpose` Qᴴ·c, or without `left` c·Q or c·Qᴴ: Q is the product of `householder_product`, with all
    its columns.

    Raises ShapeError if the shapes do not fit.
    """
    value, sizes = _reflections("ormqr", a, taus)
    other = lnp.astype(matrices("ormqr", c), value.dtype)
    if other.shape[-2 if left else -1] != value.shape[-2]:
        raise shape_error(f"ormqr: Q [{value.shape[-2]}, {value.shape[-2]}] of {value.type} does not fit {other.type}")
    if left:
        return applied(value, sizes, other, from_last=not transpose, conjugate=transpose)
    return adjoint(applied(value, sizes, adjoint(other), from_last=transpose, conjugate=not transpose))


def hessenberg(a: ArrayLike) -> tuple[Value, Value]:
    """Matrices [..., n, n] that are zero below the first subdiagonal, with reflections there, and their scalars
    [..., n - 1].

    Computed on the host by SciPy's LAPACK, in float64; it has no derivative. Raises ShapeError for matrices that are
    not square.
    """
    form, sizes = on_host("gehrd", square_matrices("hessenberg", a))
    return form, sizes


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Value, Value, Value, Value]:
    """Symmetric matrices [..., n, n] as tridiagonal ones: the matrix with reflections, the diagonal [..., n], the next
    one [..., n - 1], and the reflections' scalars [..., n - 1].

    The triangle that `lower` says is read. Computed on the host as `hessenberg`. Raises ShapeError for matrices that
    are not square.
    """
    value = square_matrices("tridiagonal", a)
    form, diagonal, next_one, sizes = on_host("sytrd_lower" if lower else "sytrd_upper", value)
    return form, diagonal, next_one, sizes
