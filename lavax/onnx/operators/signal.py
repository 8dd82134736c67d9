"""Fourier transforms, whose complex numbers are pairs along a last axis, and the weights of mel bands."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import lax
from lavax.onnx.operators.elementwise import unsupported_type
from lavax.onnx.operators.operator import Call, Operator, device_dtype
from lavax.onnx.reading.tensors import numpy_dtype


def _dft(call: Call, x: Any, length: Any = None, axis: Any = None) -> Any:
    if axis is not None:
        along = call.integers(axis, "axis")[0]
    elif call.axis is not None:
        along = call.axis
    else:
        along = 1 if call.node.version < 20 else -2
    along %= x.ndim
    is_inverse_real = bool(call.inverse and call.onesided)
    own = 2 * (x.shape[along] - 1) if is_inverse_real else x.shape[along]
    count = own if length is None else call.integers(length, "dft_length")[0]
    moved = lnp.moveaxis(x, along, -2)
    return lnp.moveaxis(transformed(moved, count, bool(call.inverse), bool(call.onesided)), -2, along)


def transformed(x: Any, count: int, inverse: bool, onesided: bool) -> Any:
    """The transform of `x` [.., time, 1 or 2] over `count` steps."""
    wide: Any = x.astype(lnp.promote_types(x.dtype, "float32"))
    numbers: Any = wide[..., 0] if x.shape[-1] == 1 else lax.complex(wide[..., 0], wide[..., 1])
    if inverse and onesided:
        return lnp.astype(lnp.expand_dims(lnp.fft.irfft(numbers, count), -1), x.dtype)
    found: Any
    if onesided:
        found = lnp.fft.rfft(numbers.real, count)
    else:
        found = (lnp.fft.ifft if inverse else lnp.fft.fft)(numbers, count)
    return lnp.astype(lnp.stack([found.real, found.imag], axis=-1), x.dtype)


def _stft(call: Call, signal: Any, step: Any, window: Any = None, length: Any = None) -> Any:
    hop = call.integers(step, "frame_step")[0]
    signal = signal if signal.ndim == 3 else lnp.expand_dims(signal, -1)  # real numbers may be of rank 2
    if length is not None:
        size = call.integers(length, "frame_length")[0]
    else:
        size = signal.shape[1] if window is None else window.shape[0]
    frames = (signal.shape[1] - size) // hop + 1
    places = np.arange(frames)[:, None] * hop + np.arange(size)
    cut = lnp.take(signal, places, axis=1)
    if window is not None:
        cut = cut * window.reshape(-1, 1)
    return transformed(cut, size, False, bool(call.onesided) and signal.shape[2] == 1)


def _mel_weights(call: Call, bands: Any, length: Any, rate: Any, low: Any, high: Any) -> Any:
    count, size, sampled = (int(number.reshape(())) for number in (bands, length, rate))
    ends = [2595 * np.log10(1 + float(edge.reshape(())) / 700) for edge in (low, high)]
    mel = np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2)) + ends[0]
    bins = ((size + 1) * (700 * (10 ** (mel / 2595) - 1)) // sampled).astype(int)
    at = np.arange(size // 2 + 1)[:, None]
    left, centre, right = bins[:-2], bins[1:-1], bins[2:]
    up = np.where(centre > left, (at - left) / np.maximum(centre - left, 1), at >= centre)
    down = (right - at) / np.maximum(right - centre, 1)
    weights = np.where((at >= left) & (at <= centre), up, 0.0)
    weights = np.where((at >= centre) & (at < right), down, weights)
    dtype = numpy_dtype(call.output_datatype)
    assert dtype is not None, "refused while loading"
    return weights.astype(device_dtype(dtype))


OPERATORS = (
    Operator("DFT", _dft, {"axis": None, "inverse": 0, "onesided": 0}, known=(1, 2)),
    Operator(
        "MelWeightMatrix", _mel_weights, {"output_datatype": 1}, known=(0, 1, 2, 3, 4), folds=True,
        refuse=lambda node: unsupported_type(node.attributes.get("output_datatype", 1)),
    ),
    Operator("STFT", _stft, {"onesided": 1}, known=(1, 3)),
)  # fmt: skip
