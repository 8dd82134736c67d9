"""Folders in the layout of Hugging Face: config.json, model.safetensors, and the tokenizer's files."""
from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lavax.io.atomic import replaced
from lavax.io.tensor_files import MAX_SHARD_SIZE, write_tensors

# What else a published folder may hold that belongs to the tokenizer, or to generation and preprocessing.
_TOKENIZER_FILES = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "tokenizer.model"),
    *("vocab.json", "merges.txt", "vocab.txt", "spiece.model", "normalizer.json", "chat_template.jinja"),
    *("generation_config.json", "preprocessor_config.json", "processor_config.json"),
)


class Pretrained(Protocol):
    """A model that says what its folder holds."""

    def to_pretrained(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]: ...


def weights_stem(config: Mapping[str, Any]) -> str:
    """The name of the file of weights, without its suffix. Folders of diffusers have a name of their own for it."""
    return "diffusion_pytorch_model" if "_class_name" in config else "model"


def save_pretrained(
    model: Pretrained,
    folder: str | os.PathLike[str],
    *,
    tokenizer: Any = None,
    max_shard_size: int | str = MAX_SHARD_SIZE,
) -> None:
    """Writes a model as `models.load` and the transformers library read it.

    `tokenizer`: the folder from which the tokenizer's files are copied, such as the one that the model was loaded from;
    or a tokenizer, of the tokenizers package or of transformers. Weights of more than `max_shard_size`, in bytes or as
    "5GB", become several files with an index. Every file is written whole or not at all.

    Raises TypeError for another tokenizer, FileNotFoundError if its folder has no files of a tokenizer, and ValueError
    for another size.
    """
    data, tensors = model.to_pretrained()
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    if tokenizer is not None:
        _save_tokenizer(tokenizer, path)
    write_tensors(path, tensors, weights_stem(data), max_shard_size)
    with replaced(path / "config.json") as temporary:
        temporary.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _save_tokenizer(tokenizer: Any, folder: Path) -> None:
    if isinstance(tokenizer, (str, os.PathLike)):
        _copy_tokenizer(Path(tokenizer), folder)
    elif hasattr(tokenizer, "save_pretrained"):
        tokenizer.save_pretrained(str(folder))
    elif hasattr(tokenizer, "save"):
        with replaced(folder / "tokenizer.json") as temporary:
            tokenizer.save(str(temporary))
    else:
        raise TypeError(
            "save_pretrained: tokenizer must be a folder, or a tokenizer of the tokenizers package or of transformers, "
            f"got a {type(tokenizer).__name__}"
        )


def _copy_tokenizer(source: Path, folder: Path) -> None:
    found = [source / name for name in _TOKENIZER_FILES if (source / name).is_file()]
    if not found:
        raise FileNotFoundError(f"save_pretrained: {source} has no files of a tokenizer, such as tokenizer.json")
    for path in found:
        if not (folder / path.name).exists() or not path.samefile(folder / path.name):
            with replaced(folder / path.name) as temporary:
                shutil.copyfile(path, temporary)
