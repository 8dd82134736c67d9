"""Folders of text-to-image models, in the layout of diffusers: a folder for each part, and model_index.json."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from lavax.io.pretrained import save_pretrained
from lavax.models.diffusion.pipeline import TextToImage
from lavax.models.diffusion.prompts import PromptTokenizer
from lavax.models.diffusion.schedule import NoiseSchedule
from lavax.models.load import load

_PIPELINE = "StableDiffusionPipeline"
_SCHEDULER = "DDIMScheduler"  # for a schedule that no folder gave
# The parts of the pipeline that have weights: folder -> field of TextToImage, library and class.
_MODELS = {
    "text_encoder": ("text_encoder", "transformers", "CLIPTextModel"),
    "unet": ("unet", "diffusers", "UNet2DConditionModel"),
    "vae": ("autoencoder", "diffusers", "AutoencoderKL"),
}
_ABSENT = ("feature_extractor", "image_encoder", "safety_checker")


def load_pipeline(
    folder: str | os.PathLike[str], *, dtype: Any = "float32", variant: str | None = None
) -> TextToImage:
    """The models of a folder in the layout of diffusers: tokenizer, text_encoder, unet, vae and scheduler.

    Any scheduler's folder gives the noise schedule; the sampler is chosen at the call. Weights are converted to
    `dtype`, but latents stay float32 between steps; `variant` is as for `models.load`. Raises ValueError for the folder
    of another pipeline, FileNotFoundError if a file is missing.
    """
    path = Path(folder)
    kind = _read(path / "model_index.json").get("_class_name")
    if kind != _PIPELINE:
        raise ValueError(f"load_pipeline: model_index.json is of {kind}, only {_PIPELINE} is supported")
    models = {field: load(path / name, dtype=dtype, variant=variant) for name, (field, _, _) in _MODELS.items()}
    schedule = NoiseSchedule.from_json(_read(path / "scheduler" / "scheduler_config.json"))
    return TextToImage(tokenizer=PromptTokenizer.load(path / "tokenizer"), schedule=schedule, **models)


def save_pipeline(pipeline: TextToImage, folder: str | os.PathLike[str]) -> None:
    """Writes models as `load_pipeline` and diffusers' `StableDiffusionPipeline.from_pretrained` read them."""
    path = Path(folder)
    for name, (field, _, _) in _MODELS.items():
        save_pretrained(getattr(pipeline, field), path / name)
    pipeline.tokenizer.save(path / "tokenizer")
    scheduler = {"_class_name": _SCHEDULER, **pipeline.schedule.to_json()}
    index: dict[str, Any] = {name: [library, kind] for name, (_, library, kind) in _MODELS.items()}
    index |= {"tokenizer": ["transformers", "CLIPTokenizer"], "scheduler": ["diffusers", scheduler["_class_name"]]}
    index |= {name: [None, None] for name in _ABSENT}
    _write(path / "scheduler" / "scheduler_config.json", scheduler)
    _write(path / "model_index.json", {"_class_name": _PIPELINE, "requires_safety_checker": False, **index})


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _write(file: Path, data: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
