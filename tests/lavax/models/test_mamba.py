"""Mamba against transformers: logits, gradients, files, decoding from states."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.models.mamba import FAMILY, MambaConfig, MambaLanguageModel
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
from tests.lavax.models.seeded import assert_close, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

SMALL: dict[str, Any] = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, state_size=5)
UNUSUAL: dict[str, Any] = dict(
    SMALL, conv_kernel=3, expand=1, time_step_rank=3, use_bias=True, use_conv_bias=False, tie_word_embeddings=False
)
IDS = token_ids(96, 2, 11)


def checkpoint(settings: dict[str, Any], folder: Path) -> Any:
    return torch_checkpoint("MambaForCausalLM", dict(settings, config="MambaConfig"), folder)


@pytest.mark.parametrize("settings", [SMALL, UNUSUAL], ids=["usual", "unusual"])
def test_logits_and_gradients_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    check_against_transformers(checkpoint(settings, tmp_path), FAMILY, tmp_path, IDS)


@pytest.mark.parametrize("settings", [SMALL, UNUSUAL], ids=["usual", "unusual"])
def test_a_saved_model_is_read_by_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    check_saved_again(checkpoint(settings, tmp_path / "theirs"), tmp_path / "theirs", tmp_path / "ours", IDS)


@pytest.mark.parametrize("settings", [SMALL, UNUSUAL], ids=["usual", "unusual"])
def test_decoding_from_states_is_the_forward_pass(settings: dict[str, Any]) -> None:
    check_cached(seeded_model(FAMILY, MambaConfig(**settings)), IDS)


def test_padding_leaves_no_trace_in_states() -> None:
    model = seeded_model(FAMILY, MambaConfig(**SMALL))
    counts = np.array([8, 2])
    _, padded = model.extend(IDS[:, :8], model.empty_cache(2, 0), counts)
    assert np.array_equal(padded.lengths, counts)
    for row, count in enumerate(counts):
        _, alone = model.extend(IDS[row : row + 1, :count], model.empty_cache(1, 0))
        for ours, wanted in zip(lx.tree.leaves(padded.layers), lx.tree.leaves(alone.layers), strict=True):
            assert_close(ours[row : row + 1], wanted, 1e-5)


def test_a_decode_of_256_tokens_is_the_forward_pass() -> None:
    check_long_decode(seeded_model(FAMILY, MambaConfig(**SMALL)), token_ids(96, 1, 256))


def test_generation_is_that_of_transformers(tmp_path: Path) -> None:
    check_generation(checkpoint(SMALL, tmp_path), tmp_path, [IDS[0], IDS[1, :5], IDS[1, :1]])


# Of transformers 5.23.0 and torch 2.13.0.
RECORDED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        SMALL,
        {
            "logits": [-0.780051, 0.247716, -0.488699, -0.697444, 0.577677, -2.689128],
            "loss": 5.463347,
            "squares": {
                "backbone.embeddings.weight": 18.11028,
                "backbone.layers.0.mixer.A_log": 0.02271101,
                "backbone.layers.1.mixer.conv1d.weight": 0.3749428,
                "backbone.layers.0.mixer.dt_proj.bias": 0.02655306,
                "backbone.layers.1.mixer.D": 0.1078477,
            },
        },
    ),
    (
        UNUSUAL,
        {
            "logits": [-0.463407, 0.247965, -0.489133, -1.172567, 1.089049, 0.198888],
            "loss": 4.998586,
            "squares": {
                "backbone.embeddings.weight": 6.31193,
                "backbone.layers.0.mixer.A_log": 0.004312543,
                "backbone.layers.1.mixer.conv1d.weight": 0.2710136,
                "backbone.layers.0.mixer.dt_proj.bias": 0.003026835,
                "backbone.layers.1.mixer.D": 0.04599371,
                "lm_head.weight": 1.601975,
            },
        },
    ),
]


@pytest.mark.parametrize(("settings", "recorded"), RECORDED, ids=["usual", "unusual"])
def test_recorded_values(settings: dict[str, Any], recorded: dict[str, Any]) -> None:
    check_recorded(seeded_model(FAMILY, MambaConfig(**settings)), FAMILY, IDS, recorded)


def test_a_bfloat16_model_gives_bfloat16() -> None:
    model = MambaLanguageModel(MambaConfig(**SMALL), key=lx.random.key(0), dtype="bfloat16")
    assert model(IDS).dtype == "bfloat16"
    assert [leaf.dtype for leaf in lx.tree.leaves(model.empty_cache(1, 0).layers[0])] == ["bfloat16", "float32"]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="hidden_act is 'gelu', and only silu is known"):
        MambaLanguageModel(MambaConfig(**SMALL | {"hidden_act": "gelu"}), key=lx.random.key(0))
    with pytest.raises(ValueError, match="time_step_rank is a number or 'auto', got 'all'"):
        MambaLanguageModel(MambaConfig(**SMALL | {"time_step_rank": "all"}), key=lx.random.key(0))
    with pytest.raises(lx.ShapeError, match=r"tokens are integers \[B, T\], got f32\[2\]"):
        seeded_model(FAMILY, MambaConfig(**SMALL))(np.zeros(2, np.float32))
