"""The LSTM over rows of digits: what it says after a row depends on no later one, and it learns."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import lavax as lx
from examples import digits_lstm


def test_probabilities_after_a_row_depend_on_no_later_one() -> None:
    images = np.random.default_rng(0).random((2, 8, 8), "f")
    changed = images.copy()
    changed[:, 5:] = 0
    network = digits_lstm.Network(key=lx.random.key(0))
    one, two = (np.asarray(digits_lstm.probabilities(network, x)) for x in (images, changed))
    np.testing.assert_allclose(one.sum(axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(one[:, :5], two[:, :5], rtol=1e-5)
    assert np.abs(one[:, 5:] - two[:, 5:]).max() > 1e-3


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--epochs", "5", "--batch-size", "32", "--out", str(tmp_path / "made")]
    monkeypatch.setattr(sys, "argv", ["digits_lstm.py", *options])
    digits_lstm.main()
    accuracy = float(re.search(r"^accuracy: ([0-9.]+) %", capsys.readouterr().out, re.MULTILINE)[1])
    assert accuracy > 75, "10 by guessing"
    assert (tmp_path / "made" / "digits_lstm.png").read_bytes().startswith(b"\x89PNG")
