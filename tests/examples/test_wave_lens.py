"""The wave simulation: a plane wave keeps its speed, gradients are right, the lens gathers."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from examples import wave_lens


def test_speeds_lie_between_a_half_and_one() -> None:
    design = wave_lens.initial_design(seed=0)
    speed = np.asarray(wave_lens.wave_speed(design * 100))
    assert speed.shape == (wave_lens.HEIGHT, wave_lens.WIDTH)
    assert (speed.min(), speed.max()) == (0.5, 1)
    assert (np.delete(speed, np.r_[wave_lens.LENS], axis=1) == 1).all()


def test_the_laplacian_of_a_wave() -> None:
    rows, columns = np.meshgrid(np.arange(8), np.arange(12), indexing="ij")
    wave = np.sin(2 * np.pi * rows / 8) * np.cos(2 * np.pi * columns / 12)
    factor = 2 * np.cos(2 * np.pi / 8) + 2 * np.cos(2 * np.pi / 12) - 4
    np.testing.assert_allclose(wave_lens.laplacian(wave.astype("f")), factor * wave, atol=1e-5)


def test_the_gradient_goes_back_through_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wave_lens, "TIME_STEPS", 60)
    design = wave_lens.initial_design(seed=0)
    weights = np.random.default_rng(1).normal(size=(wave_lens.HEIGHT, wave_lens.WIDTH)).astype("f")

    def loss(design: np.ndarray) -> lx.Array:
        return lnp.sum(weights * wave_lens.energy(design, 20))

    gradient = np.asarray(lx.compile(lx.grad(loss))(design))
    direction = np.random.default_rng(2).normal(size=design.shape).astype("f")
    value = lx.compile(loss)
    slope = (float(value(design + 0.01 * direction)) - float(value(design - 0.01 * direction))) / 0.02
    size = np.linalg.norm(gradient) * np.linalg.norm(direction)
    assert abs(slope - np.sum(gradient * direction)) < 2e-3 * size


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(wave_lens, "TIME_STEPS", 240)
    options = ["--steps", "3", "--out", str(tmp_path / "made")]
    monkeypatch.setattr(sys, "argv", ["wave_lens.py", *options])
    wave_lens.main()
    printed = capsys.readouterr().out
    in_scans, in_one = map(float, re.findall(r"time steps in scans of \d+: (\S+) MiB", printed))
    assert in_scans < in_one / 4
    assert float(re.search(r"focus: (\S+) times", printed)[1]) > 1.1
    assert (tmp_path / "made" / "wave_lens.png").read_bytes().startswith(b"\x89PNG")
