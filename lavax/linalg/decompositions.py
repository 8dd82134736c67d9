"""Matrices as products: Cholesky, QR, eigenvalue and singular value decompositions."""

from __future__ import annotations

from typing import NamedTuple

from lavax.linalg.complex_matrices import (
    adjoint,
    complete_singular_values,
    from_interleaved,
    hermitian_eigenvalues,
    in_blocks,
    interleaved,
    singular_values,
)
from lavax.linalg.matrices import Parts, chosen_part, is_empty, matrices, square_matrices, symmetric_part, unit_matrices
from lavax.linalg.packed_reflections import factors, packed, reflected
from lavax.numpy._core.operands import ArrayLike, own
from lavax.numpy.arrays.complex_parts import imag, real
from lavax.numpy.arrays.creation import zeros
from lavax.numpy.arrays.manipulation import expand_dims, matrix_transpose
from lavax.numpy.arrays.matrices import tril, triu
from lavax.numpy.elementwise.arithmetic import abs, add, multiply
from lavax.numpy.elementwise.comparison import less, where
from lavax.numpy.indexing.taking import take_along_axis
from lavax.numpy.sorting.sorting import argsort, sort
from lavax.tracer import bind
from lavax.tracer.values.value import Value


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Value
    R: Value


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Value
    eigenvectors: Value


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Value
    S: Value
    Vh: Value


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Value:
    """The lower triangle L with L·Lᴴ = a for Hermitian positive definite matrices [..., n, n]; with `upper`, Lᴴ.

    With `symmetrize_input` the Hermitian part of `a` is used, else its lower triangle (with `upper`, its upper one).
    A matrix that is not positive definite gives NaN in the triangle, and zeros beside it. Raises ShapeError for
    matrices that are not square.
    """
    value = square_matrices("cholesky", a)
    if is_empty(value):
        return own(value)
    given = symmetric_part(value) if symmetrize_input else (adjoint(value) if upper else value)
    if value.type.dtype.is_complex:
        hermitian = bind("complex", real(given), tril(imag(given), -1))  # the other triangle is not read
        factor = from_interleaved(bind("cholesky", interleaved(hermitian)))
        # That of rounded numbers is not quite real. NaN stays, in both parts.
        factor = bind("complex", real(factor), tril(imag(factor), -1) + multiply(real(factor), 0.0))
    else:
        factor = bind("cholesky", given)
    return adjoint(factor) if upper else factor


def qr(a: ArrayLike, mode: str = "reduced") -> QRResult | Value:
    """Orthonormal columns Q and an upper triangle R with Q·R = a, for matrices [..., m, n].

    With k = min(m, n), `mode` "reduced" returns Q [..., m, k] and R [..., k, n]; "complete" Q [..., m, m] and R
    [..., m, n], which has no gradient if m > n; "r" only R of "reduced"; "raw", as in NumPy, the transposes [..., n, m]
    of the matrices into which LAPACK packs its reflections and R, and their scalars [..., k], both of which
    `lax.linalg.householder_product` takes. Signs are LAPACK's. Gradients assume that the first k columns are
    independent. Raises ShapeError for fewer than two axes, ValueError for another mode.
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw', got {mode!r}")
    value = matrices("qr", a)
    if mode == "raw":
        return _packed_qr(value)
    result = _qr(value, mode == "complete")
    return result.R if mode == "r" else result


def _packed_qr(value: Value) -> QRResult:
    is_reflected = value.type.dtype.is_complex and not is_empty(value)
    reflections, scalars = reflected(value) if is_reflected else packed(*_qr(value, False))
    return QRResult(matrix_transpose(reflections), scalars)


def _qr(value: Value, complete: bool) -> QRResult:
    rows, columns = value.shape[-2:]
    if is_empty(value):
        return _qr_of_nothing(value, rows if complete else 0)
    if rows < columns:
        first = _qr_tall(value[..., :rows], False)
        rest = adjoint(first.Q) @ value[..., rows:]
        return QRResult(first.Q, _beside(first.R, rest))
    return _qr_tall(value, complete and rows > columns)


def _qr_tall(value: Value, complete: bool) -> QRResult:
    if value.type.dtype.is_complex:
        return QRResult(*factors(value, complete))
    parts = Parts("qr", value, complete=complete)
    return QRResult(parts["q"], parts["r"])


def _qr_of_nothing(value: Value, kept: int) -> QRResult:
    *stack, rows, columns = value.shape
    q = unit_matrices(value, rows) if kept else zeros((*stack, rows, 0), dtype=value.dtype)
    return QRResult(q, zeros((*stack, kept, columns), dtype=value.dtype))


def _beside(left: Value, right: Value) -> Value:
    return bind("concatenate", left, right, axis=left.ndim - 1)


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues [..., n], rising, and orthonormal eigenvectors, the columns of [..., n, n].

    The matrices are symmetric, or Hermitian: those of complex numbers are decomposed on the host, by NumPy.
    `UPLO`, "L" or "U", chooses the triangle that is read; without it the symmetric part of `a` is used, or with
    `symmetrize_input=False` the lower triangle. In each vector the component of largest magnitude is positive.
    Gradients of the vectors are defined if the eigenvalues differ. Raises ShapeError for matrices that are not square,
    ValueError for another `UPLO`.
    """
    value = _one_triangle("eigh", a, UPLO, symmetrize_input)
    if is_empty(value):
        return EighResult(zeros(value.shape[:-1], dtype=real(value).dtype), value)
    if value.type.dtype.is_complex:
        return EighResult(*hermitian_eigenvalues(value))
    parts = Parts("eigh", value, vectors=True)
    return EighResult(parts["values"], matrix_transpose(parts["vectors"]))


