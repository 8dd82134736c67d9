"""GPT-2 against transformers: logits, gradients, files."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import lavax as lx
from lavax import io, models
from lavax.models.gpt2 import FAMILY, GPT2, GPT2Config
from tests.lavax.models.language import (
    check_against_transformers,
    check_cached,
    check_generation,
    check_long_decode,
    check_recorded,
    check_saved_again,
    token_ids,
    torch_checkpoint,
)
from tests.lavax.models.seeded import seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

SMALL: dict[str, Any] = dict(vocab_size=96, n_positions=24, n_embd=32, n_layer=2, n_head=4)
UNUSUAL: dict[str, Any] = dict(
    SMALL, n_inner=48, activation_function="relu", scale_attn_by_inverse_layer_idx=True, tie_word_embeddings=False
)
IDS = token_ids(96, 2, 11)


def checkpoint(settings: dict[str, Any], folder: Path, kind: str = "GPT2LMHeadModel") -> Any:
    return torch_checkpoint(kind, dict(settings, config="GPT2Config"), folder)


@pytest.mark.parametrize("settings", [SMALL, UNUSUAL], ids=["usual", "unusual"])
def test_logits_and_gradients_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    check_against_transformers(checkpoint(settings, tmp_path), FAMILY, tmp_path, IDS)


@pytest.mark.parametrize("settings", [SMALL, UNUSUAL], ids=["usual", "unusual"])
def test_a_saved_model_is_read_by_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    check_saved_again(checkpoint(settings, tmp_path / "theirs"), tmp_path / "theirs", tmp_path / "ours", IDS)


def test_a_file_without_the_prefix_and_with_masks_is_read(tmp_path: Path) -> None:
    """The published folder "gpt2" is like this."""
    model = seeded_model(FAMILY, GPT2Config(**SMALL))
    io.save_pretrained(model, tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    tensors = {name.removeprefix("transformer."): array for name, array in saved.items()}
    tensors["h.0.attn.bias"] = np.tril(np.ones((1, 1, 24, 24), np.float32))
    save_file(tensors, tmp_path / "model.safetensors")
    assert np.array_equal(models.load(tmp_path)(IDS), model(IDS))


# Of transformers 5.23.0 and torch 2.13.0.
RECORDED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        SMALL,
        {
            "logits": [0.996409, 0.35822, 0.266569, -0.85967, 0.36452, -1.550562],
            "loss": 4.860648,
            "squares": {
                "transformer.wte.weight": 2.554572,
                "transformer.h.0.attn.c_attn.weight": 3.691525,
                "transformer.h.1.mlp.c_fc.bias": 0.05994508,
            },
        },
    ),
    (
        UNUSUAL,
        {
            "logits": [1.402137, -0.081947, -1.309622, -0.656792, 1.626477, 0.01584],
            "loss": 5.675496,
            "squares": {
                "transformer.wte.weight": 0.5331153,
                "transformer.h.0.attn.c_attn.weight": 2.637333,
                "transformer.h.1.mlp.c_fc.bias": 0.0158252,
                "lm_head.weight": 1.777368,
            },
        },
    ),
]


@pytest.mark.parametrize(("settings", "recorded"), RECORDED, ids=["usual", "unusual"])
def test_recorded_values(settings: dict[str, Any], recorded: dict[str, Any]) -> None:
    check_recorded(seeded_model(FAMILY, GPT2Config(**settings)), FAMILY, IDS, recorded)


def test_a_cached_decode_is_the_forward_pass(tmp_path: Path) -> None:
    check_cached(seeded_model(FAMILY, GPT2Config(**UNUSUAL)), IDS)


def test_a_decode_of_256_tokens_is_the_forward_pass() -> None:
    check_long_decode(seeded_model(FAMILY, GPT2Config(**SMALL | {"n_positions": 256})), token_ids(96, 1, 256))


def test_generation_is_that_of_transformers(tmp_path: Path) -> None:
    check_generation(checkpoint(SMALL, tmp_path), tmp_path, [IDS[0], IDS[1, :5]])


def test_bad_arguments_are_named() -> None:
    with pytest.raises(lx.ShapeError, match=r"GPT2: ids are .* n_positions=24"):
        seeded_model(FAMILY, GPT2Config(**SMALL))(np.zeros((1, 25), int))
    with pytest.raises(ValueError, match="n_head=5 must divide n_embd=32"):
        GPT2(GPT2Config(**SMALL | {"n_head": 5}), key=lx.random.key(0))
    with pytest.raises(ValueError, match="no activation 'gilu'"):
        GPT2(GPT2Config(**SMALL | {"activation_function": "gilu"}), key=lx.random.key(0))
