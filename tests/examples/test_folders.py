"""The examples that run models from folders: they make small ones, tune, save and read them again."""
from __future__ import annotations

import re
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

import lavax as lx
from examples import finetune_lora, generate, transcribe


@pytest.mark.parametrize("quantize", [(), ("--quantize", "int8", "--first-steps", "1")], ids=["floats", "int8"])
def test_tuning_lowers_the_loss_and_the_saved_folder_generates(
    quantize: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat and that is that. " * 100, encoding="utf-8")
    options = ["--text", str(tmp_path / "text.txt"), "--prompt", "the cat", "--rate", "0.02", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["finetune_lora.py", "--quick", *options, *quantize])
    finetune_lora.main()
    printed = capsys.readouterr().out
    trained, whole = (int(n.replace(",", "")) for n in re.search(r"([\d,]+) bytes .* ([\d,]+)\n", printed).groups())
    assert trained == 4 * (2 * 4 * 8 * (64 + 64) - 2 * 2 * 8 * 32), "keys and values have half the heads"
    assert trained < whole / (5 if quantize else 20)
    before, after = map(float, re.search(r"text: ([0-9.]+) before, ([0-9.]+) after", printed).groups())
    assert after < before - 0.3
    assert (tmp_path / "finetune_lora.png").read_bytes().startswith(b"\x89PNG")

    folder = str(tmp_path / "finetune_lora")
    check_transformers_reads(folder)
    options = ["--model", folder, "--prompt", "the cat", "--max-new-tokens", "12"]
    monkeypatch.setattr(sys, "argv", ["generate.py", *options])
    generate.main()
    printed = capsys.readouterr().out
    assert printed.startswith("the cat")
    assert re.search(r"^[0-9]+ characters a second$", printed, re.MULTILINE)


def check_transformers_reads(folder: str) -> None:
    torch = pytest.importorskip("torch", reason="compares with transformers")
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    ids = np.arange(12).reshape(2, 6)
    with torch.no_grad():
        theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)(torch.from_numpy(ids)).logits
    np.testing.assert_allclose(lx.models.load(folder)(ids), theirs.numpy(), rtol=1e-4, atol=1e-4)


def test_generating_without_a_folder(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["generate.py", "--quick", "--max-new-tokens", "4", "--temperature", "1"])
    generate.main()
    assert capsys.readouterr().out.startswith("The value of an expression is")


def test_a_recording_is_read_at_the_rate_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "tone.wav"
    tone = np.sin(2 * np.pi * 440 * np.arange(8000) / 8000)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(np.repeat(tone * 32767, 2).astype("<i2").tobytes())
    samples = transcribe.read_recording(path)
    assert samples.shape == (16_000,)
    expected = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    np.testing.assert_allclose(samples[:-2], expected[:-2], atol=0.02)  # linear interpolation at 18 samples a wave


def test_transcribing_without_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["transcribe.py", "--quick", "--max-new-tokens", "4", "--out", str(tmp_path)])
    transcribe.main()
    printed = capsys.readouterr().out
    assert "[  0.00 to   2.00]" in printed
    assert "3.0 seconds of sound" in printed
    assert (tmp_path / "transcribe.png").read_bytes().startswith(b"\x89PNG")
