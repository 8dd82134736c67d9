"""Sound as ears hear it: power in bands of the mel scale, its logarithm, and the cosine transform of that.

Scales: "slaney" is linear up to 1,000 Hz and logarithmic above (M. Slaney, "Auditory Toolbox", 1998); "htk" is
2595 log10(1 + f / 700) (S. Young et al., "The HTK Book"). Coefficients: S. Davis and P. Mermelstein, "Comparison of
Parametric Representations for Monosyllabic Word Recognition" (1980).
"""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.nn.sound.segments import cut_segments
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

_LINEAR = 200 / 3  # Hz a mel, up to 1,000 Hz, which are 15 mel
_OCTAVES = math.log(6.4) / 27  # logarithm of the frequency a mel, above


def _slaney(hertz: Any) -> Any:
    return np.where(hertz < 1000, hertz / _LINEAR, 15 + np.log(np.maximum(hertz, 1e-9) / 1000) / _OCTAVES)


def _from_slaney(mel: Any) -> Any:
    return np.where(mel < 15, mel * _LINEAR, 1000 * np.exp(_OCTAVES * (mel - 15)))


# To mel and back.
_SCALES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "slaney": (_slaney, _from_slaney),
    "htk": (lambda hertz: 2595 * np.log10(1 + hertz / 700), lambda mel: 700 * (10 ** (mel / 2595) - 1)),
}


@lru_cache
def mel_filters(
    bands: int,
    frequencies: int,
    sample_rate: float,
    lowest: float = 0.0,
    highest: float | None = None,
    scale: str = "slaney",
    norm: str | None = "slaney",
) -> np.ndarray:
    """Triangles that overlap by half on the mel scale, float32 [frequencies, bands].

    Row k is the frequency k · sample_rate / (2 · (frequencies - 1)), as `rfft` has them. The triangles go from `lowest`
    to `highest` Hz, by default half of `sample_rate`. `scale`: "slaney" or "htk"; `norm` "slaney": of equal area, None:
    of height 1. Raises ValueError for counts below 1 or 2, frequencies out of order, and other names.
    """
    end = sample_rate / 2 if highest is None else highest
    if bands < 1 or frequencies < 2:
        raise ValueError(f"mel_filters: bands must be at least 1 and frequencies 2, got {bands} and {frequencies}")
    if not 0 <= lowest < end <= sample_rate / 2:
        raise ValueError(f"mel_filters: 0 <= lowest < highest <= {sample_rate / 2:g} must hold, got {lowest} and {end}")
    if scale not in _SCALES:
        raise ValueError(f"mel_filters: scale must be one of {', '.join(_SCALES)}, got {scale!r}")
    if norm not in ("slaney", None):
        raise ValueError(f"mel_filters: norm must be 'slaney' or None, got {norm!r}")
    to_mel, to_hertz = _SCALES[scale]
    corners = to_hertz(np.linspace(to_mel(lowest), to_mel(end), bands + 2))
    rows = np.linspace(0, sample_rate / 2, frequencies)[:, None]
    left, middle, right = corners[:-2], corners[1:-1], corners[2:]
    rising, falling = (rows - left) / (middle - left), (right - rows) / (right - middle)
    heights = 2 / (right - left) if norm else 1.0
    return np.asarray(np.maximum(0, np.minimum(rising, falling)) * heights, np.float32)


def mel_spectrogram(
    samples: ArrayLike,
    sample_rate: float,
    *,
    bands: int = 80,
    window: ArrayLike | None = None,
    width: int = 400,
    step: int = 160,
    points: int | None = None,
    power: float = 2.0,
    center: bool = True,
    lowest: float = 0.0,
    highest: float | None = None,
    scale: str = "slaney",
    norm: str | None = "slaney",
) -> Value:
    """Power in bands of the mel scale: [..., L] to [..., bands, segments], float32.

    Segments of `width` samples begin every `step`; with `center` the sound is mirrored at both ends, so that segment t
    is around sample step · t. They are tapered by `window`, [width], by default Hann's, and transformed to `points`
    points, by default `width`. Absolute values are taken to `power`. Other arguments as of `mel_filters`. Raises
    ShapeError for sounds too short for a segment or to be mirrored and for a window of another length, ValueError for
    numbers that do not fit each other.
    """
    count = width if points is None else points
    if not 1 <= step <= width <= count:
        raise ValueError(f"mel_spectrogram: 1 <= step <= width <= points must hold, got {step}, {width} and {count}")
    line, margin = cast(as_value(samples), float32), count // 2 if center else 0
    if not line.ndim or line.shape[-1] <= margin or line.shape[-1] + 2 * margin < width:
        raise shape_error(f"mel_spectrogram: samples [..., L], L more than {max(margin, width - 1)}, got {line.type}")
    taper = lnp.asarray(_hann(width) if window is None else window)
    if taper.shape != (width,):
        raise shape_error(f"mel_spectrogram: window must have the shape [{width}], got {taper.type}")
    mirrored = lnp.pad(line, [*[(0, 0)] * (line.ndim - 1), (margin, margin)], mode="reflect")
    spectrum = lnp.fft.rfft(cut_segments(mirrored, width, step) * taper, count)
    squares = lnp.real(spectrum) ** 2 + lnp.imag(spectrum) ** 2
    powers = squares if power == 2.0 else squares ** (power / 2)
    filters = mel_filters(bands, count // 2 + 1, sample_rate, lowest, highest, scale, norm)
    return lnp.matrix_transpose(lnp.matmul(powers, lnp.asarray(filters)))


def _hann(width: int) -> np.ndarray:
    return np.asarray(0.5 - 0.5 * np.cos(2 * np.pi / width * np.arange(width)), np.float32)


def mfcc(
    samples: ArrayLike, sample_rate: float, *, coefficients: int = 20, floor: float = 1e-10, **bands: Any
) -> Value:
    """Mel-frequency cepstral coefficients: [..., L] to [..., coefficients, segments].

    The orthonormal cosine transform of the decibels 10 log10 of `mel_spectrogram`, which takes the other arguments, and
    of which no band counts as less than `floor`. Raises ValueError for more coefficients than bands.
    """
    mel = mel_spectrogram(samples, sample_rate, **bands)
    count = mel.shape[-2]
    if not 1 <= coefficients <= count:
        raise ValueError(f"mfcc: coefficients must be from 1 to the {count} bands, got {coefficients}")
    decibels = 10.0 * lnp.log10(lnp.maximum(mel, floor))
    return lnp.matmul(lnp.asarray(_cosines(coefficients, count)), decibels)


@lru_cache
def _cosines(coefficients: int, bands: int) -> np.ndarray:
    """The first rows of the orthonormal cosine transform of the second kind."""
    angles = np.pi / bands * np.multiply.outer(np.arange(coefficients), np.arange(bands) + 0.5)
    heights = np.full((coefficients, 1), math.sqrt(2 / bands))
    heights[0] = math.sqrt(1 / bands)
    return np.asarray(heights * np.cos(angles), np.float32)
