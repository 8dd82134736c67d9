"""Log-mel spectrograms of sound, as Whisper was trained on them."""
from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.nn.sound.mel import mel_filters
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

SAMPLE_RATE = 16000  # samples a second
HOP = 160  # samples from one column of a spectrogram to the next
WINDOW = 400  # samples that a column is made of
_FREQUENCIES = WINDOW // 2 + 1
_SHARED = math.gcd(HOP, WINDOW)  # frames are made of whole blocks of so many samples


def log_mel_spectrogram(samples: ArrayLike, mel_bins: int = 80) -> Value:
    """The spectrogram of sound at 16,000 samples a second: [..., L] to float32 [..., mel_bins, L // 160].

    Column t has the power around sample 160·t, under a Hann window of 400 samples, in bands of the mel scale; at both
    ends the sound is mirrored. Its logarithm to the base 10 is cut off 8 below the greatest of a recording, and scaled
    by (x + 4) / 4 (Radford et al. 2022, section 2.2). Raises ShapeError if L is no multiple of 160 above 200.
    """
    given = cast(as_value(samples), float32)
    if not given.ndim or given.shape[-1] % HOP or given.shape[-1] <= WINDOW // 2:
        raise shape_error(f"log_mel_spectrogram: samples [..., L], L a multiple of {HOP} above 200, got {given.type}")
    power = _power(_frames(given))
    mel = lnp.matmul(power, lnp.asarray(mel_filters(mel_bins, _FREQUENCIES, SAMPLE_RATE)))
    decades = lnp.log10(lnp.maximum(mel, 1e-10))
    loud = lnp.max(decades, axis=(-2, -1), keepdims=True)
    return lnp.matrix_transpose((lnp.maximum(decades, loud - 8.0) + 4.0) / 4.0)


def _frames(samples: Value) -> Value:
    """Overlapping windows, [..., L // HOP, WINDOW], around every HOP-th sample: slices of blocks side by side."""
    count, margin = samples.shape[-1] // HOP, WINDOW // 2
    padding = [(0, 0)] * (samples.ndim - 1) + [(margin, margin)]
    mirrored = lnp.pad(samples, padding, mode="reflect")
    blocks = lnp.reshape(mirrored, (*samples.shape[:-1], -1, _SHARED))
    step = HOP // _SHARED
    parts = [blocks[..., first : first + step * count : step, :][..., :count, :] for first in range(WINDOW // _SHARED)]
    return lnp.concatenate(parts, axis=-1)


def _power(frames: Value) -> Value:
    """Squared absolute values of the discrete Fourier transform: [..., WINDOW] to [..., _FREQUENCIES]."""
    both = lnp.matmul(frames, lnp.asarray(_fourier()))
    real, imaginary = both[..., :_FREQUENCIES], both[..., _FREQUENCIES:]
    return real * real + imaginary * imaginary


@lru_cache
def _fourier() -> np.ndarray:
    """Cosines and sines under a Hann window, [WINDOW, 2·_FREQUENCIES]. There are no complex numbers here."""
    time = np.arange(WINDOW)
    angles = 2 * np.pi / WINDOW * (time[:, None] * np.arange(_FREQUENCIES) % WINDOW)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi / WINDOW * time)
    waves = np.concatenate([np.cos(angles), -np.sin(angles)], axis=1)
    return np.asarray(hann[:, None] * waves, np.float32)
