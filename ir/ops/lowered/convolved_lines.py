"""Steps of convolutions of lines with a spectrum that is known, on complex numbers whose parts lie side by side.

A line is multiplied by a table, padded with zeros to n·m·… numbers, and transformed in steps. The last step of the
transform and the first one of its inverse, which read the same numbers, are one; the last step of the inverse keeps the
first numbers of a line, times another table.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.lowered.fourier import check_dtype, of_size
from lavax.ir.types import TensorType


def _check(name: str, x: TensorType, table: TensorType, rank: int, parts: Sequence[int]) -> None:
    check_dtype(name, x)
    if x.rank != rank or x.shape[-1] not in parts:
        raise ShapeError(f"{name}: {x} is no array of rank {rank} with {' or '.join(map(str, parts))} parts")
    if table.dtype != x.dtype or table.rank != 2 or table.shape[1] != 2:
        raise ShapeError(f"{name}: {table} is no table [numbers,2] for {x}")


def _infer_padded(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, table = operands
    _check("fourier_padded", x, table, 3, (1, 2))
    (lines, length, _), points, rest = x.shape, attrs["points"], attrs["rest"]
    rows = table.shape[0]
    if rows < length or rows > points * rest or rows % rest:
        raise ShapeError(f"fourier_padded: a table of {rows} for lines of {length} in {points} rows of {rest}")
    return of_size("fourier_padded", declared, x, 2 * lines * points * rest)


def _infer_filtered(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, table = operands
    _check("fourier_filtered", x, table, 4, (2,))
    _, points, rest, _ = x.shape
    if table.shape[0] != points * rest:
        raise ShapeError(f"fourier_filtered: a table of {table.shape[0]} for {points} rows of {rest}")
    return of_size("fourier_filtered", declared, x, x.size)


def _infer_cut(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    x, table = operands
    _check("fourier_cut", x, table, 4, (2,))
    lines, points, rest, _ = x.shape
    rows, length = table.shape[0], attrs["length"]
    if rows < length or rows > points * rest or rows % rest:
        raise ShapeError(f"fourier_cut: a table of {rows} for {length} of {points} rows of {rest}")
    return of_size("fourier_cut", declared, x, lines * length * (1 if attrs["real"] else 2))


def _complex(array: np.ndarray) -> np.ndarray:
    return np.asarray(array[..., 0] + 1j * (array[..., 1] if array.shape[-1] == 2 else 0))


def _parts(z: np.ndarray, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.asarray(np.stack([z.real, z.imag], -1).astype(dtype).reshape(type.shape))


def _roots(points: int, rest: int, sign: int) -> np.ndarray:
    places = np.outer(np.arange(points), np.arange(rest))
    return np.asarray(np.exp(sign * 2j * np.pi * places / (points * rest)))


def _evaluate_padded(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    x, table = map(_complex, arrays)
    (lines, length), points, rest = x.shape, attrs["points"], attrs["rest"]
    whole = np.zeros((lines, points * rest), x.dtype)
    whole[:, :length] = x * table[:length]
    found = np.fft.fft(whole.reshape(lines, points, rest), axis=1) * _roots(points, rest, -1)
    return _parts(np.swapaxes(found, 1, 2), type, dtype)


def _evaluate_filtered(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    x, table = map(_complex, arrays)
    _, points, rest = x.shape
    product = np.fft.fft(x, axis=1) * table.reshape(points, rest)
    found = np.fft.ifft(product, axis=1, norm="forward") * _roots(points, rest, 1)
    return _parts(np.swapaxes(found, 1, 2), type, dtype)


def _evaluate_cut(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    x, table = map(_complex, arrays)
    found = np.fft.ifft(x, axis=1, norm="forward").reshape(len(x), -1)[:, : attrs["length"]]
    found = found * table[: attrs["length"]]
    return found.real.astype(dtype).reshape(type.shape) if attrs["real"] else _parts(found, type, dtype)


# [b, l, 1 or 2], [k, 2] -> [b, m, n, 2]: real or complex lines times the table's first numbers, padded to n·m for n =
# `points` and m = `rest`, as `fourier_step` transforms [b, n, m, 1, 2]. The table has zeros behind l, up to a multiple
# of m.
define(Operation("fourier_padded", "lowered", _infer_padded, _evaluate_padded, ("points", "rest"), typed=True))
# [b, n, m, 2], [n·m, 2] -> [b, m, n, 2]: transforms along n, without roots, times the table, and what `fourier_step` in
# reverse does of [b, n, m, 1, 2].
define(Operation("fourier_filtered", "lowered", _infer_filtered, _evaluate_filtered, typed=True))
# [b, n, m, 2], [k, 2] -> [b, l, 2]: in reverse along n, of which the first l = `length` numbers are left, times the
# table's; its length is a multiple of m. If they are `real`, only the real parts are left: [b, l].
define(Operation("fourier_cut", "lowered", _infer_cut, _evaluate_cut, ("length", "real"), typed=True))
