"""Functions of matrices by those of their eigenvalues, on complex Schur forms."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp
from lavax.linalg.complex_matrices import adjoint
from lavax.linalg.host_routines import on_host
from lavax.linalg.matrices import square_matrices
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.scipy.linalg.matrix_functions import schur
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.values.value import Value


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Value, Value]:
    """The complex Schur form T and Z of real matrices, from their real one, [..., n, n] each.

    Computed on the host by SciPy, as `schur`; `check_finite` changes nothing. Raises ShapeError if the shapes differ.
    """
    t, z = square_matrices("rsf2csf", T), square_matrices("rsf2csf", Z)
    if t.shape != z.shape:
        raise shape_error(f"rsf2csf: T and Z must have one shape, got {t.type} and {z.type}")
    dtype = lnp.result_type(t, z, lnp.complex64)
    upper, vectors = on_host("rsf2csf", lnp.astype(t, dtype), lnp.astype(z, dtype))
    return upper, vectors


def funm(A: ArrayLike, func: Callable[[Value], ArrayLike], disp: bool = True) -> Any:
    """The function of a matrix [n, n] that is `func` of its eigenvalues: `func` takes all of them at once, [n].

    The result is complex. By the recurrence of Parlett on the Schur form (Higham, Functions of Matrices, 4.6), so
    eigenvalues that are close to each other cost accuracy, and equal ones give NaN unless the matrix is normal. Without
    `disp` also an estimate of the relative error. Computed on the host in part, as `schur`. Raises ShapeError for
    anything but one square matrix.
    """
    value = square_matrices("funm", A)
    if value.ndim != 2:
        raise shape_error(f"funm takes one matrix [n, n], got {value.type}")
    upper, vectors = schur(value, "complex")
    values = lnp.diagonal(upper)
    of_upper, closest = _of_triangle(upper, lnp.diag(lnp.astype(lnp.asarray(func(values)), upper.dtype)))
    found = lnp.matmul(lnp.matmul(vectors, of_upper), adjoint(vectors))
    if disp:
        return found
    precision = float(lnp.finfo(found.dtype).eps)
    beside = lnp.max(lnp.sum(lnp.abs(lnp.triu(upper, 1)), axis=0))
    error = precision / lnp.where(closest == 0, precision, closest) * beside
    return found, lnp.where(lnp.any(lnp.isinf(found)), lnp.inf, lnp.clip(error, precision, 1.0))


def _of_triangle(upper: Value, start: Value) -> tuple[Value, Value]:
    """The function of a triangle, one diagonal after another, and the smallest distance of two eigenvalues."""
    size, strict, values = upper.shape[-1], lnp.triu(upper, 1), lnp.diagonal(upper)
    rows, gaps = lnp.arange(size), values[None, :] - values[:, None]
    distance = lnp.where(rows[None, :] == rows[:, None], lnp.inf, lnp.abs(gaps))

    def step(number: Any, found: Value) -> Value:
        on_diagonal = rows[None, :] - rows[:, None] == number
        sums = lnp.matmul(strict, found) - lnp.matmul(found, strict)
        apart = lnp.where(sums == 0, 1, gaps)  # a sum of 0 over a gap of 0 is 0: the matrix is normal there
        return lnp.add(found, lnp.where(on_diagonal, sums / apart, 0))

    found: Value = fori_loop(1, size, step, start)
    return found, lnp.min(distance)
