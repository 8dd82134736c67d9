"""The example that looks for similar sentences: batches, padding, what it prints."""
from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, processors

from examples import similar_sentences


def test_vectors_depend_on_neither_batch_nor_padding(tmp_path: Path) -> None:
    similar_sentences.make_folder(tmp_path, seed=0)
    lines = ["one", "two three", "four five six seven eight nine", "two three"]
    together = similar_sentences.embedded(tmp_path, lines, batch=4, dtype="float32")
    alone = similar_sentences.embedded(tmp_path, lines[1:2], batch=1, dtype="float32")
    assert np.allclose(together[[1, 3]], alone, atol=1e-5)
    assert np.allclose((together**2).sum(axis=1), 1, atol=1e-5)


def test_long_lines_are_cut_and_widths_are_few(tmp_path: Path) -> None:
    similar_sentences.make_folder(tmp_path, seed=0)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for length, width in ((3, 16), (16, 16), (17, 32), (40, 40), (90, 40)):
        ids, mask = similar_sentences.token_arrays(tokenizer, ["a" * length, "b"], longest=40)
        assert ids.shape == mask.shape == (2, width)
        assert mask.sum(axis=1).tolist() == [min(length, 40), 1]


def test_lines_that_are_cut_keep_the_token_that_ends_them(tmp_path: Path) -> None:
    similar_sentences.make_folder(tmp_path, seed=0)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    tokenizer.post_processor = processors.TemplateProcessing("$A !", special_tokens=[("!", tokenizer.token_to_id("!"))])
    ids, _ = similar_sentences.token_arrays(tokenizer, ["a" * 90], longest=40)
    assert tokenizer.id_to_token(ids[0, 39]) == "!" and tokenizer.id_to_token(ids[0, 38]) == "a"


def test_the_most_similar_line_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text("The quick fox\n\nzzzz\nthe same words\n", encoding="utf-8")
    options = ["--text", str(tmp_path / "text.txt"), "--query", "the same words", "--most", "2", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["similar_sentences.py", "--quick", *options])
    similar_sentences.main()
    printed = capsys.readouterr().out
    assert "4 texts in " in printed
    assert "  1.000  the same words" in printed and printed.count("\n  0.") == 1
    assert (tmp_path / "similar_sentences.png").read_bytes().startswith(b"\x89PNG")
