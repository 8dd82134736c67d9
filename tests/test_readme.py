"""What the README and the other pages show is so."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from tests.documents import PAGES, read, with_true_samples

README = read("README.md")


def test_the_two_commands_come_first() -> None:
    commands = re.findall(r"^    (make \w+)", README, re.MULTILINE)
    assert commands == ["make demo", "make test"]
    assert README.index("make demo") < README.index("```")


def test_the_example_takes_a_step_down_the_gradient() -> None:
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(compile(block[1], "README.md", "exec"), names)

    draw = np.random.default_rng(0).standard_normal
    weights, inputs, targets = (draw(shape).astype(np.float32) for shape in [(4, 3), (32, 4), (32, 3)])
    found = np.asarray(names["step"](weights, inputs, targets))

    w, x, t = (array.astype(np.float64) for array in (weights, inputs, targets))
    y = np.tanh(x @ w)
    scale = 0.1 * 2 / t.size
    expected = w - scale * x.T @ ((y - t) * (1 - y * y))

    # Rounding in x @ w moves tanh by at most as much, as its slope is at most 1. Eight units more stand for
    # tanh itself and the products, 32 for the sum over the rows; |1 - y²| <= 1, and its slope in y is at most 2.
    unit = np.finfo(np.float32).eps
    moved = 4 * unit * np.abs(x) @ np.abs(w) + 8 * unit
    terms = moved * (1 + 2 * np.abs(y - t)) + (8 + 32) * unit * np.abs(y - t)
    bound = unit * np.abs(expected) + scale * np.abs(x).T @ terms
    assert np.all(np.abs(found - expected) <= bound)


@pytest.mark.parametrize("page", PAGES)
def test_samples_of_dumps_are_true(page: str) -> None:
    """`python -m tests.documents` brings them up to date."""
    assert "```text " in read(page)
    assert with_true_samples(page) == read(page)


@pytest.fixture
def folder_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the pages read: a small Llama with random weights and a tokenizer of bytes, and a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    from lavax.models.llama import Llama
    from lavax.models.llama_config import LlamaConfig

    config = LlamaConfig(
        vocab_size=256, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=256, tie_word_embeddings=True,
    )
    folder = tmp_path / "SmolLM2-135M"
    lx.io.save_pretrained(Llama(config, key=lx.random.key(0)), folder)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({character: number for number, character in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    (tmp_path / "notes.txt").write_text("All work and no play. " * 60, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("page", "made"), [("README.md", "SmolLM2-tuned"), ("docs/models.md", "SmolLM2-merged")]
)
def test_a_folder_is_loaded_used_and_saved(page: str, made: str, folder_of_a_model: Path) -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python models\n(.*?)```", read(page), re.DOTALL):
        exec(compile(block, page, "exec"), names)
    saved = lx.models.load(folder_of_a_model / made)
    before = lx.models.load(folder_of_a_model / "SmolLM2-135M")
    ids = np.array([names["tokenizer"].encode("All work")])
    if page == "README.md":  # the others are adapters that are 0 at first
        assert float(names["loss"](saved, (ids[:, :-1], ids[:, 1:]))) < float(
            names["loss"](before, (ids[:, :-1], ids[:, 1:]))
        )
    torch = pytest.importorskip("torch", reason="loads the saved folder with transformers")
    transformers = pytest.importorskip("transformers", reason="loads the saved folder with transformers")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder_of_a_model / made)
    with torch.no_grad():
        wanted = theirs(torch.from_numpy(ids)).logits.numpy()
    assert np.abs(np.asarray(saved(ids)) - wanted).max() <= 1e-4 * np.abs(wanted).max()
