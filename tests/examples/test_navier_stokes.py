"""The flow solver: vortices that decay exactly, products by hand, what no flow loses, gradients through time."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from examples import navier_stokes

GRID = np.meshgrid(*2 * [np.arange(32) * 2 * np.pi / 32], indexing="ij")


def test_taylor_green_vortices_decay_as_they_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """They move nothing of their own, so viscosity alone acts: by exp(-(2² + 2²) viscosity t), whatever the step is."""
    monkeypatch.setattr(navier_stokes, "VISCOSITY", 0.05)
    y, x = GRID
    vortices = (np.sin(2 * x) * np.cos(2 * y)).astype("f")
    found = np.asarray(navier_stokes.simulate(vortices, 20, 10))
    times = navier_stokes.INTERVAL * np.array([10, 20])
    np.testing.assert_allclose(found, np.exp(-0.4 * times)[:, None, None] * vortices, atol=2e-6)


@pytest.mark.usefixtures("reference_backend")
def test_waves_beside_vortices_change_as_by_hand() -> None:
    """ω = cos x + cos 2y has ψ = cos x + ¼ cos 2y and u = (−½ sin 2y, sin x), so −u·∇ω is 3/2 sin x sin 2y."""
    y, x = GRID
    coefficients = lnp.fft.rfft2((np.cos(x) + np.cos(2 * y)).astype("f"))
    found = np.asarray(lnp.fft.irfft2(navier_stokes.change(coefficients)))
    np.testing.assert_allclose(found, 1.5 * np.sin(x) * np.sin(2 * y), atol=1e-5)


@pytest.mark.usefixtures("reference_backend")
def test_without_viscosity_energy_and_enstrophy_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aliases would break both. The time step's own error is of the fifth order, and below the tolerance."""
    monkeypatch.setattr(navier_stokes, "VISCOSITY", 0.0)
    noise = np.random.default_rng(0).normal(size=(32, 32)).astype("f")
    ky, kx = navier_stokes.wave_numbers(32)
    squares = np.where(kx**2 + ky**2 == 0, 1, kx**2 + ky**2)
    both = np.where((kx == 0) | (kx == 16), 1, 2)
    first = np.fft.rfft2(np.asarray(navier_stokes.coloured(noise)))
    first *= (np.abs(kx) < 32 / 3) & (np.abs(ky) < 32 / 3)
    last = np.fft.rfft2(np.asarray(navier_stokes.simulate(np.fft.irfft2(first).astype("f"), 20, 10))[-1])
    assert np.abs(last - first).max() > 0.2 * np.abs(first).max(), "nothing moved"
    for weights in (both, both / squares):
        np.testing.assert_allclose(np.sum(weights * np.abs(last) ** 2), np.sum(weights * np.abs(first) ** 2), rtol=1e-4)


@pytest.mark.usefixtures("reference_backend")
def test_beginnings_have_the_spectrum_that_is_told() -> None:
    noise = np.random.default_rng(1).normal(size=(20, 64, 64)).astype("f")
    fields = np.asarray(lx.vmap(navier_stokes.coloured)(noise))
    np.testing.assert_allclose(fields.std(), 1, rtol=0.05)
    np.testing.assert_allclose(fields.mean(axis=(1, 2)), 0, atol=1e-6)


@pytest.mark.usefixtures("reference_backend")
def test_the_gradient_goes_back_through_time() -> None:
    draw = np.random.default_rng(2).normal
    noise, direction = (draw(size=(32, 32)).astype("f") for _ in range(2))
    measurements = draw(size=(1, 8, 8)).astype("f")

    def loss(noise: np.ndarray) -> lx.Array:
        return navier_stokes.improbability(noise, measurements, 20)

    gradient = np.asarray(lx.compile(lx.grad(loss))(noise))
    value = lx.compile(loss)
    slope = (float(value(noise + 0.01 * direction)) - float(value(noise - 0.01 * direction))) / 0.02
    assert abs(slope - np.sum(gradient * direction)) < 2e-3 * np.linalg.norm(gradient) * np.linalg.norm(direction)


@pytest.mark.usefixtures("reference_backend")
def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(navier_stokes, "POINTS", 32)
    options = ["--iterations", "4", "--steps", "10", "--out", str(tmp_path / "made")]
    monkeypatch.setattr(sys, "argv", ["navier_stokes.py", *options])
    navier_stokes.main()
    printed = capsys.readouterr().out
    before, after = map(float, re.search(r"improbability: (\S+) without measurements, (\S+) at", printed).groups())
    assert after < before / 4
    assert float(re.search(r"error of the beginning: (\S+)", printed)[1]) < 0.9
    assert (tmp_path / "made" / "navier_stokes.png").read_bytes().startswith(b"\x89PNG")
