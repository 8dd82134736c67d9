"""The whole spectrum of real numbers along several axes, of half of it: a copy, and conjugates."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.ops.lowered.fourier import check_dtype, of_size
from lavax.ir.types import TensorType


def _infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,), axis, length, opposite = operands, attrs["axis"], attrs["length"], attrs["opposite"]
    check_dtype("whole_spectrum", x)
    if x.rank < 2 or x.shape[-1] != 2 or not 0 <= axis < x.rank - 1 or x.shape[axis] != length // 2 + 1:
        raise ShapeError(f"whole_spectrum: {x} has no {length // 2 + 1} complex numbers along axis {axis}")
    if any(not 0 <= other < x.rank - 1 or other == axis for other in opposite):
        raise ShapeError(f"whole_spectrum: {x} has no other axes {tuple(opposite)}")
    return of_size("whole_spectrum", declared, x, x.size // x.shape[axis] * length)


def _evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    axis, length = attrs["axis"], attrs["length"]
    half = np.moveaxis(arrays[0], axis, 0)
    mirrored = half[1 : (length + 1) // 2][::-1]
    for other in attrs["opposite"]:
        place = other if other > axis else other + 1
        mirrored = np.roll(np.flip(mirrored, place), 1, place)
    conjugates = mirrored * np.array([1, -1], dtype=dtype)
    return np.moveaxis(np.concatenate([half, conjugates]), 0, axis).astype(dtype).reshape(type.shape)


# [..., n/2 + 1, ..., 2] -> [..., n, ..., 2], in whatever shape is declared: half the spectrum along an axis, of
# `length` n, and then the conjugates of the numbers at n − k along it, at the opposite frequencies along the `opposite`
# axes.
define(Operation("whole_spectrum", "lowered", _infer, _evaluate, ("axis", "length", "opposite"), typed=True))
