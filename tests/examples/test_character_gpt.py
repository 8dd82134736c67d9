"""The character GPT: its bigram model, that it looks at no later character, that it learns, and that it writes."""
from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import lavax as lx
from examples import character_gpt
from examples.character_gpt import GPT

CONTEXT = 16


@pytest.fixture(scope="module")
def network() -> GPT:
    return GPT(5, CONTEXT, width=32, layers=1, heads=2, key=lx.random.key(0))


def test_the_bigram_model_knows_pairs() -> None:
    text = np.array([0, 1] * 50 + [0])
    found = character_gpt.bigram_loss(text, np.array([0, 1, 0, 2]), count=3)
    assert found == pytest.approx(-np.log([51 / 53, 51 / 53, 1 / 53]).mean())


def test_scores_depend_on_no_later_character(network: GPT) -> None:
    ids = np.random.default_rng(0).integers(0, 5, (1, CONTEXT))
    others = ids.copy()
    others[0, 7:] = (ids[0, 7:] + 1) % 5
    one, two = (np.asarray(network(x)) for x in (ids, others))
    np.testing.assert_allclose(one[0, :7], two[0, :7], rtol=1e-5, atol=1e-5)
    assert np.abs(one[0, 7:] - two[0, 7:]).min(axis=1).max() > 1e-3


def test_it_learns_a_pattern_and_writes_on(network: GPT) -> None:
    """Five characters in turn, which a prompt shorter and a text longer than the context go on with."""
    text = np.tile(np.arange(5, dtype=np.int32), 100)
    copy = lx.tree.map(lambda leaf: leaf + 0, network)  # training takes its weights
    trained, losses = character_gpt.train(copy, text, seed=0, steps=60, batch_size=8, context=CONTEXT)
    assert losses[-1] < 0.1 < losses[0]
    assert character_gpt.held_out_loss(trained, text, batch_size=8, context=CONTEXT) < 0.1
    cold = np.float32(0.1)
    drawn = character_gpt.write(trained, text[:3], lx.random.key(1), cold, count=2 * CONTEXT, context=CONTEXT)
    np.testing.assert_array_equal(drawn, (3 + np.arange(2 * CONTEXT)) % 5)


def test_the_default_text_is_there() -> None:
    assert len(character_gpt.default_text()) > 100_000


def test_a_text_that_is_too_short_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.txt").write_text("To be, or not to be", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["character_gpt.py", "--text", str(tmp_path / "text.txt")])
    with pytest.raises(SystemExit, match="The text has 19 characters; with these sizes it needs 10400"):
        character_gpt.main()


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.txt").write_text("To be, or not to be, that is the question: é\n" * 80, encoding="utf-8")
    options = ["--text", str(tmp_path / "text.txt"), "--prompt", "To", "--steps", "200", "--width", "32"]
    options += ["--context", "32", "--layers", "1", "--out", str(tmp_path / "made")]
    monkeypatch.setattr(sys, "argv", ["character_gpt.py", "--quick", *options])
    character_gpt.main()
    printed = capsys.readouterr().out
    found, bigram = map(float, re.search(r"held-out text: ([0-9.]+); of a bigram model: ([0-9.]+)", printed).groups())
    assert found < bigram
    assert re.search("^To", printed, re.MULTILINE)
    assert (tmp_path / "made" / "character_gpt.png").read_bytes().startswith(b"\x89PNG")
