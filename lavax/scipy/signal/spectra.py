"""Spectra of segments of signals: how power spreads over frequencies, and how that changes.

Welch's method: P. D. Welch, "The Use of Fast Fourier Transform for the Estimation of Power Spectra" (1967). Arguments,
defaults and scales are SciPy's. Frequencies are in units of `fs`, times in units of 1 / fs.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import complex128, float64
from lavax.nn.sound.segments import cut_segments
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.scipy.signal.arguments import require, require_rate, warn
from lavax.scipy.signal.detrending import detrend as without_trend
from lavax.scipy.signal.windows import Window, named_window
from lavax.tracer.values.value import Value

Detrend = str | Callable[[Any], Any] | bool
SCALINGS = ("density", "spectrum")
_AVERAGES = ("mean", "median")


@dataclass(frozen=True)
class Segments:
    """How a signal of `length` elements is cut: `width` elements every `step`, transforms of `points`."""

    window: Value
    width: int
    step: int
    points: int

    @property
    def overlap(self) -> int:
        return self.width - self.step


def segments_of(
    name: str,
    window: Any,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    length: int | None,
    dtype: str,
) -> Segments:
    """The segments of a signal of that length, None if it is not known yet; a named window has that dtype.

    Warns if `nperseg` is more than the length, which is taken then.

    Raises ValueError for numbers that do not fit each other.
    """
    is_named = isinstance(window, (str, tuple, int, float))
    points = None if is_named else lnp.asarray(window)
    if points is not None and (points.ndim != 1 or (length is not None and points.size > length)):
        raise shape_error(f"scipy.signal.{name}: window must have one axis, no longer than the signal: {points.type}")
    if points is not None and nperseg not in (None, points.size):
        raise ValueError(f"scipy.signal.{name}: nperseg {nperseg} is not the length of the window, {points.size}")
    width = points.size if points is not None else 256 if nperseg is None else int(nperseg)
    if width < 1:
        raise ValueError(f"scipy.signal.{name}: nperseg must be at least 1, got {nperseg}")
    if length is not None and width > length:
        if nperseg is not None:
            warn(name, f"nperseg {width} is more than the {length} elements of the signal, which are taken")
        width = length
    overlap = width // 2 if noverlap is None else int(noverlap)
    if not 0 <= overlap < width:
        bounds = f"at least 0 and less than nperseg {width}"
        raise ValueError(f"scipy.signal.{name}: noverlap must be {bounds}, got {overlap}")
    transformed = width if nfft is None else int(nfft)
    if transformed < width:
        raise ValueError(f"scipy.signal.{name}: nfft must be at least nperseg {width}, got {nfft}")
    taper = lnp.asarray(named_window(window, width), dtype) if points is None else points
    return Segments(taper, width, width - overlap, transformed)


def scale_dtype(value: Value) -> str:
    """The dtype of the windows, frequencies and times of a signal: float64 where the signal has it."""
    return "float64" if value.type.dtype in (float64, complex128) else "float32"


def line_of(name: str, x: ArrayLike, axis: int) -> tuple[Value, int]:
    """The signal with `axis` last, and which that was."""
    value = as_value(x)
    if not value.type.dtype.is_inexact:
        value = lnp.astype(value, float)
    if not value.ndim or not value.size:
        raise shape_error(f"scipy.signal.{name} takes signals with elements, got {value.type}")
    place = normal_axis(f"scipy.signal.{name}", axis, value.type)
    return lnp.moveaxis(value, place, -1), place


def has_one_side(name: str, signal: Value) -> bool:
    """Whether one side of the frequencies tells the other, which it does of real signals; a warning for others."""
    if signal.type.dtype.is_complex:
        warn(name, "the signal is complex, so it has frequencies of both signs; return_onesided=False says so")
    return not signal.type.dtype.is_complex


def density_scale(window: Value, fs: float, scaling: str) -> Value:
    """What squares of transforms are multiplied by: to a density, or to a power per frequency."""
    total = lnp.sum(window * window) * fs if scaling == "density" else lnp.sum(window) ** 2
    return 1.0 / total


def transforms(x: Value, cut: Segments, detrend: Detrend, onesided: bool) -> Value:
    """[..., length] -> [..., segments, frequencies]."""
    parts = cut_segments(x, cut.width, cut.step)
    if callable(detrend):
        parts = detrend(parts)
    elif detrend:
        parts = without_trend(parts, type="constant" if detrend is True else detrend)
    parts = parts * cut.window
    return lnp.fft.rfft(parts, cut.points) if onesided else lnp.fft.fft(parts, cut.points)


def frequencies(points: int, fs: float, onesided: bool, dtype: str) -> Value:
    found = np.fft.rfftfreq(points, 1 / fs) if onesided else np.fft.fftfreq(points, 1 / fs)
    return lnp.asarray(found, dtype)


def _powers(x: Value, y: Value, cut: Segments, fs: float, detrend: Detrend, onesided: bool, scaling: str) -> Value:
    """conj(X) · Y of each segment, [..., segments, frequencies]; one side has the power of both."""
    first = transforms(x, cut, detrend, onesided)
    if y is x:
        found = lnp.real(first) ** 2 + lnp.imag(first) ** 2
    else:
        found = lnp.conj(first) * transforms(y, cut, detrend, onesided)
    found = found * density_scale(cut.window, fs, scaling)
    if not onesided:
        return found
    count = cut.points // 2 + 1
    twice = np.full(count, 2.0, np.float32)
    twice[0] = 1.0
    if cut.points % 2 == 0:
        twice[-1] = 1.0  # the highest frequency is its own mirror
    return found * twice


def _median_bias(count: int) -> float:
    """The median of `count` squares of normal numbers over their mean (SciPy's `_median_bias`)."""
    pairs = 2.0 * np.arange(1, (count - 1) // 2 + 1)
    return float(1 + np.sum(1 / (pairs + 1) - 1 / pairs))


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: float = 1.0,
    window: Window | ArrayLike = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Value, Value]:
    """The frequencies, and the cross power spectral density of two signals by Welch's method.

    Segments of `nperseg` elements (256, or the whole signal if that is shorter) that overlap in `noverlap` (half) are
    freed of their trend, tapered, transformed to `nfft` points and averaged. `scaling` "density": power per unit of
    frequency; "spectrum": power. Real signals have one side of frequencies, unless not `return_onesided`. The shorter
    signal is continued with zeros. Raises ShapeError for signals that do not broadcast or have no elements, ValueError
    for lengths that do not fit each other and other names.
    """
    require("csd", "scaling", scaling, SCALINGS)
    require("csd", "average", average, _AVERAGES)
    require_rate("csd", fs)
    first, place = line_of("csd", x, axis)
    second = first
    if y is not None and y is not x:
        other, _ = line_of("csd", y, axis)
        first, second = common_dtype([first, other])
        longest = max(first.shape[-1], second.shape[-1])
        first, second = (_continued(each, longest) for each in (first, second))
    cut = segments_of("csd", window, nperseg, noverlap, nfft, first.shape[-1], scale_dtype(first))
    onesided = return_onesided and has_one_side("csd", first)
    found = _powers(first, second, cut, fs, detrend, onesided, scaling)
    if average == "median":
        bias = _median_bias(found.shape[-2])
        middles = [lnp.median(part, axis=-2) for part in _parts(found)]
        averaged = (middles[0] if len(middles) == 1 else middles[0] + 1j * middles[1]) / bias
    else:
        averaged = lnp.mean(found, axis=-2)
    return frequencies(cut.points, fs, onesided, scale_dtype(first)), lnp.moveaxis(averaged, -1, place)


def _parts(value: Value) -> list[Value]:
    return [lnp.real(value), lnp.imag(value)] if value.type.dtype.is_complex else [value]


def _continued(x: Value, length: int) -> Value:
    missing = length - x.shape[-1]
    return lnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) if missing else x


