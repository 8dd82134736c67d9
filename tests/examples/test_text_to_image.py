"""The example that makes pictures of a text: with a model that it makes, and with one from a folder."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import lavax as lx
from examples import text_to_image
from lavax.models import diffusion
from lavax.tracer.values import backend
from tests.numpy_backend import NumpyBackend


@pytest.fixture
def reference_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference interpreter in place of a device."""
    monkeypatch.setattr(backend, "_factory", NumpyBackend)
    monkeypatch.setattr(backend.in_use, "runtime", None)


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "argv", ["text_to_image.py", *options])
    text_to_image.main()


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the device, with the model that the example makes."""
    run(monkeypatch, "--quick", "--out", str(tmp_path))
    assert re.search(r"2 pictures of 16 x 16 pixels in \d", capsys.readouterr().out)
    assert (tmp_path / "text_to_image.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("reference_backend")
@pytest.mark.parametrize("sampler", ["euler", "euler-ancestral"])
def test_options_reach_the_model(
    sampler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text_to_image.make_folder(tmp_path / "model", 1)
    drawn = []
    monkeypatch.setattr(text_to_image, "draw_pictures", lambda file, images, prompt: drawn.append((images, prompt)))
    options = ["--model", str(tmp_path / "model"), "--prompt", "fog", "--negative", "sun", "--count", "1"]
    options += ["--steps", "2", "--sampler", sampler, "--guidance", "3", "--seed", "4", "--width", "24"]
    run(monkeypatch, *options, "--out", str(tmp_path / "out"))
    assert "1 pictures of 16 x 24 pixels" in capsys.readouterr().out
    make = diffusion.load_pipeline(tmp_path / "model")
    more = dict(sampler=text_to_image.SAMPLERS[sampler], guidance=3.0, steps=2)
    wanted = make("fog", key=lx.random.key(4), negative="sun", width=24, **more)
    ((images, prompt),) = drawn
    assert prompt == "fog"
    assert np.array_equal(images, wanted)
