"""Matrices as products, with SciPy's arguments and results.

`overwrite_a`, `check_finite`, `lwork` and `lapack_driver` are taken as SciPy takes them, and change nothing.
"""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import linalg
from lavax.linalg.complex_elimination import complex_factors
from lavax.linalg.complex_matrices import adjoint, eliminated
from lavax.linalg.host_routines import on_host
from lavax.linalg.matrices import Parts, is_empty, matrices, square_matrices
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value


def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Value:
    """The upper triangle U with Uᵀ·U = a of positive definite matrices [..., n, n], or with `lower` L with L·Lᵀ = a.

    Only that triangle of `a` is read. A matrix that is not positive definite gives NaN. Raises ShapeError for matrices
    that are not square.
    """
    return linalg.cholesky(a, upper=not lower, symmetrize_input=False)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Value, bool]:
    """`(cholesky(a, lower), lower)`, for `cho_solve`."""
    return cholesky(a, lower), lower


def factored(value: Value) -> tuple[Value, Value]:
    """L and U packed into the shape of `value` [..., m, n], and the rows of `value` in their order: a[order] = L·U."""
    m, n = value.shape[-2:]
    if is_empty(value):
        return value, lnp.broadcast_to(lnp.arange(m, dtype="int32"), (*value.shape[:-2], m))
    if m == n and value.type.dtype.is_complex:
        complex_part, places = complex_factors(value)
        return complex_part, lnp.astype(places, "int32")
    if m == n:
        parts = Parts("lu", value)
        return parts["factors"], lnp.astype(parts["permutation"], "int32")
    if m > n:
        return _factored_tall(value)
    factors, order = factored(value[..., :, :m])
    rest = lnp.take_along_axis(value[..., :, m:], order[..., None], axis=-2)
    solved = linalg.solve_triangular(factors, rest, lower=True, unit_diagonal=True)
    return lnp.concatenate([factors, solved], axis=-1), order


def _factored_tall(value: Value) -> tuple[Value, Value]:
    """The pivots are found first; then the rows in their order are a square matrix above, and L·U below."""
    n = value.shape[-1]
    fixed = stop_gradient(value)
    found = eliminated(fixed)[1] if value.type.dtype.is_complex else Parts("lu", fixed)["permutation"]
    order = lnp.astype(found, "int32")
    rows = lnp.take_along_axis(value, order[..., None], axis=-2)
    above, _ = factored(rows[..., :n, :])
    below = linalg.solve_triangular(above, lnp.matrix_transpose(rows[..., n:, :]), trans=1)
    return lnp.concatenate([above, lnp.matrix_transpose(below)], axis=-2), order


def _triangles(factors: Value) -> tuple[Value, Value]:
    m, n = factors.shape[-2:]
    k = min(m, n)
    lower = lnp.tril(factors[..., :, :k], -1) + lnp.eye(m, k, dtype=factors.dtype)
    return lower, lnp.triu(factors[..., :k, :])


def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Value, Value] | tuple[Value, Value, Value]:
    """P, L and U with P·L·U = a [..., m, n], or with `permute_l` P·L and U; pivots are chosen by rows.

    P [..., m, m] has one 1 per row, L [..., m, k] ones on its diagonal and U [..., k, n], k = min(m, n). Raises
    ShapeError for fewer than two axes.
    """
    value = matrices("lu", a)
    factors, order = factored(value)
    lower, upper = _triangles(factors)
    rows = lnp.arange(value.shape[-2])
    places = lnp.astype(rows[:, None] == order[..., None, :], lnp.real(value).dtype)
    return (lnp.matmul(places, lower), upper) if permute_l else (places, lower, upper)


def swaps_of(order: Value, count: int) -> Value:
    """Permutations [..., m] as swaps [..., count]: for each of the first places, the place that it is swapped with.

    That is the next place on the permutation's cycle that is not before it. Jumps along the cycle, of powers of two,
    find it: each knows the last one of the places where it has been.
    """
    jumps = [(order, order)]
    while 1 << len(jumps) < order.shape[-1]:
        to, last = jumps[-1]
        jumps.append((_taken(to, to), lnp.maximum(last, _taken(last, to))))
    places = lnp.arange(order.shape[-1], dtype="int32")
    at = lnp.broadcast_to(places, order.shape)
    for to, last in reversed(jumps):
        at = lnp.where(_taken(last, at) < places, _taken(to, at), at)
    return _taken(order, at)[..., :count]


def _taken(values: Value, places: Value) -> Value:
    return lnp.take_along_axis(values, places, axis=-1)


