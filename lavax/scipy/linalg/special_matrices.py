"""Matrices of a given form."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.ir.default_dtypes import default_complex
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


def _vectors(name: str, x: ArrayLike) -> Value:
    value = as_value(x)
    if not value.ndim:
        raise shape_error(f"{name} takes vectors [..., n], got a scalar")
    return value


def _vector(name: str, x: ArrayLike) -> Value:
    value = lnp.ravel(as_value(x))
    if not value.size:
        raise shape_error(f"{name} takes a vector with elements, got {value.type}")
    return value


def block_diag(*arrs: ArrayLike) -> Value:
    """The matrix with these matrices along its diagonal and zeros beside; vectors are rows, scalars 1 by 1.

    Raises ShapeError for more than two axes.
    """
    blocks = [lnp.atleast_2d(as_value(array)) for array in arrs or (lnp.zeros((1, 0)),)]
    for block in blocks:
        if block.ndim != 2:
            raise shape_error(f"block_diag takes matrices, vectors and scalars, got {block.type}")
    dtype = lnp.result_type(*blocks)
    columns = sum(block.shape[1] for block in blocks)
    rows, start = [], 0
    for block in blocks:
        end = start + block.shape[1]
        rows.append(lnp.pad(lnp.astype(block, dtype), ((0, 0), (start, columns - end))))
        start = end
    return lnp.concatenate(rows, axis=0)


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Value:
    """The matrices [..., m, n] with the first columns `c` [..., m] and first rows `r` [..., n], constant along
    diagonals.

    By default `r` is `c`, conjugated; its first element is not read.
    """
    column = _vectors("toeplitz", c)
    row = lnp.conj(column) if r is None else _vectors("toeplitz", r)
    stack = lnp.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    column = lnp.broadcast_to(column, (*stack, column.shape[-1]))
    row = lnp.broadcast_to(row, (*stack, row.shape[-1]))
    m, n = column.shape[-1], row.shape[-1]
    line = lnp.concatenate([lnp.flip(column, -1), row[..., 1:]], axis=-1)  # of the diagonals, from below
    places = (m - 1) - np.arange(m)[:, None] + np.arange(n)[None, :]
    return lnp.take(line, lnp.asarray(places), axis=-1)


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Value:
    """The matrix with the first column `c` [m] and the last row `r` [n], constant along the other diagonals.

    By default `r` is zeros; its first element is not read.
    """
    column = _vectors("hankel", c)
    row = lnp.zeros_like(column) if r is None else _vectors("hankel", r)
    m, n = column.shape[-1], row.shape[-1]
    line = lnp.concatenate([column, row[..., 1:]], axis=-1)
    return lnp.take(line, lnp.asarray(np.arange(m)[:, None] + np.arange(n)[None, :]), axis=-1)


def circulant(c: ArrayLike) -> Value:
    """The matrices [..., n, n] with the first columns `c` [..., n], each further column turned down by one."""
    column = _vectors("circulant", c)
    n = column.shape[-1]
    return lnp.take(column, lnp.asarray((np.arange(n)[:, None] - np.arange(n)[None, :]) % n), axis=-1)


def companion(a: ArrayLike) -> Value:
    """Matrices [..., n - 1, n - 1] whose characteristic polynomials have the coefficients `a` [..., n], highest first.

    Raises ShapeError for fewer than two coefficients.
    """
    coefficients = _vectors("companion", a)
    *batch, n = coefficients.shape
    if n < 2:
        raise shape_error(f"companion takes two coefficients or more, got {coefficients.type}")
    first = lnp.negative(coefficients[..., 1:]) / coefficients[..., :1]
    below = lnp.broadcast_to(lnp.eye(n - 2, n - 1, dtype=first.dtype), (*batch, n - 2, n - 1))
    return lnp.concatenate([first[..., None, :], below], axis=-2)


def fiedler(a: ArrayLike) -> Value:
    """The symmetric matrices of the distances |aᵢ - aⱼ| of numbers `a` [..., n]."""
    numbers = _vectors("fiedler", a)
    return lnp.abs(numbers[..., :, None] - numbers[..., None, :])


def fiedler_companion(a: ArrayLike) -> Value:
    """Matrices of five diagonals whose characteristic polynomials have the coefficients `a` [..., n], highest first.

    Raises ShapeError for fewer than three coefficients.
    """
    coefficients = _vectors("fiedler_companion", a)
    n = coefficients.shape[-1] - 1
    if n < 2:
        raise shape_error(f"fiedler_companion takes three coefficients or more, got {coefficients.type}")
    monic = coefficients / coefficients[..., :1]
    # Where a matrix has which of these: 0, 1, and the coefficients with the other sign.
    entries = lnp.concatenate([lnp.zeros_like(monic[..., :1]), lnp.ones_like(monic[..., :1]), -monic], axis=-1)
    zero, one, first = 0, 1, 2
    places = np.full((n, n), zero)
    places[0, :2], places[1, 0] = (first + 1, first + 2), one
    for row in range(2, n, 2):
        places[row, row - 1] = first + row + 1
        if row + 1 < n:
            places[row, row + 1] = first + row + 2
    for row in range(n - 2):
        places[(row, row + 2) if row % 2 == 0 else (row + 2, row)] = one
    return lnp.take(entries, places, axis=-1)


def leslie(f: ArrayLike, s: ArrayLike) -> Value:
    """The matrix of a population by age: births `f` [n] in its first row, survival `s` [n - 1] below the diagonal.

    Raises ShapeError if the lengths do not fit.
    """
    births, survival = _vector("leslie", f), lnp.ravel(as_value(s))
    n = births.shape[0]
    if survival.shape != (n - 1,):
        raise shape_error(f"leslie: births [n] need n - 1 rates of survival, got {births.type} and {survival.type}")
    dtype = lnp.result_type(births, survival)
    below = lnp.pad(lnp.diag(lnp.astype(survival, dtype)), ((0, 0), (0, 1)))
    return lnp.concatenate([lnp.astype(births, dtype)[None, :], below], axis=0)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Value:
    """The matrix whose product with v [n] is `convolve(a, v, mode)`, for `a` [m].

    Raises ValueError for another mode, or an `n` that is not positive.
    """
    kernel = _vector("convolution_matrix", a)
    m = kernel.shape[0]
    if n <= 0 or mode not in ("full", "same", "valid"):
        raise ValueError(f"convolution_matrix: n is positive and mode 'full', 'same' or 'valid', got {n} and {mode!r}")
    whole = toeplitz(lnp.pad(kernel, (0, n - 1)), lnp.zeros(n, dtype=kernel.dtype))
    long, short = max(m, n), min(m, n)
    cuts = {"full": (0, m + n - 1), "same": ((short - 1) // 2, long), "valid": (short - 1, long - short + 1)}
    start, count = cuts[mode]
    return whole[start : start + count]


def hadamard(n: int, dtype: Any = int) -> Value:
    """The matrix of ±1 with orthogonal rows, of a size `n` that is a power of two (Sylvester).

    Raises ValueError else.
    """
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n must be a power of two, got {n}")
    numbers = np.arange(n)
    bits = numbers[:, None] & numbers[None, :]
    odd = np.array([[bin(both).count("1") % 2 for both in row] for row in bits])
    return lnp.asarray(np.where(odd, -1, 1), dtype=dtype)


def helmert(n: int, full: bool = False) -> Value:
    """Orthonormal rows of contrasts, [n - 1, n]; with `full`, [n, n] with the row of equal weights in front."""
    rows = np.arange(1, n)
    below = np.tril(np.ones((n - 1, n))) - np.eye(n - 1, n, 1) * rows[:, None]
    contrasts = below / np.sqrt(rows * (rows + 1.0))[:, None]
    return lnp.asarray(np.vstack([np.full((1, n), 1 / math.sqrt(n)), contrasts]) if full else contrasts)


def hilbert(n: int) -> Value:
    """The matrix [n, n] of 1 / (i + j + 1)."""
    numbers = np.arange(n)
    return lnp.asarray(1.0 / (numbers[:, None] + numbers[None, :] + 1))


def invhilbert(n: int) -> Value:
    """The inverse of `hilbert(n)`, from binomial coefficients; floats, exact up to their precision."""

    def entry(i: int, j: int) -> int:
        signed = (-1 if (i + j) % 2 else 1) * (i + j + 1)
        return signed * math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2

    return lnp.asarray(np.array([[float(entry(i, j)) for j in range(n)] for i in range(n)]).reshape(n, n))


_KINDS = ("symmetric", "lower", "upper")


def _pascal(name: str, n: int, kind: str | None) -> tuple[np.ndarray, str]:
    chosen = kind or "symmetric"
    if chosen not in _KINDS:
        raise ValueError(f"{name}: kind must be one of {', '.join(_KINDS)}, got {kind!r}")
    lower = np.array([[float(math.comb(i, j)) for j in range(n)] for i in range(n)]).reshape(n, n)
    return lower, chosen


def pascal(n: int, kind: str | None = None) -> Value:
    """Pascal's triangle in a matrix [n, n] of floats: "symmetric" (the default), "lower" or "upper".

    Raises ValueError for another kind.
    """
    lower, chosen = _pascal("pascal", n, kind)
    return lnp.asarray({"lower": lower, "upper": lower.T, "symmetric": lower @ lower.T}[chosen])


def invpascal(n: int, kind: str | None = None) -> Value:
    """The inverse of `pascal(n, kind)`. Raises ValueError for another kind."""
    lower, chosen = _pascal("invpascal", n, kind)
    numbers = np.arange(n)
    inverse = lower * np.where((numbers[:, None] + numbers[None, :]) % 2, -1.0, 1.0)
    return lnp.asarray({"lower": inverse, "upper": inverse.T, "symmetric": inverse.T @ inverse}[chosen])


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Value:
    """The matrix [n, n] of the discrete Fourier transform, exp(-2πi·jk/n).

    It is divided by the root of n with the `scale` "sqrtn", by n with "n". Raises ValueError for another scale or a
    negative n, DtypeError for a `dtype` that is not complex.
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}")
    if n < 0:
        raise ValueError(f"dft: n must not be negative, got {n}")
    held = np.dtype(dtype or default_complex().numpy)
    if held.kind != "c":
        raise dtype_error(f"dft: dtype must be complex64 or complex128, got {held}")
    numbers = np.arange(n)
    turns = np.outer(numbers, numbers) % max(n, 1)  # whole turns would cost digits
    divisor = {None: 1.0, "sqrtn": math.sqrt(n), "n": n}[scale] or 1.0
    return lnp.asarray((np.exp(-2j * np.pi / max(n, 1) * turns) / divisor).astype(held))
