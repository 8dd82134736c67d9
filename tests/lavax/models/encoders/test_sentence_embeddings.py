"""Vectors of texts: every pooling, its settings in a folder, and what padding must not change."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import models
from lavax.models.encoders.bert import FAMILY, BertConfig
from lavax.models.encoders.sentence_embeddings import POOLINGS
from tests.lavax.models.language import token_ids
from tests.lavax.models.seeded import assert_close, seeded_model

pytestmark = pytest.mark.usefixtures("reference_backend")

HIDDEN = np.random.default_rng(0).standard_normal((2, 4, 3)).astype(np.float32)
LENGTHS = np.array([4, 2])
IDS = np.zeros((2, 4), int)


def given_states(ids: Any, mask: Any) -> np.ndarray:
    return HIDDEN


# By NumPy, from the tokens of one row.
_BY_HAND = {
    "cls_token": lambda row: row[0],
    "max_tokens": lambda row: row.max(axis=0),
    "mean_tokens": lambda row: row.mean(axis=0),
    "mean_sqrt_len_tokens": lambda row: row.sum(axis=0) / np.sqrt(len(row)),
    "weightedmean_tokens": lambda row: np.average(row, axis=0, weights=np.arange(1, len(row) + 1)),
    "lasttoken": lambda row: row[-1],
}


@pytest.mark.parametrize("mode", POOLINGS)
def test_poolings(mode: str) -> None:
    wanted = np.stack([_BY_HAND[mode](row[:length]) for row, length in zip(HIDDEN, LENGTHS, strict=True)])
    pooling = models.Pooling((mode,), normalize=False)
    assert_close(models.sentence_embeddings(given_states, IDS, LENGTHS, pooling), wanted, 1e-6)


def test_several_poolings_are_joined_and_normalised() -> None:
    pooling = models.Pooling(("cls_token", "mean_tokens"))
    made = np.asarray(models.sentence_embeddings(given_states, IDS, pooling=pooling))
    wanted = np.concatenate([HIDDEN[:, 0], HIDDEN.mean(axis=1)], axis=-1)
    assert_close(made, wanted / np.linalg.norm(wanted, axis=-1, keepdims=True), 1e-6)


def test_a_padded_text_has_the_vector_of_the_text_alone() -> None:
    model = seeded_model(FAMILY, BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=16,
    ))
    ids = token_ids(64, 2, 8)
    both = lx.compile(models.sentence_embeddings)(model, ids, np.array([8, 5]))
    assert_close(both[1:], models.sentence_embeddings(model, ids[1:, :5]), 1e-5)


def settings_folder(folder: Path, kinds: list[str], pooling: dict[str, Any]) -> None:
    modules = [{"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "",
                "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def test_the_settings_of_a_folder_are_read(tmp_path: Path) -> None:
    assert models.Pooling.of_folder(tmp_path) == models.Pooling(("mean_tokens",), normalize=True)
    chosen = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "pooling_mode_lasttoken": True}
    settings_folder(tmp_path, ["Transformer", "Pooling"], chosen)
    assert models.Pooling.of_folder(tmp_path) == models.Pooling(("cls_token", "lasttoken"), normalize=False)


def test_settings_that_do_not_exist_are_named(tmp_path: Path) -> None:
    settings_folder(tmp_path, ["Transformer", "Pooling", "Dense"], {})
    with pytest.raises(ValueError, match=r"modules must be Transformer, Pooling, Normalize: .*Dense"):
        models.Pooling.of_folder(tmp_path)
    with pytest.raises(ValueError, match=r"Pooling: modes are of .* got median"):
        models.Pooling(("median",))
