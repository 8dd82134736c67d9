"""CLIP against transformers: vectors, logits, the contrastive loss, gradients, files; recorded values."""
from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import io, models
from lavax.models.vision.clip import FAMILY, CLIPConfig
from tests.lavax.models.seeded import (
    assert_close,
    assert_gradients_close,
    gradients_by_name,
    seed_torch,
    seeded,
    seeded_model,
)

pytestmark = pytest.mark.usefixtures("reference_backend")

TEXT: dict[str, Any] = dict(
    vocab_size=50,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    max_position_embeddings=12,
    bos_token_id=48,
    eos_token_id=49,
)
VISION: dict[str, Any] = dict(
    hidden_size=24, intermediate_size=32, num_hidden_layers=2, num_attention_heads=3, image_size=16, patch_size=8
)
SMALL: dict[str, Any] = dict(text_config=TEXT, vision_config=VISION, projection_dim=8)
IDS = np.array([[48, 3, 17, 5, 49, 49, 49], [48, 8, 8, 30, 2, 11, 49], [48, 40, 49, 1, 1, 1, 1]], np.int32)
IMAGES = seeded("images", (3, 3, 16, 16)) * 20
LARGER = seeded("larger images", (3, 3, 16, 24)) * 20


def checkpoint(folder: Path) -> Any:
    """A model of transformers that is saved in `folder`."""
    pytest.importorskip("torch", reason="compares with transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers", reason="compares with transformers")
        made = seed_torch(transformers.CLIPModel(transformers.CLIPConfig(**SMALL)))
        made.save_pretrained(folder)
    return made


def loss(model: Any, images: np.ndarray) -> Any:
    return model.loss(IDS, images)


@pytest.mark.parametrize("images", [IMAGES, LARGER], ids=["own size", "another size"])
def test_outputs_loss_and_gradients_are_those_of_transformers(tmp_path: Path, images: np.ndarray) -> None:
    oracle = checkpoint(tmp_path)
    import torch

    ids, pixels, model = torch.tensor(IDS).long(), torch.tensor(images), models.load(tmp_path)
    found = oracle(ids, pixels, return_loss=True, interpolate_pos_encoding=True)
    per_text, per_image = model(IDS, images)
    assert_close(per_text, found.logits_per_text.detach().numpy(), 1e-5)
    assert_close(per_image, found.logits_per_image.detach().numpy(), 1e-5)
    texts, pictures = found.text_model_output.pooler_output, found.vision_model_output.pooler_output
    assert_close(model.encode_text(IDS), texts.detach().numpy(), 1e-5)
    assert_close(model.encode_image(images), pictures.detach().numpy(), 1e-5)

    found.loss.backward()
    value, gradients = lx.value_and_grad(loss)(model, images)
    assert float(value) == pytest.approx(found.loss.item(), rel=1e-5)
    assert_gradients_close(gradients_by_name(FAMILY, gradients), oracle)


def test_a_saved_model_is_read_by_transformers(tmp_path: Path) -> None:
    oracle = checkpoint(tmp_path / "theirs")
    import torch

    io.save_pretrained(models.load(tmp_path / "theirs"), tmp_path / "ours")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read, report = type(oracle).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    ids, pixels = torch.tensor(IDS).long(), torch.tensor(IMAGES)
    assert torch.equal(read.eval()(ids, pixels).logits_per_text, oracle(ids, pixels).logits_per_text)
    assert all(torch.equal(value, oracle.state_dict()[name]) for name, value in read.state_dict().items())


# By transformers 5.23 and torch 2.13 in float64, from the weights, ids and images above.
RECORDED = [
    [-0.49628253, -0.6136559, -0.58652664],
    [-0.48848719, -0.67665158, -0.50579801],
    [-0.26844496, -0.75033042, -0.50879116],
]


def test_logits_are_the_recorded_ones() -> None:
    per_text, per_image = seeded_model(FAMILY, CLIPConfig.from_json(SMALL))(IDS, IMAGES)
    assert_close(per_text, np.array(RECORDED), 1e-5)
    assert np.array_equal(per_image, np.asarray(per_text).T)


def test_what_follows_the_end_of_a_text_does_not_count() -> None:
    model, changed = seeded_model(FAMILY, CLIPConfig.from_json(SMALL)), IDS.copy()
    changed[2, 3:] = 7
    assert np.array_equal(model.encode_text(changed), model.encode_text(IDS))


def test_settings_of_older_files_are_those_that_count() -> None:
    older = dict(SMALL, text_config={}, text_config_dict=TEXT, vision_config=None, vision_config_dict=VISION)
    config = CLIPConfig.from_json(older)
    assert (config.text.vocab_size, config.text.projection_dim, config.vision.hidden_size) == (50, 8, 24)
    saved = json.loads(json.dumps(config.to_json()))
    assert saved["text_config_dict"] == TEXT and saved["vision_config_dict"] == VISION


def test_settings_that_files_leave_out_are_those_of_the_base_model() -> None:
    config = CLIPConfig.from_json({"model_type": "clip"})
    assert (config.text.hidden_size, config.vision.hidden_size, config.vision.patch_size) == (512, 768, 32)


def test_bad_arguments_are_named() -> None:
    model = seeded_model(FAMILY, CLIPConfig.from_json(SMALL))
    with pytest.raises(lx.ShapeError, match=r"tokens are \[N, T\] with T at most 12"):
        model.encode_text(np.zeros((1, 13), np.int32))
    with pytest.raises(lx.ShapeError, match=r"images are \[N, 3, H, W\] of at least 8 x 8 pixels, got f32\[3,16,16\]"):
        model.encode_image(IMAGES[0])
