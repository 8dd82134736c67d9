"""What the README and the other pages show is so."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from tests.documents import PAGES, read, with_true_samples

README = read("README.md")


def test_the_two_commands_come_first() -> None:
    commands = re.findall(r"^(make \w+)", README, re.MULTILINE)
    assert commands == ["make demo", "make test"]
    assert README.index("make demo") < README.index("```python")


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


# Folders that the pages load -> what their config.json says; they get random weights.
SMALL_MODELS: dict[str, dict[str, Any]] = {
    "SmolLM2-135M": dict(
        model_type="llama", vocab_size=256, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=256, tie_word_embeddings=True,
    ),
    "whisper-tiny": dict(
        model_type="whisper", vocab_size=310, d_model=16, encoder_layers=1, encoder_attention_heads=2,
        encoder_ffn_dim=24, decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=24, max_source_positions=25,
        max_target_positions=12,
    ),
    "all-MiniLM-L6-v2": dict(
        model_type="bert", vocab_size=256, hidden_size=16, intermediate_size=24, num_hidden_layers=1,
        num_attention_heads=2,
    ),
}  # fmt: skip


def save_small_pipeline(folder: Path) -> None:
    """A Stable Diffusion with random weights, and a tokenizer of letters."""
    from lavax.models import diffusion
    from lavax.models.diffusion.prompts import PromptTokenizer
    from lavax.models.vision.clip_text import CLIPText, CLIPTextConfig

    names = [*"abcdefghijklmnopqrstuvwxyz", *(f"{letter}</w>" for letter in "abcdefghijklmnopqrstuvwxyz")]
    names += ["<|startoftext|>", "<|endoftext|>"]
    files = folder.with_name("letters")
    files.mkdir()
    (files / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (files / "merges.txt").write_text("#version: 0.2\n")
    (files / "tokenizer_config.json").write_text("{}")
    text = CLIPTextConfig(
        vocab_size=len(names), hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
        eos_token_id=len(names) - 1,
    )  # fmt: skip
    unet = diffusion.UNetConfig(
        sample_size=4, block_out_channels=(8,), layers_per_block=1, norm_num_groups=4, cross_attention_dim=8,
        attention_head_dim=2, down_block_types=("CrossAttnDownBlock2D",), up_block_types=("CrossAttnUpBlock2D",),
    )  # fmt: skip
    vae = diffusion.AutoencoderConfig(
        block_out_channels=(8,), norm_num_groups=4, layers_per_block=1, down_block_types=("DownEncoderBlock2D",),
        up_block_types=("UpDecoderBlock2D",),
    )  # fmt: skip
    parts = CLIPText(text, key=lx.random.key(0)), diffusion.UNet(unet, key=lx.random.key(1))
    decoder, schedule = diffusion.Autoencoder(vae, key=lx.random.key(2)), diffusion.NoiseSchedule()
    diffusion.save_pipeline(diffusion.TextToImage(PromptTokenizer.load(files), *parts, decoder, schedule), folder)


@pytest.fixture
def folder_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the pages read: small models with random weights and tokenizers of bytes, and a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    from lavax.models.family import family_of

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({character: number for number, character in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    for name, data in SMALL_MODELS.items():
        family = family_of(data["model_type"])
        lx.io.save_pretrained(family.build(family.config.from_json(data), key=lx.random.key(0)), tmp_path / name)
        tokenizer.save(str(tmp_path / name / "tokenizer.json"))
    special = dict(eos_token_id=256, decoder_start_token_id=257, no_timestamps_token_id=258)
    (tmp_path / "whisper-tiny" / "generation_config.json").write_text(json.dumps(special))
    save_small_pipeline(tmp_path / "stable-diffusion-v1-5")
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
