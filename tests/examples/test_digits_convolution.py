"""The convolution network on digits: it learns, and what it learns from is moved by at most a pixel."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from examples import digits_convolution


def test_images_are_moved_by_at_most_a_pixel() -> None:
    image = np.arange(1, 65, dtype=np.float32).reshape(1, 1, 8, 8)
    seen = {
        image_of[0].tobytes()
        for image_of in digits_convolution.moved(np.repeat(image, 200, axis=0), np.random.default_rng(0))
    }
    padded = np.pad(image[0, 0], 1)
    assert seen == {padded[i : i + 8, j : j + 8].tobytes() for i in range(3) for j in range(3)}


def test_the_parts_share_no_image() -> None:
    (training, _), (test, labels) = digits_convolution.training_and_test_images(seed=3)
    assert (len(training), test.shape, len(labels)) == (1438, (359, 1, 8, 8), 359)
    assert len(np.unique(np.concatenate([training, test]).reshape(1797, -1), axis=0)) == 1797


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["digits_convolution.py", "--quick", "--out", str(tmp_path / "made")])
    digits_convolution.main()
    accuracy = float(re.search(r"accuracy: ([0-9.]+) %", capsys.readouterr().out)[1])
    assert accuracy > 93, "a linear model reaches 96 % after many more epochs, on images that are not moved"
    assert (tmp_path / "made" / "digits_convolution.png").read_bytes().startswith(b"\x89PNG")
