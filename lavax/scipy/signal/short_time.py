"""The Fourier transform of short, overlapping segments, and its inverse.

The inverse adds up the segments and divides by the windows' squares: D. W. Griffin and J. S. Lim, "Signal Estimation
from Modified Short-Time Fourier Transform" (1984).
"""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.nn.sound.segments import overlap_add
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.scipy.signal.arguments import require, require_rate
from lavax.scipy.signal.spectra import (
    Detrend,
    Segments,
    density_scale,
    frequencies,
    has_one_side,
    line_of,
    scale_dtype,
    segments_of,
    transforms,
)
from lavax.scipy.signal.windows import Window
from lavax.tracer.values.value import Value

_BOUNDARIES = ("even", "odd", "constant", "zeros")
_SCALINGS = {"spectrum": "spectrum", "psd": "density"}
_LEAST_SQUARES = 1e-10  # of windows that cover an element, below which it is not divided


def stft(
    x: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Value, Value, Value]:
    """The frequencies, the times of the segments' middles, and the transform of each segment, times last.

    `boundary`: how the signal is continued by half a segment on both sides, None: not at all. `padded`: zeros complete
    the last segment. `scaling` "spectrum": a sine's height is its amplitude; "psd": squares are densities. Other
    arguments as of `csd`. Raises ShapeError for signals without elements or too short to be mirrored, ValueError for
    lengths that do not fit each other and other names.
    """
    require("stft", "scaling", scaling, tuple(_SCALINGS))
    require_rate("stft", fs)
    line, place = line_of("stft", x, axis)
    dtype = scale_dtype(line)
    cut = segments_of("stft", window, nperseg, noverlap, nfft, line.shape[-1], dtype)
    if boundary is not None:
        require("stft", "boundary", boundary, _BOUNDARIES)
        line = _continued(line, cut.width // 2, boundary)
    if padded:
        missing = -(line.shape[-1] - cut.width) % cut.step % cut.width
        line = lnp.pad(line, [*[(0, 0)] * (line.ndim - 1), (0, missing)])
    onesided = return_onesided and has_one_side("stft", line)
    scale = lnp.sqrt(density_scale(cut.window, fs, _SCALINGS[scaling]))
    found = transforms(line, cut, detrend, onesided) * scale
    starts = cut.step * np.arange(found.shape[-2])
    middles = (starts + (0 if boundary is not None else cut.width / 2)) / fs
    shown = lnp.moveaxis(lnp.swapaxes(found, -1, -2), -2, place)
    return frequencies(cut.points, fs, onesided, dtype), lnp.asarray(middles, dtype), shown


def _continued(x: Value, count: int, boundary: str) -> Value:
    if count and boundary in ("even", "odd") and count >= x.shape[-1]:
        raise shape_error(f"scipy.signal.stft: {x.type} is too short to be mirrored over {count} elements")
    widths = [*[(0, 0)] * (x.ndim - 1), (count, count)]
    if boundary == "odd":
        return lnp.pad(x, widths, "reflect", reflect_type="odd")
    if boundary == "even":
        return lnp.pad(x, widths, "reflect")
    return lnp.pad(x, widths, "edge" if boundary == "constant" else "constant")


def istft(
    Zxx: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Value, Value]:
    """The times, and the signal whose `stft` is nearest to `Zxx`; arguments as there.

    `nperseg` and `nfft` follow from the number of frequencies by default. `boundary`: the signal was continued, and
    what was added is cut off. Raises ShapeError for fewer than two axes or if both axes are the same, ValueError for
    lengths that do not fit each other and other names.
    """
    require("istft", "scaling", scaling, tuple(_SCALINGS))
    require_rate("istft", fs)
    value = as_value(Zxx)
    if value.ndim < 2:
        raise shape_error(f"scipy.signal.istft takes arrays of two axes and more, got {value.type}")
    places = [normal_axis("scipy.signal.istft", axis, value.type) for axis in (time_axis, freq_axis)]
    if places[0] == places[1]:
        raise shape_error(f"scipy.signal.istft: time_axis and freq_axis must differ, got {time_axis} and {freq_axis}")
    spectra = lnp.moveaxis(value, places, (-2, -1))
    dtype = scale_dtype(value)
    cut = _segments_of_transform(spectra.shape[-1], window, nperseg, noverlap, nfft, input_onesided, dtype)
    if input_onesided:
        parts = lnp.fft.irfft(spectra, cut.points)
    else:
        parts = lnp.fft.ifft(spectra, cut.points)
    scale = lnp.sqrt(density_scale(cut.window, fs, _SCALINGS[scaling]))
    tapered = parts[..., : cut.width] * (cut.window / scale)
    total = overlap_add(tapered, cut.step)
    squares = overlap_add(lnp.broadcast_to(cut.window**2, tapered.shape[-2:]), cut.step)
    if boundary:
        inside = slice(cut.width // 2, total.shape[-1] - cut.width // 2)
        total, squares = total[..., inside], squares[inside]
    found = total / lnp.where(squares > _LEAST_SQUARES, squares, lnp.ones_like(squares))
    if value.ndim > 2 and places[0] != value.ndim - 1:
        place = places[0] - (places[1] < places[0])
        found = lnp.moveaxis(found, -1, place)
    times = np.arange(total.shape[-1]) / fs
    return lnp.asarray(times, dtype), found


def _segments_of_transform(
    count: int,
    window: Any,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    onesided: bool,
    dtype: str,
) -> Segments:
    whole = 2 * (count - 1) if onesided else count
    width = whole if nperseg is None else int(nperseg)
    if nfft is None and onesided and width == whole + 1:
        nfft = width  # an odd number of points has as many frequencies
    return segments_of("istft", window, width, noverlap, whole if nfft is None else nfft, None, dtype)
