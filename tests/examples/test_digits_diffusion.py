"""The diffusion model on digits: what it makes is taken for what was asked for, and differs."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from examples import digits_diffusion


def test_variety_is_the_mean_distance_between_images_of_a_digit() -> None:
    images = np.zeros((30, 64))
    images[20:, 0] = 1
    assert digits_diffusion.variety(images, np.tile(np.arange(10), 3)) == pytest.approx(2 / 3)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--quick", "--epochs", "25", "--width", "96", "--blocks", "2", "--out", str(tmp_path / "made")]
    monkeypatch.setattr(sys, "argv", ["digits_diffusion.py", *options])
    digits_diffusion.main()
    printed = capsys.readouterr().out
    agreed, variety = (float(re.search(f"{text}: ([0-9.]+)", printed)[1]) for text in ("asked for", "real images"))
    assert agreed > 70, "10 by guessing"
    assert variety > 0.5
    assert (tmp_path / "made" / "digits_diffusion.png").read_bytes().startswith(b"\x89PNG")
