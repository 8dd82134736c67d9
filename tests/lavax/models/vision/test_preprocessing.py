"""Pictures as input: against the processors of transformers, and recorded values."""
from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lavax.models.vision import Preprocessing

pytestmark = pytest.mark.usefixtures("reference_backend")

draw = np.random.default_rng(3)
WIDE, TALL, SMALL = (draw.integers(0, 256, (h, w, 3)).astype(np.uint8) for h, w in ((37, 52), (60, 41), (9, 14)))

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("ViT", {"size": {"height": 24, "width": 20}}),
    "vit, nearest": ("ViT", {"size": {"height": 24, "width": 20}, "resample": 0}),
    "clip": ("CLIP", {"size": {"shortest_edge": 20}, "crop_size": {"height": 16, "width": 18}}),
    "clip, larger part": ("CLIP", {"size": {"shortest_edge": 20}, "crop_size": {"height": 33, "width": 40}}),
    "convnext": ("ConvNext", {"size": {"shortest_edge": 21}, "crop_pct": 0.875}),
    "convnext, warped": ("ConvNext", {"size": {"shortest_edge": 384}}),
    "efficientnet": ("EfficientNet", {"size": {"height": 30, "width": 26}, "image_std": [0.4, 0.5, 0.6]}),
    "efficientnet, once": (
        "EfficientNet",
        dict(size={"height": 30, "width": 26}, include_top=False, rescale_offset=True, rescale_factor=1 / 127.5),
    ),
    "as it is": ("ViT", {"do_resize": False, "do_normalize": False}),
    "of whole numbers": ("ViT", {"do_rescale": False, "size": {"height": 8, "width": 8}}),
}


@pytest.mark.parametrize("picture", [WIDE, TALL, SMALL], ids=["wide", "tall", "small"])
@pytest.mark.parametrize("name", SETTINGS)
def test_pixels_are_those_of_transformers(name: str, picture: np.ndarray, tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="compares with transformers, which resizes by PIL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers", reason="compares with transformers")
        kind, settings = SETTINGS[name]
        oracle = getattr(transformers, f"{kind}ImageProcessorPil")(**settings)
        oracle.save_pretrained(tmp_path)
        wanted = np.asarray(oracle(picture)["pixel_values"])
    prepare = Preprocessing.load(tmp_path)
    found = prepare(picture)
    assert found.dtype == np.float32 and found.shape == wanted.shape
    assert np.max(np.abs(found - wanted)) <= 1e-5


def prepared(kind: str, **settings: Any) -> Preprocessing:
    return Preprocessing.from_json({"image_processor_type": f"{kind}ImageProcessor", **settings})


# By transformers 5.23 with PIL 13.
RECORDED = [[-0.0405, -0.0405, 0.1347], [0.2139, 0.289, 0.1539], [0.3542, 0.1977, 0.3399]]


def test_pixels_are_the_recorded_ones() -> None:
    found = prepared("CLIP", size={"shortest_edge": 4}, crop_size={"height": 3, "width": 3})(WIDE)[0, :, 1]
    assert np.max(np.abs(found - np.array(RECORDED))) <= 1e-4


def test_files_of_older_versions_mean_the_same() -> None:
    older = Preprocessing.from_json({"feature_extractor_type": "CLIPFeatureExtractor", "size": 20, "crop_size": 16})
    assert older == prepared("CLIP", size={"shortest_edge": 20}, crop_size={"height": 16, "width": 16})
    assert prepared("ViT", size=24) == prepared("ViT", size={"height": 24, "width": 24})


def test_pictures_come_in_many_forms() -> None:
    prepare = prepared("ViT", size={"height": 8, "width": 8})
    one = prepare(WIDE)
    assert one.shape == (1, 3, 8, 8)
    assert np.array_equal(prepare([WIDE, TALL])[:1], one)
    assert np.array_equal(prepare(np.stack([WIDE, WIDE]))[1:], one)
    assert np.allclose(prepare(WIDE / 255), one, atol=1e-6)
    grey = prepare(WIDE[:, :, 0])
    assert np.array_equal(grey[:, 0], grey[:, 2])


def test_bad_input_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has no preprocessor_config\.json"):
        Preprocessing.load(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"image_processor_type": "DonutImageProcessor"}))
    with pytest.raises(ValueError, match="processors of ViT, CLIP, ConvNext, EfficientNet, got"):
        Preprocessing.load(tmp_path)
    with pytest.raises(ValueError, match="resample is one of 0, 1, 2, 3, 4, 5, got 6"):
        prepared("ViT", resample=6)
    prepare = prepared("ViT")
    with pytest.raises(ValueError, match=r"a picture is \[H, W, 3\] or \[H, W\], got shape \(4, 4, 7\)"):
        prepare(np.zeros((4, 4, 7), np.uint8))
    with pytest.raises(ValueError, match="pixels are uint8, or floats from 0 to 1, got int64"):
        prepare(np.zeros((4, 4, 3), int))
    with pytest.raises(ValueError, match=r"leave sizes \(37, 52\), \(60, 41\): give such pictures one by one"):
        prepared("ViT", do_resize=False)([WIDE, TALL])
