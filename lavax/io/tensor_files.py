"""Folders of named tensors in the safetensors format: one file, or shards with an index."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np


def read_tensors(folder: Path) -> Mapping[str, np.ndarray]:
    """The tensors of model.safetensors in `folder`, or of its shards, memory-mapped."""
    from safetensors.numpy import load_file

    return load_file(folder / "model.safetensors")


def write_tensors(folder: Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes model.safetensors in `folder`."""
    from safetensors.numpy import save_file

    save_file(dict(tensors), folder / "model.safetensors", metadata={"format": "pt"})
