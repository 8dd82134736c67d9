"""Folders of text-to-image models, in the layout of diffusers: a folder for each part, and model_index.json."""
from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from lavax.io.json_files import read_json
from lavax.io.pretrained import save_pretrained
from lavax.models.diffusion.pipeline import TextToImage
from lavax.models.diffusion.pipeline_xl import TextToImageXL
from lavax.models.diffusion.prompts import PromptTokenizer
from lavax.models.diffusion.schedule import NoiseSchedule
from lavax.models.load import load

_SCHEDULER = "DDIMScheduler"  # for a schedule that no folder gave
# What model_index.json calls a pipeline -> its class here.
_KINDS: dict[str, type[TextToImage]] = {
    "StableDiffusionPipeline": TextToImage,
    "StableDiffusionXLPipeline": TextToImageXL,
}
# Its parts: folder -> field of the class, library and class there. Those of XL alone end in 2.
_MODELS = {
    "text_encoder": ("text_encoder", "transformers", "CLIPTextModel"),
    "text_encoder_2": ("second_text_encoder", "transformers", "CLIPTextModelWithProjection"),
    "unet": ("unet", "diffusers", "UNet2DConditionModel"),
    "vae": ("autoencoder", "diffusers", "AutoencoderKL"),
}
_TOKENIZERS = {"tokenizer": "tokenizer", "tokenizer_2": "second_tokenizer"}
_ABSENT = ("feature_extractor", "image_encoder")
_ZEROS = "force_zeros_for_empty_prompt"


def load_pipeline(
    folder: str | os.PathLike[str], *, dtype: Any = "float32", variant: str | None = None
) -> TextToImage:
    """The models of a folder in the layout of diffusers: tokenizer, text_encoder, unet, vae and scheduler.

    Those of Stable Diffusion 1 and 2 give a `TextToImage`, those of XL a `TextToImageXL`. Any scheduler's folder gives
    the noise schedule; the sampler is chosen at the call. Weights are converted to `dtype`, but latents stay float32
    between steps; `variant` is as for `models.load`. Raises ValueError for the folder of another pipeline,
    FileNotFoundError if a file is missing.
    """
    path = Path(folder)
    index = _read(path / "model_index.json")
    kind = _KINDS.get(index.get("_class_name", ""))
    if kind is None:
        known = ", ".join(_KINDS)
        raise ValueError(f"load_pipeline: model_index.json is of {index.get('_class_name')}; there are {known}")
    fields = {entry.name for entry in dataclasses.fields(kind)}
    parts: dict[str, Any] = {
        field: load(path / name, dtype=dtype, variant=variant)
        for name, (field, _, _) in _MODELS.items()
        if field in fields
    }
    parts |= {field: PromptTokenizer.load(path / name) for name, field in _TOKENIZERS.items() if field in fields}
    if kind is TextToImageXL:
        parts["zeros_for_empty"] = index.get(_ZEROS, True)
    return kind(schedule=NoiseSchedule.from_json(_read(path / "scheduler" / "scheduler_config.json")), **parts)


def save_pipeline(pipeline: TextToImage, folder: str | os.PathLike[str]) -> None:
    """Writes models as `load_pipeline` and `from_pretrained` of diffusers' pipelines read them."""
    path = Path(folder)
    (name_of_kind,) = (name for name, kind in _KINDS.items() if kind is type(pipeline))
    index: dict[str, Any] = {"_class_name": name_of_kind}
    for name, (field, library, kind) in _MODELS.items():
        if hasattr(pipeline, field):
            save_pretrained(getattr(pipeline, field), path / name)
            index[name] = [library, kind]
    for name, field in _TOKENIZERS.items():
        if hasattr(pipeline, field):
            getattr(pipeline, field).save(path / name)
            index[name] = ["transformers", "CLIPTokenizer"]
    if isinstance(pipeline, TextToImageXL):
        index[_ZEROS] = pipeline.zeros_for_empty
    else:
        index |= {"requires_safety_checker": False, "safety_checker": [None, None]}
    scheduler = {"_class_name": _SCHEDULER, **pipeline.schedule.to_json()}
    index |= {"scheduler": ["diffusers", scheduler["_class_name"]], **{name: [None, None] for name in _ABSENT}}
    _write(path / "scheduler" / "scheduler_config.json", scheduler)
    _write(path / "model_index.json", index)


def _read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_json(file)
    return found


def _write(file: Path, data: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
