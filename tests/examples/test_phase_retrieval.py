"""Phase retrieval: the gradient by complex pixels is that of Wirtinger, turns do not count, and images are found."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import lavax as lx
from examples import phase_retrieval


def complex_normal(seed: int, *shape: int) -> np.ndarray:
    draw = np.random.default_rng(seed).normal
    return (draw(size=shape) + 1j * draw(size=shape)).astype("complex64")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Masks for images of 32 × 32 pixels."""
    monkeypatch.setattr(phase_retrieval, "SIDE", 32)
    return phase_retrieval.random_masks(np.random.default_rng(1))


def test_the_gradient_is_the_one_by_hand(small: np.ndarray) -> None:
    """Of mean (|w| − y)²: 2 / count times the inverse of the transform, applied to w − y w / |w|; and conjugated."""
    image = complex_normal(0, 32, 32)
    sizes = np.random.default_rng(2).uniform(size=small.shape).astype("f")
    waves = np.fft.fft2(small * image, norm="ortho")
    np.testing.assert_allclose(np.asarray(phase_retrieval.waves(image, small)), waves, atol=1e-5)
    uphill = np.sum(small.conj() * np.fft.ifft2(waves - sizes * waves / np.abs(waves), norm="ortho"), axis=0)
    found = np.asarray(lx.grad(phase_retrieval.misfit)(image, small, sizes))
    np.testing.assert_allclose(found, np.conj(uphill) * 2 / sizes.size, atol=1e-7)


def test_turns_of_all_pixels_do_not_count(small: np.ndarray) -> None:
    image = complex_normal(3, 32, 32)
    turn = np.complex64(np.exp(2j))
    np.testing.assert_allclose(phase_retrieval.turned(image * turn, image), image, atol=1e-5)
    assert phase_retrieval.relative_error(-image, image) < 1e-6
    sizes = np.abs(np.asarray(phase_retrieval.waves(image * turn, small)))
    assert phase_retrieval.misfit(image, small, sizes) < 1e-10


def test_photons_are_counted(small: np.ndarray) -> None:
    image = complex_normal(4, 32, 32)
    sizes = phase_retrieval.count_photons(image, small, np.random.default_rng(5))
    exact = np.abs(np.asarray(phase_retrieval.waves(image, small)))
    unit = phase_retrieval.PHOTONS / np.mean(exact**2)
    np.testing.assert_allclose(np.var((sizes - exact)[exact > 0.5 * exact.mean()]), 0.25 / unit, rtol=0.1)


def test_the_first_image_has_the_right_norm(small: np.ndarray) -> None:
    image = complex_normal(6, 32, 32)
    sizes = np.abs(np.asarray(phase_retrieval.waves(image, small)))
    first = np.asarray(phase_retrieval.first_image(lx.random.key(0), small, sizes))
    np.testing.assert_allclose(np.linalg.norm(first), np.linalg.norm(image), rtol=1e-4)
    assert phase_retrieval.relative_error(first, image) < 1.38, "no better than a random image, which is at √2"


def test_the_command_line(
    small: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(phase_retrieval, "PATTERNS", 10)
    monkeypatch.setattr(sys, "argv", ["phase_retrieval.py", "--steps", "200", "--out", str(tmp_path / "made")])
    phase_retrieval.main()
    printed = capsys.readouterr().out
    assert float(re.search(r"start, (\S+) at the end", printed)[1]) < 0.05
    assert (tmp_path / "made" / "phase_retrieval.png").read_bytes().startswith(b"\x89PNG")
