"""Mel features against their formulas in float64."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.models.whisper.audio import log_mel_spectrogram

pytestmark = pytest.mark.usefixtures("reference_backend")

SOUND = np.random.default_rng(0).normal(size=(2, 1600)).astype("f")
RATE = 8000.0


def mel_of(sound: np.ndarray, filters: np.ndarray, width: int, step: int, points: int, power: float) -> np.ndarray:
    padded = np.pad(sound.astype(float), [(0, 0), (points // 2,) * 2], mode="reflect")
    starts = range(0, padded.shape[-1] - width + 1, step)
    segments = np.stack([padded[:, start : start + width] for start in starts], axis=1)
    spectrum = np.abs(np.fft.rfft(segments * scipy.signal.get_window("hann", width), points))
    return np.swapaxes(spectrum**power @ filters.astype(float), 1, 2)


@pytest.mark.parametrize("scale", ["slaney", "htk"])
@pytest.mark.parametrize("norm", ["slaney", None])
def test_filters(scale: str, norm: Any) -> None:
    found = nn.mel_filters(12, 129, RATE, 50.0, 3500.0, scale, norm)
    assert found.shape == (129, 12) and found.dtype == np.float32 and found.min() == 0
    mel = {
        "htk": lambda f: 2595 * np.log10(1 + f / 700),
        "slaney": lambda f: np.where(f < 1000, 3 * f / 200, 15 + 27 * np.log(np.maximum(f, 1) / 1000) / np.log(6.4)),
    }[scale]
    peaks = np.argmax(found, axis=0) * RATE / 256
    even = np.linspace(mel(np.array(50.0)), mel(np.array(3500.0)), 14)[1:-1]
    steps = mel(peaks + RATE / 256) - mel(np.maximum(peaks - RATE / 256, 0))
    assert (np.abs(mel(peaks) - even) <= steps).all()
    if norm:
        np.testing.assert_allclose(found[:, 6:].sum(0) * RATE / 256, 1, rtol=0.05)  # of area 1
    else:
        assert found.max() <= 1


@pytest.mark.parametrize(("points", "power"), [(None, 2.0), (512, 1.0)])
def test_spectrograms(points: int | None, power: float) -> None:
    found = nn.mel_spectrogram(SOUND, RATE, bands=20, width=256, step=64, points=points, power=power)
    filters = nn.mel_filters(20, (points or 256) // 2 + 1, RATE)
    want = mel_of(SOUND, filters, 256, 64, points or 256, power)
    assert found.shape == want.shape
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-4, atol=1e-6 * want.max())


def test_coefficients() -> None:
    found = nn.mfcc(SOUND, RATE, coefficients=13, bands=24, width=256, step=128)
    mel = mel_of(SOUND, nn.mel_filters(24, 129, RATE), 256, 128, 256, 2.0)
    want = scipy.fft.dct(10 * np.log10(np.maximum(mel, 1e-10)), axis=1, norm="ortho")[:, :13]
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-4, atol=1e-3)


def test_whispers_features_are_made_of_them() -> None:
    sound = np.random.default_rng(1).normal(size=3200).astype("f")
    mel = nn.mel_spectrogram(sound, 16000)[:, :-1]
    decades = np.log10(np.maximum(np.asarray(mel), 1e-10))
    want = (np.maximum(decades, decades.max() - 8) + 4) / 4
    np.testing.assert_allclose(np.asarray(log_mel_spectrogram(sound)), want, atol=1e-4)


def test_gradients_in_the_middle_of_a_graph() -> None:
    sound = SOUND[0, :400]
    weights = np.random.default_rng(2).normal(size=(6, 13)).astype("f")

    def loss(x: Any) -> Any:
        return 0.3 * lnp.sum(weights * nn.mfcc(lnp.tanh(x), RATE, coefficients=6, bands=10, width=64, step=32))

    gradient = np.asarray(lx.grad(loss)(sound))
    direction = np.random.default_rng(3).normal(size=400).astype("f")
    _, tangent = lx.jvp(loss, (sound,), (direction,))
    high, low = (float(loss(sound + sign * 1e-3 * direction)) for sign in (1, -1))
    size = np.linalg.norm(gradient) * np.linalg.norm(direction)
    np.testing.assert_allclose(np.sum(gradient * direction), float(tangent), atol=1e-5 * size)
    np.testing.assert_allclose(np.sum(gradient * direction), (high - low) / 2e-3, atol=3e-3 * size)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.mel_filters(0, 9, RATE), "bands must be at least 1 and frequencies 2, got 0 and 9"),
        (lambda: nn.mel_filters(4, 9, RATE, 100.0, 50.0), "0 <= lowest < highest <= 4000 must hold"),
        (lambda: nn.mel_filters(4, 9, RATE, scale="bark"), "scale must be one of slaney, htk"),
        (lambda: nn.mel_filters(4, 9, RATE, norm="area"), "norm must be 'slaney' or None"),
        (lambda: nn.mel_spectrogram(SOUND, RATE, width=64, step=0), "must hold, got 0, 64 and 64"),
        (lambda: nn.mfcc(SOUND, RATE, coefficients=30, bands=20), "from 1 to the 20 bands, got 30"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
