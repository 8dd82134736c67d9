"""Fourier transforms and complex numbers, as in jax.lax."""
from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.lax.operands import FLOATS, accepted, of_one_dtype, of_one_shape
from lavax.numpy._core.broadcasting import broadcast_arrays
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy._core.shape_arguments import as_shape
from lavax.tracer import bind
from lavax.tracer.values.value import Value


class FftType(enum.IntEnum):
    """Which transform `fft` computes: forward or inverse, of complex numbers or between real ones and spectra."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_TRANSFORMS = {
    FftType.FFT: lnp.fft.fftn,
    FftType.IFFT: lnp.fft.ifftn,
    FftType.RFFT: lnp.fft.rfftn,
    FftType.IRFFT: lnp.fft.irfftn,
}


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Value:
    """The transform along the last axes, as many as `fft_lengths` has; `fft_type` may be its name.

    The lengths are those of the axes, and for IRFFT that of the real result; without lengths complex transforms are of
    nothing. Raises ShapeError if they are others, ValueError for another type.
    """
    value, lengths = as_value(x), as_shape(fft_lengths, "lax.fft: a length")
    names = {kind.name: kind for kind in FftType}
    if isinstance(fft_type, str) and fft_type.upper() not in names:
        raise ValueError(f"lax.fft: fft_type is one of {', '.join(names)}, got {fft_type!r}")
    kind = names[fft_type.upper()] if isinstance(fft_type, str) else FftType(fft_type)
    if not lengths and kind in (FftType.FFT, FftType.IFFT):
        return lnp.fft.fftn(value, axes=())
    needed = (*lengths[:-1], lengths[-1] // 2 + 1) if kind is FftType.IRFFT and lengths else lengths
    if not lengths or len(lengths) > value.ndim or value.shape[-len(lengths) :] != needed:
        raise shape_error(f"lax.fft: {kind.name} of {value.type} does not have the lengths {lengths}")
    return _TRANSFORMS[kind](value, lengths, range(-len(lengths), 0))


def complex(x: ArrayLike, y: ArrayLike) -> Value:
    """x + iy, elementwise, of floats of one dtype, 32 or 64 bits."""
    parts: Any = of_one_shape("complex", accepted("complex", FLOATS, *of_one_dtype("complex", x, y)))
    return bind("complex", *broadcast_arrays(*parts))
