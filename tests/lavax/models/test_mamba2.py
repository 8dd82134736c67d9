"""Mamba-2 against transformers: logits, gradients, files, decoding from states."""
from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.models.mamba import MambaLanguageModel
from lavax.models.mamba2 import FAMILY, Mamba2Config
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

SMALL: dict[str, Any] = dict(
    vocab_size=96, hidden_size=32, num_hidden_layers=2, state_size=5, num_heads=4, head_dim=16, n_groups=2, chunk_size=4
)
UNUSUAL: dict[str, Any] = dict(
    SMALL, conv_kernel=3, expand=1, num_heads=8, head_dim=4, n_groups=1, use_bias=True, use_conv_bias=False,
    tie_word_embeddings=True, time_step_limit=(0.5, 0.8), chunk_size=256,
)  # fmt: skip
BOTH = pytest.mark.parametrize("settings", [SMALL, UNUSUAL], ids=["usual", "unusual"])
IDS = token_ids(96, 2, 11)


def checkpoint(settings: dict[str, Any], folder: Path) -> Any:
    return torch_checkpoint("Mamba2ForCausalLM", dict(settings, config="Mamba2Config"), folder)


@BOTH
def test_logits_and_gradients_are_those_of_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    check_against_transformers(checkpoint(settings, tmp_path), FAMILY, tmp_path, IDS)


@BOTH
def test_a_saved_model_is_read_by_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    check_saved_again(checkpoint(settings, tmp_path / "theirs"), tmp_path / "theirs", tmp_path / "ours", IDS)


@BOTH
def test_decoding_from_states_is_the_forward_pass(settings: dict[str, Any]) -> None:
    check_cached(seeded_model(FAMILY, Mamba2Config(**settings)), IDS)


def test_padding_leaves_no_trace_in_states() -> None:
    model = seeded_model(FAMILY, Mamba2Config(**SMALL))
    counts = np.array([8, 2])
    _, padded = model.extend(IDS[:, :8], model.empty_cache(2, 0), counts)
    assert np.array_equal(padded.lengths, counts)
    for row, count in enumerate(counts):
        _, alone = model.extend(IDS[row : row + 1, :count], model.empty_cache(1, 0))
        for ours, wanted in zip(lx.tree.leaves(padded.layers), lx.tree.leaves(alone.layers), strict=True):
            assert_close(ours[row : row + 1], wanted, 1e-5)


def test_a_decode_of_256_tokens_is_the_forward_pass() -> None:
    check_long_decode(seeded_model(FAMILY, Mamba2Config(**SMALL | {"chunk_size": 64})), token_ids(96, 1, 256))


def test_generation_is_that_of_transformers(tmp_path: Path) -> None:
    check_generation(checkpoint(SMALL, tmp_path), tmp_path, [IDS[0], IDS[1, :5], IDS[1, :1]])


@BOTH
def test_chunks_change_nothing(settings: dict[str, Any]) -> None:
    wanted = seeded_model(FAMILY, Mamba2Config(**settings | {"chunk_size": 1}))(IDS)
    for chunk in (3, 11, 256):
        assert_close(seeded_model(FAMILY, Mamba2Config(**settings | {"chunk_size": chunk}))(IDS), wanted, 1e-5)


# Of transformers 5.23.0 and torch 2.13.0.
RECORDED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        SMALL,
        {
            "logits": [-0.10511, 1.196137, 0.355808, 0.041109, 1.396055, -1.837766],
            "loss": 4.999682,
            "squares": {
                "backbone.embeddings.weight": 67.65086,
                "backbone.layers.0.mixer.A_log": 0.1488366,
                "backbone.layers.1.mixer.conv1d.weight": 0.2903984,
                "backbone.layers.0.mixer.dt_bias": 0.1475116,
                "backbone.layers.1.mixer.D": 1.129516,
                "backbone.layers.1.mixer.norm.weight": 0.03531571,
            },
        },
    ),
    (
        UNUSUAL,
        {
            "logits": [0.583779, 1.05222, -2.466253, -1.489418, -0.466625, 2.437001],
            "loss": 5.17302,
            "squares": {
                "backbone.embeddings.weight": 31.60632,
                "backbone.layers.0.mixer.A_log": 0.02270956,
                "backbone.layers.1.mixer.conv1d.weight": 0.1628201,
                "backbone.layers.0.mixer.dt_bias": 0.008034583,
                "backbone.layers.1.mixer.D": 0.4892038,
                "backbone.layers.1.mixer.norm.weight": 0.01611865,
            },
        },
    ),
]


@pytest.mark.parametrize(("settings", "recorded"), RECORDED, ids=["usual", "unusual"])
def test_recorded_values(settings: dict[str, Any], recorded: dict[str, Any]) -> None:
    check_recorded(seeded_model(FAMILY, Mamba2Config(**settings)), FAMILY, IDS, recorded)


@pytest.mark.parametrize("longest", [math.inf, {"__float__": "Infinity"}])
def test_limits_of_steps_may_be_infinite(longest: Any) -> None:
    config = Mamba2Config.from_json({**SMALL, "time_step_limit": [0.25, longest]})
    assert config.step_limits == (0.25, math.inf)
    assert config.to_json()["time_step_limit"] == [0.25, longest]
    assert "time_step_limit" not in Mamba2Config(**SMALL).to_json()


def test_a_bfloat16_model_gives_bfloat16() -> None:
    model = MambaLanguageModel(Mamba2Config(**SMALL), key=lx.random.key(0), dtype="bfloat16")
    assert model(IDS).dtype == "bfloat16"
    assert [leaf.dtype for leaf in lx.tree.leaves(model.empty_cache(1, 0).layers[0])] == ["bfloat16", "float32"]


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="num_heads=3 times head_dim=16 must be expand=2 times hidden_size=32"):
        MambaLanguageModel(Mamba2Config(**SMALL | {"num_heads": 3}), key=lx.random.key(0))
    with pytest.raises(ValueError, match="hidden_act is 'gelu', and only silu is known"):
        MambaLanguageModel(Mamba2Config(**SMALL | {"hidden_act": "gelu"}), key=lx.random.key(0))
