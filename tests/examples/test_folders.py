"""The examples that run models from folders: they make small ones, tune, save and read them again."""
from __future__ import annotations

import re
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from examples import finetune_lora, generate, transcribe
from lavax import nn


class Attention(nn.Module):
    query: nn.Linear


class Model(nn.Module):
    attention: Attention
    other: nn.Linear


@pytest.fixture
def model() -> Model:
    return Model(Attention(nn.Linear(6, 4, key=lx.random.key(0))), nn.Linear(6, 4, key=lx.random.key(1)))


def test_changes_are_of_low_rank_begin_as_nothing_and_touch_attention_only(model: Model) -> None:
    changes = finetune_lora.initial_changes(model, 2, lx.random.key(2))
    (path,) = changes
    assert path.endswith("attention.query.weight")
    same = finetune_lora.changed(model, changes)
    np.testing.assert_array_equal(same.attention.query.weight, model.attention.query.weight)
    _, down = changes[path]
    up = lnp.ones((4, 2))
    other = finetune_lora.changed(model, {path: (up, down)})
    change = np.asarray(other.attention.query.weight) - np.asarray(model.attention.query.weight)
    np.testing.assert_allclose(change, np.ones((4, 2)) @ np.asarray(down), atol=1e-6)
    np.testing.assert_array_equal(other.other.weight, model.other.weight)


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(SystemExit, match="Linear has no weights that end in"):
        finetune_lora.initial_changes(nn.Linear(2, 2, key=lx.random.key(0)), 2, lx.random.key(0))


def test_tuning_lowers_the_loss_and_the_saved_folder_generates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text("the cat sat on the mat and that is that. " * 100, encoding="utf-8")
    options = ["--text", str(tmp_path / "text.txt"), "--prompt", "the cat", "--rate", "0.02", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["finetune_lora.py", "--quick", *options])
    finetune_lora.main()
    printed = capsys.readouterr().out
    trained, whole = (int(n.replace(",", "")) for n in re.search(r"([\d,]+) numbers .* ([\d,]+)\n", printed).groups())
    assert trained == 2 * 4 * 8 * (64 + 64) - 2 * 2 * 8 * 32, "keys and values have half the heads"
    assert trained < whole / 20
    before, after = map(float, re.search(r"text: ([0-9.]+) before, ([0-9.]+) after", printed).groups())
    assert after < before - 0.3
    assert (tmp_path / "finetune_lora.png").read_bytes().startswith(b"\x89PNG")

    folder = str(tmp_path / "finetune_lora")
    options = ["--model", folder, "--prompt", "the cat", "--max-new-tokens", "12"]
    monkeypatch.setattr(sys, "argv", ["generate.py", *options])
    generate.main()
    printed = capsys.readouterr().out
    assert printed.startswith("the cat")
    assert re.search(r"^[0-9]+ characters a second$", printed, re.MULTILINE)


def test_transformers_reads_what_was_tuned(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="compares with transformers")
    transformers = pytest.importorskip("transformers", reason="compares with transformers")
    generate.make_folder(tmp_path, seed=0)
    model = lx.models.load(tmp_path)
    changes = finetune_lora.initial_changes(model, 4, lx.random.key(0))
    tuned = finetune_lora.changed(model, {path: (up + 0.1, down) for path, (up, down) in changes.items()})
    lx.io.save_pretrained(tuned, tmp_path / "tuned")
    ids = np.arange(12).reshape(2, 6)
    with torch.no_grad():
        theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "tuned")(torch.from_numpy(ids)).logits
    np.testing.assert_allclose(tuned(ids), theirs.numpy(), rtol=1e-4, atol=1e-4)
    assert np.abs(np.asarray(tuned(ids)) - np.asarray(model(ids))).max() > 0.1


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