def eigvalsh(a: ArrayLike, UPLO: str | None = None, *, symmetrize_input: bool = True) -> Value:
    """The eigenvalues of `eigh`, [..., n]; their gradient is defined for equal ones too.

    Raises the errors of `eigh`.
    """
    value = _one_triangle("eigvalsh", a, UPLO, symmetrize_input)
    if is_empty(value):
        return zeros(value.shape[:-1], dtype=real(value).dtype)
    if value.type.dtype.is_complex:  # each eigenvalue twice
        return Parts("eigh", in_blocks(value), vectors=False)["values"][..., ::2]
    return Parts("eigh", value, vectors=False)["values"]


def _one_triangle(name: str, x: ArrayLike, triangle: str | None, symmetrize: bool) -> Value:
    if triangle not in (None, "L", "U"):
        raise ValueError(f"{name}: UPLO must be 'L' or 'U', got {triangle!r}")
    value = square_matrices(name, x)
    if triangle is None and symmetrize:
        return symmetric_part(value)
    if value.type.dtype.is_complex:  # no routine reads a triangle alone
        strict = tril(value, -1) if triangle != "U" else adjoint(triu(value, 1))
        diagonal = multiply(unit_matrices(value, value.shape[-1]), real(value))
        return strict + adjoint(strict) + diagonal
    return matrix_transpose(value) if triangle == "U" else value


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult | Value:
    """Singular values S [..., k], falling, k = min(m, n), and orthonormal vectors with U·diag(S)·Vh = a [..., m, n].

    U is [..., m, m] and Vh [..., n, n], or with `full_matrices=False` [..., m, k] and [..., k, n]; if m and n differ,
    only the latter have gradients, and only if the singular values differ. With `compute_uv=False` S alone. With
    `hermitian` the matrices are taken to be so, and S are magnitudes of eigenvalues. `subset_by_index` [start, end)
    chooses some singular values and their vectors. Raises ShapeError for fewer than two axes, ValueError for
    `subset_by_index` with full matrices that have more vectors. Complex matrices are decomposed on the host, by NumPy.
    """
    if subset_by_index is not None:
        return _some_of_svd(a, full_matrices, compute_uv, hermitian, chosen_part("svd", subset_by_index))
    if hermitian:
        return _svd_of_hermitian(a, compute_uv)
    if not compute_uv:
        return svdvals(a)
    value = matrices("svd", a)
    rows, columns = value.shape[-2:]
    if is_empty(value):
        return _svd_of_nothing(value, full_matrices)
    wide = rows < columns
    if value.type.dtype.is_complex:
        complete = full_matrices and rows != columns
        return SVDResult(*(complete_singular_values if complete else singular_values)(value))
    parts = Parts(
        "svd", matrix_transpose(value) if wide else value, vectors=True, complete=full_matrices and rows != columns
    )
    left, right = parts["left"], parts["right"]
    if wide:
        left, right = matrix_transpose(right), matrix_transpose(left)
    return SVDResult(left, parts["values"], right)


def _some_of_svd(
    x: ArrayLike, full_matrices: bool, compute_uv: bool, hermitian: bool, chosen: slice
) -> SVDResult | Value:
    rows, columns = matrices("svd", x).shape[-2:]
    if full_matrices and compute_uv and rows != columns:
        raise ValueError("svd: subset_by_index has no full matrices: give full_matrices=False")
    found = svd(x, False, compute_uv, hermitian)
    if isinstance(found, Value):
        return found[..., chosen]
    return SVDResult(found.U[..., chosen], found.S[..., chosen], found.Vh[..., chosen, :])


def _svd_of_hermitian(x: ArrayLike, compute_uv: bool) -> SVDResult | Value:
    if not compute_uv:
        return sort(abs(eigvalsh(x)), axis=-1, descending=True)
    values, vectors = eigh(x)
    order = argsort(abs(values), axis=-1, descending=True)
    sizes = take_along_axis(abs(values), order, axis=-1)
    signs = take_along_axis(where(less(values, 0), -1.0, 1.0), order, axis=-1)
    right = take_along_axis(vectors, expand_dims(order, -2), axis=-1)
    return SVDResult(multiply(right, expand_dims(signs, -2)), sizes, adjoint(right))


def _svd_of_nothing(value: Value, full_matrices: bool) -> SVDResult:
    *stack, rows, columns = value.shape
    u = unit_matrices(value, rows) if full_matrices else zeros((*stack, rows, 0), dtype=value.dtype)
    v = unit_matrices(value, columns) if full_matrices else zeros((*stack, 0, columns), dtype=value.dtype)
    return SVDResult(u, zeros((*stack, 0), dtype=real(value).dtype), v)


def svdvals(x: ArrayLike) -> Value:
    """The singular values of matrices [..., m, n], falling, [..., min(m, n)].

    Their gradient is defined for equal ones too. Raises ShapeError for fewer than two axes.
    """
    value = matrices("svdvals", x)
    if is_empty(value):
        return zeros((*value.shape[:-2], 0), dtype=real(value).dtype)
    if value.shape[-2] < value.shape[-1]:
        value = matrix_transpose(value)
    if value.type.dtype.is_complex:  # each singular value twice
        pairs = Parts("svd", in_blocks(value), vectors=False, complete=False)["values"]
        return multiply(add(pairs[..., ::2], pairs[..., 1::2]), 0.5)
    return Parts("svd", value, vectors=False, complete=False)["values"]
