"""Vision transformers against transformers: logits, interpolated positions, gradients, files; recorded values."""
from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax import io, models
from lavax.models.vision.vit import FAMILY, ViTConfig
from lavax.nn import cross_entropy
from tests.lavax.models.seeded import (
    assert_close,
    assert_gradients_close,
    gradients_by_name,
    seed_torch,
    seeded,
    seeded_model,
)

pytestmark = pytest.mark.usefixtures("reference_backend")

SMALL: dict[str, Any] = dict(
    hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=4
)
UNUSUAL: dict[str, Any] = dict(SMALL, qkv_bias=False, hidden_act="relu", num_channels=1, layer_norm_eps=1e-3)
LABELS = np.array([4, 0])
IMAGES = seeded("images", (2, 3, 16, 16)) * 20
LARGER = seeded("larger images", (2, 3, 22, 28)) * 20  # 5 x 7 patches, and pixels that fill none
CLASSES = {str(number): f"LABEL_{number}" for number in range(5)}

# What transformers calls the modules whose tensors it saves under other names.
IN_MEMORY = (
    (r"\.encoder\.layer\.", ".layers."),
    (r"\.attention\.attention\.(q|k|v)(?:uery|ey|alue)\.", r".attention.\1_proj."),
    (r"\.attention\.output\.dense\.", ".attention.o_proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"(\d)\.output\.dense\.", r"\1.mlp.fc2."),
)


def in_memory(name: str) -> str:
    for pattern, replacement in IN_MEMORY:
        name = re.sub(pattern, replacement, name)
    return name


def config_of(settings: dict[str, Any]) -> ViTConfig:
    return ViTConfig.from_json(dict(settings, id2label=CLASSES))


def checkpoint(folder: Path, kind: str = "ViTForImageClassification", settings: dict[str, Any] = SMALL) -> Any:
    """A model of transformers that is saved in `folder`."""
    pytest.importorskip("torch", reason="compares with transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers", reason="compares with transformers")
        made = seed_torch(getattr(transformers, kind)(transformers.ViTConfig(**settings, num_labels=5)))
        made.save_pretrained(folder)
    return made


def loss(model: Any, images: np.ndarray) -> Any:
    return cross_entropy(model(images), LABELS)


@pytest.mark.parametrize("images", [IMAGES, LARGER], ids=["own size", "another size"])
@pytest.mark.parametrize("settings", [SMALL, UNUSUAL], ids=["usual", "unusual"])
def test_logits_and_gradients_are_those_of_transformers(
    settings: dict[str, Any], images: np.ndarray, tmp_path: Path
) -> None:
    oracle = checkpoint(tmp_path, settings=settings)
    import torch

    given, model = images[:, : settings.get("num_channels", 3)], models.load(tmp_path)
    found = oracle(torch.tensor(given), labels=torch.tensor(LABELS), interpolate_pos_encoding=True)
    assert_close(model(given), found.logits.detach().numpy(), 1e-5)
    found.loss.backward()
    value, gradients = lx.value_and_grad(loss)(model, given)
    assert float(value) == pytest.approx(found.loss.item(), rel=1e-5)
    by_name = gradients_by_name(FAMILY, gradients)
    assert_gradients_close({in_memory(name): array for name, array in by_name.items()}, oracle)


def test_a_saved_model_is_read_by_transformers(tmp_path: Path) -> None:
    oracle = checkpoint(tmp_path / "theirs")
    import torch

    io.save_pretrained(models.load(tmp_path / "theirs"), tmp_path / "ours")
    read, report = type(oracle).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    images = torch.tensor(IMAGES)
    assert torch.equal(read.eval()(images).logits, oracle(images).logits)


def test_a_model_without_classifier_gives_hidden_states(tmp_path: Path) -> None:
    oracle = checkpoint(tmp_path, "ViTModel")
    import torch

    model = models.load(tmp_path)
    wanted = oracle(torch.tensor(IMAGES)).last_hidden_state.detach().numpy()
    assert_close(model.hidden(IMAGES), wanted, 1e-5)


# By transformers 5.23 and torch 2.13 in float64, from the weights and images above.
RECORDED = {
    "own": [-0.45600842, 0.47973899, 0.52074993, -1.54971051, 0.29725941],
    "another": [-0.99047224, 0.95520954, 0.34342757, -0.4478036, -0.03460966],
}


@pytest.mark.parametrize("size", ["own", "another"])
def test_logits_are_the_recorded_ones(size: str) -> None:
    model = seeded_model(FAMILY, config_of(SMALL))
    assert_close(model(IMAGES if size == "own" else LARGER)[0], np.array(RECORDED[size]), 1e-5)


def test_positions_of_a_grid_that_is_not_square_are_kept() -> None:
    """A model of wide images is one whose positions stand in rows of its own width."""
    wide = seeded_model(FAMILY, config_of(dict(SMALL, image_size=(8, 24))))
    assert wide.patches.grid == (2, 6)
    assert wide(LARGER[:, :, :8, :24]).shape == (2, 5)
    places = wide.patches.positions[0, 1:]
    changed = wide.replace(patches=wide.patches.replace(positions=0 * wide.patches.positions))
    added = wide.patches(IMAGES[:, :, :8, :16]) - changed.patches(IMAGES[:, :, :8, :16])
    wanted = lx.image.resize(places.reshape(2, 6, 32), (2, 4, 32), "cubic-pytorch", antialias=False)
    assert_close(added[0, 1:], np.asarray(wanted).reshape(8, 32), 1e-5)


def test_bad_settings_and_arguments_are_named() -> None:
    model = seeded_model(FAMILY, config_of(SMALL))
    with pytest.raises(lx.ShapeError, match=r"images are \[N, 3, H, W\] of at least 4 x 4 pixels, got f32\[3,16,16\]"):
        model(IMAGES[0])
    with pytest.raises(lx.ShapeError, match=r"at least 4 x 4 pixels, got f32\[2,3,3,16\]"):
        model(IMAGES[:, :, :3])
    with pytest.raises(ValueError, match="num_attention_heads=5 must divide hidden_size=32"):
        seeded_model(FAMILY, config_of(dict(SMALL, num_attention_heads=5)))
    with pytest.raises(ValueError, match="this model has no classifier"):
        seeded_model(FAMILY, ViTConfig(**SMALL, architectures=("ViTModel",)))(IMAGES)
