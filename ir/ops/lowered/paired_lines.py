"""Steps at both ends of cosine and sine transforms of type 4 of even length, on numbers whose parts lie side by side.

A line x of n = 2h real numbers is taken as h complex ones, x[2j] + i·x[n − 1 − 2j], which are multiplied by roots,
transformed, and multiplied by roots again; the result has the parts of each at the places 2k and n − 1 − 2k. `behind`
lines lie next to each other in each array. For sines x is turned round, and those at odd places are negated after.
"""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.fourier import lines_of_type_4
from lavax.ir.ops.lowered.beside import BESIDE, check_beside, put_beside
from lavax.ir.ops.lowered.fourier import check_dtype, of_size
from lavax.ir.types import TensorType


def _infer_paired(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_paired", x)
    if x.rank != 3 or x.shape[1] % 2 or x.shape[1] == 0:
        raise ShapeError(f"fourier_paired: {x} is no [lines,2·half,behind]")
    check_beside("fourier_paired", attrs, x.shape[0])
    if attrs["beside"] > 1 and x.shape[2] > 1:
        raise ShapeError(f"fourier_paired: lines along memory are put beside each other, not those of {x}")
    return of_size("fourier_paired", declared, x, x.size)


def _infer_from_paired(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_from_paired", x)
    if x.rank != 3 or x.shape[1] % 2 or attrs["points"] < 1 or x.shape[1] // 2 % attrs["points"]:
        raise ShapeError(f"fourier_from_paired: {x} is no [lines,2·{attrs['points']}·rest,behind]")
    return of_size("fourier_from_paired", declared, x, x.size)


def _infer_to_paired(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    check_dtype("fourier_to_paired", x)
    if x.rank != 5 or x.shape[-1] != 2:
        raise ShapeError(f"fourier_to_paired: {x} is no [lines,points,columns,behind,2]")
    return of_size("fourier_to_paired", declared, x, x.size)


def _evaluate_paired(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    lines = np.moveaxis(arrays[0], 1, -1)
    return np.moveaxis(lines_of_type_4(lines, attrs["sines"]), -1, 1).astype(dtype).reshape(type.shape)


def _evaluate_from_paired(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    (x,) = arrays
    lines, length, behind = x.shape
    points, half = attrs["points"], length // 2
    pair = x[:, ::2], x[:, ::-2]
    real, imaginary = reversed(pair) if attrs["sines"] else pair
    roots = np.exp(-0.25j * np.pi * (4 * np.arange(half) + 1) / length)
    z = ((real + 1j * imaginary) * roots[:, None]).reshape(lines, points, half // points, behind)
    places = np.outer(np.arange(points), np.arange(half // points))
    found = np.fft.fft(z, axis=1) * np.exp(-2j * np.pi * places / half)[:, :, None]
    found = np.swapaxes(found, 1, 2)
    return np.stack([found.real, found.imag], -1).astype(dtype).reshape(type.shape)


def _evaluate_to_paired(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    z = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    lines, points, columns, behind = z.shape
    half = points * columns
    roots = 2 * np.exp(-0.5j * np.pi * np.arange(half) / half)
    found = np.fft.fft(z, axis=1).reshape(lines, half, behind) * roots[:, None]
    whole = np.empty((lines, 2 * half, behind))
    whole[:, ::2], whole[:, ::-2] = found.real, found.imag if attrs["sines"] else -found.imag
    return whole.astype(dtype).reshape(type.shape)


# Transforms in one step: [b, 2h, c] -> [b, 2h, c]. With `beside` lines along memory (c = 1) lie beside each other in
# the result (beside.py).
_WHOLE, _WHOLE_BESIDE = ("sines", *BESIDE), put_beside(_evaluate_paired, 1)
define(Operation("fourier_paired", "lowered", _infer_paired, _WHOLE_BESIDE, _WHOLE, True, defaults=BESIDE))
# [b, 2n·m, c] -> [b, m, n, c, 2] for n `points`: the complex numbers of each line times exp(−πi·(4j + 1)/8nm), of which
# `fourier_step` makes this. With `sines` the parts of each are the other way round.
_FROM = ("points", "sines")
define(Operation("fourier_from_paired", "lowered", _infer_from_paired, _evaluate_from_paired, _FROM, typed=True))
# [b, n, m, c, 2] -> [b, 2n·m, c]: transforms along n, times 2·exp(−πi·k/2nm), real parts at 2k and negated imaginary
# ones at 2nm − 1 − 2k; with `sines` imaginary ones are there as they are.
define(Operation("fourier_to_paired", "lowered", _infer_to_paired, _evaluate_to_paired, ("sines",), typed=True))