def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Value, Value]:
    """L and U packed into one matrix [..., m, n], and pivots: row i was swapped with row pivots[i], as in LAPACK.

    Raises ShapeError for fewer than two axes.
    """
    factors, order = factored(matrices("lu_factor", a))
    return factors, swaps_of(order, min(factors.shape[-2:]))


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues, rising, and eigenvectors of symmetric matrices [..., n, n], of which one triangle is read.

    With a positive definite `b`, those of the problem a·v = λ·b·v, whose vectors have vᴴ·b·v = 1. With `eigvals_only`
    the values alone. `turbo` changes nothing. Raises ShapeError for matrices that are not square, ValueError for
    another `type` than 1, and for `eigvals`.
    """
    if type != 1 or eigvals is not None:
        raise ValueError("eigh: only type=1 and all eigenvalues (eigvals=None) are supported")
    triangle = "L" if lower else "U"
    if b is None:
        if eigvals_only:
            return linalg.eigvalsh(a, triangle)
        found = linalg.eigh(a, triangle)
        return found.eigenvalues, found.eigenvectors
    value = square_matrices("eigh", a)
    whole = lnp.tril(value) if lower else lnp.triu(value)
    whole = whole + adjoint(whole) - lnp.real(whole) * lnp.eye(value.shape[-1], dtype=value.dtype)
    factor = linalg.cholesky(b if lower else adjoint(as_value(b)), symmetrize_input=False)
    half = linalg.solve_triangular(factor, whole, lower=True)
    reduced = linalg.solve_triangular(factor, adjoint(half), lower=True)
    if eigvals_only:
        return linalg.eigvalsh(reduced)
    found = linalg.eigh(reduced)
    return found.eigenvalues, linalg.solve_triangular(factor, found.eigenvectors, trans=2, lower=True)


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """Eigenvalues, rising, and vectors of the symmetric matrix with the diagonal `d` [n] and the next one `e` [n - 1].

    Complex `e` stand below the diagonal of a Hermitian matrix, their conjugates above, and of `d` the real parts count.
    Computed as of a full matrix. `select` "a" gives all, "i" those of the numbers in `select_range`, both included;
    "v", by values, is a number of eigenvalues that is known only when they are computed, and raises ValueError. `tol`
    and `key` change nothing. Raises ShapeError if the lengths do not fit.
    """
    diagonal, beside = as_value(d), as_value(e)
    if diagonal.ndim != 1 or beside.shape != (diagonal.shape[0] - 1,):
        given = f"{diagonal.type} and {beside.type}"
        raise shape_error(f"eigh_tridiagonal takes a diagonal [n] and the next one [n - 1], got {given}")
    if select not in ("a", "i") or (select == "i") != (select_range is not None):
        raise ValueError(f"eigh_tridiagonal: select is 'a', or 'i' with select_range, got {select!r}, {select_range}")
    matrix = lnp.diag(diagonal) + lnp.diag(lnp.conj(beside), 1) + lnp.diag(beside, -1)
    chosen = slice(None) if select_range is None else slice(int(select_range[0]), int(select_range[1]) + 1)
    if eigvals_only:
        return linalg.eigvalsh(matrix)[chosen]
    found = linalg.eigh(matrix)
    return found.eigenvalues[chosen], found.eigenvectors[:, chosen]


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Orthonormal Q and triangular R with Q·R = a [..., m, n].

    `mode` "full" gives Q [..., m, m] and R [..., m, n], "economic" Q [..., m, k] and R [..., k, n], k = min(m, n), "r"
    only R of "full", in a tuple. With `pivoting` Q·R = a[:, order], the diagonal of R falls in size, and `order`
    [..., n] is a further result; it is found on the host by SciPy, and has no derivative. Raises ValueError for another
    mode.
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"scipy.linalg.qr: mode must be 'full', 'r' or 'economic', got {mode!r}")
    value = matrices("qr", a)
    order = (_order_of_columns(value),) if pivoting else ()
    for places in order:
        value = lnp.take_along_axis(value, places[..., None, :], axis=-1)
    found = linalg.qr(value, mode="reduced" if mode == "economic" else "complete")
    assert isinstance(found, tuple)
    return (found[1], *order) if mode == "r" else (found[0], found[1], *order)


def _order_of_columns(value: Value) -> Value:
    """The order [..., n] in which the column that is longest beside those before it comes next; int32."""
    return lnp.astype(on_host("qr_order", stop_gradient(value))[0], "int32")


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Value, Value]:
    """c·Q with `mode` "right" or Q·c with "left", and R, for Q·R = a [m, n] of the economic form; real throughout.

    A vector `c` counts as a row or a column. Raises ValueError for another mode and for `pivoting`, ShapeError if the
    extents do not fit.
    """
    if mode not in ("right", "left") or pivoting:
        raise ValueError("qr_multiply: mode must be 'left' or 'right', without pivoting")
    q, r = qr(a, mode="economic")
    other = as_value(c)
    if other.ndim == 2 and other.shape[0 if mode == "left" else 1] == q.shape[0] != q.shape[1]:
        q = qr(a)[0] if mode == "left" else q
    return (lnp.matmul(q, other) if mode == "left" else lnp.matmul(other, q)), r


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """U, S and Vh of `linalg.svd`; with `compute_uv=False` S alone."""
    found = linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "svd",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Value, Value]:
    """U and P with U·P = a [m, n] (`side` "right") or P·U = a ("left"): U is orthonormal, P positive semidefinite.

    From singular values, whatever `method` says; `eps` and `max_iterations` change nothing. Gradients are defined if
    the singular values differ. Raises ValueError for another side, ShapeError for fewer than two axes.
    """
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', got {side!r}")
    value = matrices("polar", a)
    if is_empty(value):
        raise shape_error(f"polar takes matrices with elements, got {value.type}")
    found = linalg.svd(value, full_matrices=False)
    assert isinstance(found, tuple)
    left, values, right = found
    orthonormal = lnp.matmul(left, right)
    if side == "right":
        return orthonormal, lnp.matmul(adjoint(right) * values[..., None, :], right)
    return orthonormal, lnp.matmul(left * values[..., None, :], adjoint(left))


