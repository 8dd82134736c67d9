"""Burgers' equation: the exact solution solves it, residuals are right, and the method comes near to it."""
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from examples import burgers
from tests.closeness import close


def test_the_exact_solution_solves_the_equation() -> None:
    t, x = np.meshgrid([0.2, 0.5, 0.9], [-0.7, -0.3, 0.1, 0.5])
    h = 1e-4
    u = burgers.exact(t, x)
    u_t = (burgers.exact(t + h, x) - burgers.exact(t - h, x)) / (2 * h)
    left, right = burgers.exact(t, x - h), burgers.exact(t, x + h)
    residual = u_t + u * (right - left) / (2 * h) - burgers.VISCOSITY * (right - 2 * u + left) / h**2
    np.testing.assert_allclose(residual, 0, atol=1e-4)
    x = np.linspace(-1, 1, 9)
    np.testing.assert_allclose(burgers.exact(np.full(9, 1e-9), x), -np.sin(np.pi * x), atol=1e-6)
    np.testing.assert_allclose(burgers.exact(np.full(3, 0.5), np.array([-1.0, 0, 1])), 0, atol=1e-12)


def test_the_residual_of_a_known_function() -> None:
    class Known(burgers.Solution):
        def __call__(self, t: Any, x: Any) -> Any:
            return t**2 * lnp.sin(x)

    t, x = np.linspace(0, 1, 5, dtype="f"), np.linspace(-1, 1, 5, dtype="f")
    u = t**2 * np.sin(x)
    expected = 2 * t * np.sin(x) + u * t**2 * np.cos(x) + burgers.VISCOSITY * u
    close(burgers.residual(Known(key=lx.random.key(0)), t, x), expected)


def test_the_jacobian_is_that_of_the_residuals() -> None:
    solution = burgers.Solution(key=lx.random.key(0))
    t, x = np.array([0.3, 0.6], "f"), np.array([-0.4, 0.2], "f")
    matrix = np.asarray(burgers.jacobian(solution, t, x))
    change = np.random.default_rng(0).normal(size=matrix.shape[1]).astype("f") * 1e-3
    there, back = (burgers.residual(burgers.moved(solution, sign * change), t, x) for sign in (1, -1))
    close((there - back) / 2, matrix @ change, 1e-4)


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With so much viscosity that no shock forms, a few steps are enough."""
    monkeypatch.setattr(burgers, "VISCOSITY", 0.3 / np.pi)
    monkeypatch.setattr(burgers, "CANDIDATES", 1024)
    options = ["--steps", "30", "--points", "120", "--out", str(tmp_path / "made")]
    monkeypatch.setattr(sys, "argv", ["burgers.py", *options])
    burgers.main()
    printed = capsys.readouterr().out
    assert float(re.search(r"relative error: (\S+)", printed)[1]) < 0.02
    assert (tmp_path / "made" / "burgers.png").read_bytes().startswith(b"\x89PNG")
