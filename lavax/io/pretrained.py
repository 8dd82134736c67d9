"""Folders in the layout of Hugging Face: config.json and model.safetensors."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lavax.io.tensor_files import write_tensors


class Pretrained(Protocol):
    """A model that says what its folder holds."""

    def to_pretrained(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]: ...


def weights_stem(config: Mapping[str, Any]) -> str:
    """The name of the file of weights, without its suffix. Folders of diffusers have a name of their own for it."""
    return "diffusion_pytorch_model" if "_class_name" in config else "model"


def save_pretrained(model: Pretrained, folder: str | os.PathLike[str]) -> None:
    """Writes a model as `models.load` and the transformers library read it."""
    data, tensors = model.to_pretrained()
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    write_tensors(path, tensors, weights_stem(data))
    (path / "config.json").write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
