"""Discrete cosine transforms of type 2 and their inverses, as products with a matrix: n² operations per line."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import lavax.numpy as lnp
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.operands import ArrayLike, own
from lavax.tracer.values.value import Value

Axes = Sequence[int] | None


def _matrix(n: int, norm: str | None) -> np.ndarray:
    """[n, n]: row k has 2·cos(π·k·(2j + 1) / 2n); with "ortho" its rows are orthonormal."""
    rows, columns = np.arange(n)[:, None], np.arange(n)[None, :]
    matrix = 2 * np.cos(np.pi * rows * (2 * columns + 1) / (2 * n))
    if norm == "ortho":
        matrix = matrix * np.sqrt(np.where(rows == 0, 1 / (4 * n), 1 / (2 * n)))
    return np.asarray(matrix)


def _transformed(name: str, x: ArrayLike, kind: int, n: int | None, axis: int, norm: str | None, back: bool) -> Value:
    if kind != 2 or norm not in (None, "backward", "ortho"):
        raise ValueError(f"{name}: type must be 2, and norm None, 'backward' or 'ortho', got {kind} and {norm!r}")
    value = as_floating(x)
    (along,) = normal_axes(name, axis, value.type)
    extent = value.shape[along] if n is None else n
    moved = lnp.moveaxis(value, along, -1)[..., :extent]
    if moved.shape[-1] < extent:
        moved = lnp.pad(moved, [*[(0, 0)] * (moved.ndim - 1), (0, extent - moved.shape[-1])])
    matrix = _matrix(extent, norm)
    held = np.linalg.inv(matrix) if back else matrix
    return lnp.moveaxis(lnp.matmul(moved, lnp.asarray(held.T, dtype=value.dtype)), -1, along)


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """2·Σ x[j]·cos(π·k·(2j + 1) / 2n) along `axis`, cut or padded with zeros to `n`; orthonormal with `norm` "ortho".

    Raises ValueError for another type than 2, or another norm.
    """
    return _transformed("dct", x, type, n, axis, norm, False)


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Value:
    """The inverse of `dct`; arguments and errors as there."""
    return _transformed("idct", x, type, n, axis, norm, True)


def _along_all(name: str, x: ArrayLike, kind: int, s: Axes, axes: Axes, norm: str | None, back: bool) -> Value:
    value = as_floating(x)
    chosen = normal_axes(name, tuple(range(value.ndim)) if axes is None else tuple(axes), value.type)
    for number, axis in enumerate(chosen):
        value = _transformed(name, value, kind, None if s is None else s[number], axis, norm, back)
    return value if chosen else own(value)


def dctn(x: ArrayLike, type: int = 2, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Value:
    """`dct` along several axes, by default all, each cut or padded to its extent in `s`."""
    return _along_all("dctn", x, type, s, axes, norm, False)


def idctn(x: ArrayLike, type: int = 2, s: Axes = None, axes: Axes = None, norm: str | None = None) -> Value:
    """The inverse of `dctn`."""
    return _along_all("idctn", x, type, s, axes, norm, True)
