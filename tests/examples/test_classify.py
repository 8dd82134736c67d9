"""The classifier of images: what it sees of them, that it learns, and that its folder is read again."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from examples import classify


def test_the_middle_of_an_image_is_seen() -> None:
    pixels = np.zeros((10, 20, 3), np.uint8)
    pixels[:, 5:15] = (255, 0, 51)
    settings = {"size": {"shortest_edge": 10}, "crop_pct": 1.0, "image_mean": [0.5, 0, 0.1], "image_std": [0.5, 1, 0.1]}
    found = classify.seen(Image.fromarray(pixels), settings)
    assert found.shape == (1, 3, 10, 10)
    np.testing.assert_allclose(found, np.broadcast_to(np.reshape([1, 0, 1], (3, 1, 1)), found.shape), atol=1e-5)
    assert classify.seen(Image.fromarray(pixels), {**settings, "crop_pct": 0.5}).shape == (1, 3, 10, 10)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It learns digits, and tells one in a file."""
    pixels, labels = classify.digits(seed=1)
    Image.fromarray(pixels[3]).save(tmp_path / "digit.png")
    options = ["--image", str(tmp_path / "digit.png"), "--out", str(tmp_path / "made")]
    monkeypatch.setattr(sys, "argv", ["classify.py", "--quick", "--seed", "1", *options])
    classify.main()
    printed = capsys.readouterr().out
    assert float(re.search(r"accuracy on digits: ([0-9.]+) %", printed)[1]) > 80, "10 by guessing"
    assert re.search(r"%  (digit \d)", printed)[1] == f"digit {labels[3]}"
    assert (tmp_path / "made" / "classify.png").read_bytes().startswith(b"\x89PNG")
