"""Steps of Fourier transforms of real lines whose neighbours in memory are neighbouring lines, on numbers whose parts
lie side by side.

A line of n·m real points is transformed along n, whose frequencies beyond half are conjugates and left out, and then
as complex numbers along m. The last step gives half the spectrum. The inverse takes the same way back. `behind` lines
lie next to each other in each array.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.lowered.fourier import check_dtype, of_size
from lavax.ir.types import TensorType


def _infer_from_reals(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_across_from_reals", x)
    if x.rank != 4:
        raise ShapeError(f"fourier_across_from_reals: {x} is no [lines,points,rest,behind]")
    lines, points, rest, behind = x.shape
    return of_size("fourier_across_from_reals", declared, x, 2 * lines * rest * (points // 2 + 1) * behind)


def _infer_to_half(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_across_to_half", x)
    columns = attrs["columns"]
    if x.rank != 6 or x.shape[-1] != 2 or columns < 1 or x.shape[3] != columns // 2 + 1:
        raise ShapeError(
            f"fourier_across_to_half: {x} is no [lines,points,rest,half of {columns} columns,behind,2]"
        )
    lines, points, rest, _, behind, _ = x.shape
    return of_size("fourier_across_to_half", declared, x, 2 * lines * (points * rest * columns // 2 + 1) * behind)


def _infer_from_half(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_across_from_half", x)
    length, columns, rest = attrs["length"], attrs["columns"], attrs["rest"]
    if x.rank != 4 or x.shape[-1] != 2 or x.shape[1] != length // 2 + 1:
        raise ShapeError(f"fourier_across_from_half: {x} is no [lines,half of {length},behind,2]")
    if columns < 1 or rest < 1 or length % (columns * rest):
        raise ShapeError(f"fourier_across_from_half: {x} has no lines of {columns} columns and {rest} places")
    lines, _, behind, _ = x.shape
    size = 2 * lines * length // columns * (columns // 2 + 1) * behind
    return of_size("fourier_across_from_half", declared, x, size)


def _infer_to_reals(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_across_to_reals", x)
    columns = attrs["columns"]
    if x.rank != 5 or x.shape[-1] != 2 or columns < 1 or x.shape[2] != columns // 2 + 1:
        raise ShapeError(f"fourier_across_to_reals: {x} is no [lines,rest,half of {columns} columns,behind,2]")
    lines, rest, _, behind, _ = x.shape
    return of_size("fourier_across_to_reals", declared, x, lines * rest * columns * behind)


def _evaluate_from_reals(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    _, points, rest, _ = arrays[0].shape
    places = np.outer(np.arange(points // 2 + 1), np.arange(rest))
    found = np.fft.rfft(arrays[0], axis=1) * np.exp(-2j * np.pi * places / (points * rest))[:, :, None]
    return _by_parts(np.swapaxes(found, 1, 2), type, dtype)


def _evaluate_to_half(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    z = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    lines, points, rest, held, behind = z.shape
    columns, other = attrs["columns"], points * rest
    z = np.fft.fft(z, axis=1).reshape(lines, other, held, behind)
    row, column = np.divmod(np.arange(other * columns // 2 + 1), columns)
    is_held = column < held
    found = z[:, np.where(is_held, row, other - 1 - row), np.where(is_held, column, columns - column)]
    found = np.where(is_held[:, None], found, found.conj())
    ends = [0, -1] if other * columns % 2 == 0 else [0]
    found[:, ends] = found[:, ends].real
    return _by_parts(found, type, dtype)


def _evaluate_from_half(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    s = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    length, columns, rest = attrs["length"], attrs["columns"], attrs["rest"]
    ends = [0, -1] if length % 2 == 0 else [0]
    s[:, ends] = s[:, ends].real
    lines, _, behind = s.shape
    points = length // (rest * columns)
    mirrored = s[:, 1 : (length + 1) // 2][:, ::-1].conj()
    whole = np.concatenate([s, mirrored], 1).reshape(lines, points, rest, columns, behind)[:, :, :, : columns // 2 + 1]
    places = np.outer(np.arange(points), np.arange(rest))
    roots = np.exp(2j * np.pi * places / (points * rest))[:, :, None, None]
    return _by_parts(np.swapaxes(np.fft.ifft(whole, axis=1, norm="forward") * roots, 1, 2), type, dtype)


def _evaluate_to_reals(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    z = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    columns, rest = attrs["columns"], z.shape[1]
    places = np.outer(np.arange(rest), np.arange(z.shape[2]))
    z = z * np.exp(2j * np.pi * places / (columns * rest))[:, :, None]
    found = np.fft.irfft(z, columns, axis=2, norm="forward")
    return np.swapaxes(found, 1, 2).astype(dtype).reshape(type.shape)


def _by_parts(z: np.ndarray, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.stack([z.real, z.imag], -1).astype(dtype).reshape(type.shape)


# f[b, n, m, c] -> [b, m, n/2 + 1, c, 2]: the frequencies up to half of the transform along n, turned as by
# `fourier_step`. With m = 1 that is half the spectrum.
define(Operation("fourier_across_from_reals", "lowered", _infer_from_reals, _evaluate_from_reals, typed=True))
# [b, n, m, l/2 + 1, c, 2] -> [b, n·m·l/2 + 1, c, 2] for l `columns`: transforms along n. Column j of the frequency k at
# place p is the frequency j + l·(p + m·k) of the whole line, or if that lies beyond half the line, the conjugate of the
# opposite one. The imaginary parts of the frequency 0, and of the last one of an even length, are zeros.
define(Operation("fourier_across_to_half", "lowered", _infer_to_half, _evaluate_to_half, ("columns",), typed=True))
# The inverse, for a line of `length` n·m·l: [b, length/2 + 1, c, 2] -> [b, m, n, l/2 + 1, c, 2] for m = `rest` and l
# `columns`: what `fourier_step` in reverse makes of the columns of the whole spectrum up to half. The imaginary parts
# of the first number, and for an even length of the last one, are ignored.
_HALF = ("length", "columns", "rest")
define(Operation("fourier_across_from_half", "lowered", _infer_from_half, _evaluate_from_half, _HALF, typed=True))
# [b, m, n/2 + 1, c, 2] -> f[b, n, m, c] for n `columns`: turned as there, and the sum over all n frequencies, of which
# k and n − k are conjugates. The imaginary part of the frequency 0 is ignored, and for an even n that of n/2.
define(Operation("fourier_across_to_reals", "lowered", _infer_to_reals, _evaluate_to_reals, ("columns",), typed=True))
