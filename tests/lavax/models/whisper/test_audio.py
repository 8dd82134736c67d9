"""Spectrograms against transformers, and by NumPy's Fourier transform."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
from lavax import nn
from lavax.models.whisper.audio import SAMPLE_RATE, log_mel_spectrogram
from tests.lavax.models.seeded import assert_close

pytestmark = pytest.mark.usefixtures("reference_backend")


def sound(seconds: float = 0.3) -> np.ndarray:
    """Two tones that fade, noise, and silence."""
    time = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    tones = np.sin(2 * np.pi * 440 * time) + 0.3 * np.sin(2 * np.pi * 3100 * time)
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(time))
    return np.where(time < 0.8 * seconds, tones * np.exp(-3 * time) + noise, 0).astype(np.float32)


def by_numpy(samples: np.ndarray, mel_bins: int) -> np.ndarray:
    mirrored = np.pad(samples.astype(np.float64), 200, mode="reflect")
    frames = np.stack([mirrored[160 * t : 160 * t + 400] for t in range(len(samples) // 160)])
    power = np.abs(np.fft.rfft(frames * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)))) ** 2
    decades = np.log10(np.maximum(power @ nn.mel_filters(mel_bins, 201, SAMPLE_RATE), 1e-10))
    return (np.maximum(decades, decades.max() - 8).T + 4) / 4


@pytest.mark.parametrize("mel_bins", [80, 128])
def test_spectrograms_are_those_of_a_fourier_transform(mel_bins: int) -> None:
    assert_close(log_mel_spectrogram(sound(), mel_bins), by_numpy(sound(), mel_bins), 1e-4)


def test_each_recording_of_a_batch_has_its_own_greatest() -> None:
    both = np.stack([sound(), 0.01 * sound()])
    made = log_mel_spectrogram(both)
    for row, each in zip(made, both, strict=True):
        assert_close(row, by_numpy(each, 80), 1e-4)


@pytest.mark.parametrize("mel_bins", [80, 128])
def test_spectrograms_are_those_of_transformers(mel_bins: int) -> None:
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    extractor = transformers.WhisperFeatureExtractor(feature_size=mel_bins, chunk_length=1)
    assert_close(nn.mel_filters(mel_bins, 201, SAMPLE_RATE), extractor.mel_filters, 1e-6)
    padded = np.concatenate([sound(), np.zeros(SAMPLE_RATE - len(sound()), np.float32)])
    wanted = extractor(sound(), sampling_rate=SAMPLE_RATE, return_tensors="np").input_features[0]
    assert_close(log_mel_spectrogram(padded, mel_bins), wanted, 1e-4)


def test_recorded_filters() -> None:
    """Of transformers 5.23.0: filters 0, 30 and 79 of 80 have these sums."""
    sums = nn.mel_filters(80, 201, SAMPLE_RATE).sum(axis=0)
    assert sums[[0, 30, 79]] == pytest.approx([0.02486259, 0.02481881, 0.02492534], rel=1e-5)


@pytest.mark.parametrize("samples", [np.zeros(161), np.zeros(160), np.float32(0)])
def test_bad_lengths_are_named(samples: np.ndarray) -> None:
    with pytest.raises(lx.ShapeError, match=r"samples \[..., L\], L a multiple of 160 above 200"):
        log_mel_spectrogram(samples)
