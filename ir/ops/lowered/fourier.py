"""Steps of Fourier transforms, on complex numbers whose parts lie side by side."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType, float32


def _infer(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (x,) = operands
    if x.dtype != float32:
        raise DtypeError(f"fourier_step is not defined for {x} (f32 only)")
    if x.rank != 5 or x.shape[-1] != 2:
        raise ShapeError(f"fourier_step: {x} is no f32[lines,points,rest,behind,2]")
    if declared is None or declared.dtype != float32 or declared.size != x.size:
        raise ShapeError(f"fourier_step: {x} gives as many numbers, not {declared}")
    return declared


def _evaluate(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    x = arrays[0][..., 0] + 1j * arrays[0][..., 1]
    _, points, rest, _ = x.shape
    transform, norm = (np.fft.ifft, "forward") if attrs["reverse"] else (np.fft.fft, "backward")
    places = np.outer(np.arange(points), np.arange(rest))
    roots = np.exp((2j if attrs["reverse"] else -2j) * np.pi * places / (points * rest))
    found = np.swapaxes(transform(x, axis=1, norm=norm) * roots[:, :, None], 1, 2)  # type: ignore[arg-type]
    return np.stack([found.real, found.imag], -1).astype(dtype).reshape(type.shape)


# f32[b, n, m, c, 2] -> f32[b, m, n, c, 2], in whatever shape is declared: transforms along n, times exp(∓2πi·km/(n·m))
# for frequency k at place m. A transform of n·m points is this step and then one along m, of the result as
# [b, m, 1, n·c, 2]. With `reverse` the sign of all exponents is +.
define(Operation("fourier_step", "lowered", _infer, _evaluate, ("reverse",), typed=True))
