"""What loading and saving must know of a family of models: how to build one, and its names in published files."""
from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.models.config import Config
from lavax.models.tensors import Tensors
from lavax.nn.modules.module import Module

WRITER = "CAUSAL_LM"  # peft's word for a language model, in the files of its adapters


@dataclass(frozen=True)
class Family:
    """A family of models with one form of checkpoint.

    `build(config, key=, dtype=)` makes a model with random weights; its static field `config` is a `config` here.
    `names` turn the path of a leaf, such as `layers.0.norm.weight`, into its name in the file: pairs for `re.sub`,
    applied one after another. A `*` in a name stands for a number: the file holds the rows of the leaf one by one.
    Tensors whose name in the file matches `transposed` are stored with the last two axes exchanged. `prepared` gets
    all tensors of a file, and returns them under these names: older files may lack a prefix, or hold three matrices as
    one. `published` is its inverse where files are like that today. `adapted` gets the configuration and the prepared
    tensors, and returns the configuration with what only they tell, such as whether there is an optional layer. Names
    that match `optional` are in files, but no model reads them.
    """

    config: type[Config]
    build: Callable[..., Module]
    names: tuple[tuple[str, str], ...]
    transposed: str = r"(?!)"  # matches nothing
    prepared: Callable[[Tensors, Any], Tensors] = lambda tensors, config: tensors
    published: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] = dict
    adapted: Callable[[Any, Tensors], Any] = lambda config, tensors: config
    optional: str = r"(?!)"  # names in the file that the model does not read, without a warning
    adapter_task: str | None = None  # what peft's files of adapters call the task of the model, such as WRITER

    def name_in_file(self, path: str) -> str:
        """The name under which published files hold the leaf at `path`."""
        for pattern, replacement in self.names:
            path = re.sub(pattern, replacement, path)
        return path

    def is_transposed(self, name: str) -> bool:
        """Whether the file holds the tensor with its last two axes exchanged."""
        return re.search(self.transposed, name) is not None


# What config.json says the model is -> the module of lavax.models whose FAMILY describes it.
FAMILIES: dict[str, str] = {
    "AutoencoderKL": "diffusion.autoencoder",
    "bert": "encoders.bert",
    "camembert": "encoders.roberta",
    "clip": "vision.clip",
    "clip_text_model": "vision.clip_text",
    "convnext": "convolution.convnext",
    "convnextv2": "convolution.convnext_v2",
    "distilbert": "encoders.distilbert",
    "efficientnet": "convolution.efficientnet",
    "gemma": "llama",
    "gemma2": "gemma",
    "gemma3_text": "gemma",
    "gpt2": "gpt2",
    "llama": "llama",
    "mamba": "mamba",
    "mamba2": "mamba2",
    "mistral": "llama",
    "phi3": "phi3",
    "qwen2": "llama",
    "qwen3": "llama",
    "roberta": "encoders.roberta",
    "resnet": "convolution.resnet",
    "mixtral": "mixtral",
    "qwen3_moe": "qwen3_moe",
    "small_unet": "diffusion.small_unet",
    "UNet2DConditionModel": "diffusion.unet",
    "vit": "vision.vit",
    "whisper": "whisper.whisper",
    "xlm-roberta": "encoders.roberta",
    "smolvla": "smolvla.expert",
}

# Where config.json says what model it is: transformers, diffusers, lerobot.
_KINDS = ("model_type", "_class_name", "type")


def kind_of(data: Mapping[str, Any]) -> str:
    """What model a config.json is of: its "model_type", or the entry that other libraries have in its place."""
    return next((str(data[name]) for name in _KINDS if data.get(name)), "")


def family_of(model_type: str) -> Family:
    """The family of a config.json's `kind_of`. Raises ValueError if there is none."""
    module = FAMILIES.get(model_type)
    if module is None:
        raise ValueError(f"config.json: no model_type {model_type!r}; there are {', '.join(sorted(FAMILIES))}")
    family: Family = importlib.import_module(f"lavax.models.{module}").FAMILY
    return family
