"""Folders of named tensors in the safetensors format: one file, or shards with an index."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np


def read_tensors(folder: Path, stem: str = "model") -> Mapping[str, np.ndarray]:
    """The tensors of `stem`.safetensors in `folder`, or of its shards, memory-mapped."""
    from safetensors.numpy import load_file

    return load_file(folder / f"{stem}.safetensors")


def write_tensors(folder: Path, tensors: Mapping[str, np.ndarray], stem: str = "model") -> None:
    """Writes `stem`.safetensors in `folder`."""
    from safetensors.numpy import save_file

    save_file(dict(tensors), folder / f"{stem}.safetensors", metadata={"format": "pt"})
