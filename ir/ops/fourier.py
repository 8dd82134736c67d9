"""Discrete Fourier transforms along one axis, and the roots of unity that they are made of."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lavax.base.errors import DtypeError, ShapeError
from lavax.ir.operation import Attributes, Operation, define
from lavax.ir.types import TensorType, complex_of, float32, float64, int32

LONGEST_LINE = 1 << 28  # positions times 8 are counted in 32 bits


def _infer_fft(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    axis = attrs["axis"]
    if not operand.dtype.is_complex:
        raise DtypeError(f"fft is not defined for {operand} (complex dtypes only)")
    if not 0 <= axis < operand.rank:
        raise ShapeError(f"fft: axis {axis} is not an axis of {operand}")
    if not 0 < operand.shape[axis] <= LONGEST_LINE:
        raise ShapeError(f"fft: lines have 1 to {LONGEST_LINE} elements, not those of {operand} along axis {axis}")
    return operand


def _infer_rfft(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    if operand.dtype not in (float32, float64):
        raise DtypeError(f"rfft is not defined for {operand} (f32 and f64 only)")
    if not operand.rank or not 0 < operand.shape[-1] <= LONGEST_LINE:
        raise ShapeError(f"rfft: the last axis has 1 to {LONGEST_LINE} elements, not that of {operand}")
    return operand.with_shape((*operand.shape[:-1], operand.shape[-1] // 2 + 1)).with_dtype(complex_of(operand.dtype))


def _infer_irfft(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (operand,) = operands
    length = attrs["length"]
    if not operand.dtype.is_complex:
        raise DtypeError(f"irfft is not defined for {operand} (complex dtypes only)")
    if not 0 < length <= LONGEST_LINE or not operand.rank or operand.shape[-1] != length // 2 + 1:
        raise ShapeError(f"irfft: {length} real numbers have a spectrum of {length // 2 + 1}, which {operand} is not")
    return operand.with_shape((*operand.shape[:-1], length)).with_dtype(operand.dtype.part)


def _infer_unit_root(operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None) -> TensorType:
    (position,) = operands
    if position.dtype != int32:
        raise DtypeError(f"unit_root: positions are i32, got {position}")
    if declared is None or not declared.dtype.is_complex or declared.shape != position.shape:
        raise DtypeError(f"unit_root: {position} gives complex numbers of its shape, not {declared}")
    if not 0 < attrs["length"] <= 2 * LONGEST_LINE:
        raise ShapeError(f"unit_root: length must be from 1 to {2 * LONGEST_LINE}, got {attrs['length']}")
    return declared


def _infer_trigonometric_4(
    operands: Sequence[TensorType], attrs: Attributes, declared: TensorType | None
) -> TensorType:
    (operand,) = operands
    axis = attrs["axis"]
    if operand.dtype not in (float32, float64):
        raise DtypeError(f"trigonometric_4 is not defined for {operand} (f32 and f64 only)")
    if not 0 <= axis < operand.rank:
        raise ShapeError(f"trigonometric_4: axis {axis} is not an axis of {operand}")
    length = operand.shape[axis]
    if length % 2 or not 0 < length <= LONGEST_LINE:
        raise ShapeError(
            f"trigonometric_4: lines have an even number of elements from 2 to {LONGEST_LINE}, not those of "
            f"{operand} along axis {axis}"
        )
    return operand


def _evaluate_fft(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    transform, norm = (np.fft.ifft, "forward") if attrs["reverse"] else (np.fft.fft, "backward")
    return np.asarray(transform(arrays[0], axis=attrs["axis"], norm=norm)).astype(dtype)  # type: ignore[arg-type]


def _evaluate_rfft(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.asarray(np.fft.rfft(arrays[0])).astype(dtype)


def _evaluate_irfft(arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype) -> np.ndarray:
    return np.asarray(np.fft.irfft(arrays[0], attrs["length"], norm="forward")).astype(dtype)


def _evaluate_trigonometric_4(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    x = np.moveaxis(arrays[0], attrs["axis"], -1)
    return np.moveaxis(lines_of_type_4(x, attrs["sines"]), -1, attrs["axis"]).astype(dtype)


def lines_of_type_4(x: np.ndarray, sines: bool) -> np.ndarray:
    """The transform of type 4 of lines of an even number of elements along the last axis."""
    length = x.shape[-1]
    x = x[..., ::-1] if sines else x
    places = np.arange(length // 2)
    z = (x[..., ::2] + 1j * x[..., ::-1][..., ::2]) * np.exp(-0.25j * np.pi * (4 * places + 1) / length)
    z = 2 * np.fft.fft(z) * np.exp(-1j * np.pi * places / length)
    found = np.empty(x.shape)
    found[..., ::2], found[..., 1::2] = z.real, (z.imag if sines else -z.imag)[..., ::-1]
    return found


def _evaluate_unit_root(
    arrays: Sequence[np.ndarray], attrs: Attributes, type: TensorType, dtype: np.dtype
) -> np.ndarray:
    return np.asarray(np.exp(2j * np.pi * arrays[0] / attrs["length"]), dtype)


# Σ x[j]·exp(−2πi·jk/n) for every k along `axis`, or with `reverse` exp(+2πi·jk/n); neither is divided by n.
define(Operation("fft", "routine", _infer_fft, _evaluate_fft, ("axis", "reverse"), defaults={"reverse": False}))
# The first half of the spectra of real lines along the last axis: f[…, n] -> c[…, n/2 + 1].
define(Operation("rfft", "routine", _infer_rfft, _evaluate_rfft))
# Its inverse times n: c[…, n/2 + 1] -> f[…, n] for n = `length`. Parts that no real line's spectrum has are ignored.
define(Operation("irfft", "routine", _infer_irfft, _evaluate_irfft, ("length",)))
# 2·Σ x[j]·cos(π(2j + 1)(2k + 1)/4n) for every k along `axis`, of even length n, or with `sines` sines of the same.
define(
    Operation(
        "trigonometric_4",
        "routine",
        _infer_trigonometric_4,
        _evaluate_trigonometric_4,
        ("axis", "sines"),
        defaults={"sines": False},
    )
)
# exp(2πi·p/length) for positions p from 0 to length − 1.
define(Operation("unit_root", "elementwise", _infer_unit_root, _evaluate_unit_root, ("length",), typed=True))