def welch(
    x: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Value, Value]:
    """The frequencies, and the power spectral density of a signal; arguments and errors as of `csd`."""
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


def periodogram(
    x: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike | None = "boxcar",
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Value, Value]:
    """`welch` of one segment, the whole signal; of its first `nfft` elements if those are fewer."""
    line, place = line_of("periodogram", x, axis)
    length = line.shape[-1] if nfft is None else min(line.shape[-1], nfft)
    whole = lnp.moveaxis(line[..., :length], -1, place)
    taper = "boxcar" if window is None else window
    return welch(whole, fs, taper, length, 0, nfft, detrend, return_onesided, scaling, axis)


_MODES = ("psd", "complex", "magnitude", "angle", "phase")


def spectrogram(
    x: ArrayLike,
    fs: float = 1.0,
    window: Window | ArrayLike = ("tukey", 0.25),
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    mode: str = "psd",
) -> tuple[Value, Value, Value]:
    """The frequencies, the times of the segments' middles, and the spectrum of each segment, times last.

    `mode` "psd": the power; "complex": the transform; "magnitude", "angle" and "phase" (unwrapped along frequencies)
    of it. Segments overlap in an eighth by default. Other arguments and errors as of `csd`.
    """
    require("spectrogram", "mode", mode, _MODES)
    require("spectrogram", "scaling", scaling, SCALINGS)
    require_rate("spectrogram", fs)
    line, place = line_of("spectrogram", x, axis)
    length, dtype = line.shape[-1], scale_dtype(line)
    cut = segments_of("spectrogram", window, nperseg, 0, nfft, length, dtype)
    overlap = cut.width // 8 if noverlap is None else noverlap
    cut = segments_of("spectrogram", window, nperseg, overlap, nfft, length, dtype)
    onesided = return_onesided and has_one_side("spectrogram", line)
    if mode == "psd":
        found = _powers(line, line, cut, fs, detrend, onesided, scaling)
    else:
        found = transforms(line, cut, detrend, onesided) * lnp.sqrt(density_scale(cut.window, fs, scaling))
        found = _OF_TRANSFORM[mode](found)
    middles = (cut.width / 2 + cut.step * np.arange(found.shape[-2])) / fs
    shown = lnp.moveaxis(lnp.swapaxes(found, -1, -2), -2, place)
    return frequencies(cut.points, fs, onesided, dtype), lnp.asarray(middles, dtype), shown


_OF_TRANSFORM: dict[str, Callable[[Value], Value]] = {
    "complex": lambda found: found,
    "magnitude": lnp.abs,
    "angle": lnp.angle,
    "phase": lambda found: lnp.unwrap(lnp.angle(found), axis=-1),
}
