"""Tensors whose numbers lie in files beside the model: mapped, and only from within the model's folder."""
from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from lavax.base.errors import ONNXError


def external_bytes(tensor: Any, folder: Path | None, size: int) -> np.ndarray:
    """The `size` bytes of a TensorProto's external data, mapped from the file. Raises ONNXError if they are not there.

    The file must be a plain one in `folder` or below it, with links followed.
    """
    facts = {entry.key: entry.value for entry in tensor.external_data}
    path = _within(facts.get("location", ""), folder, tensor.name)
    try:
        offset, length = int(facts.get("offset", 0)), int(facts.get("length", size))
    except ValueError:
        raise ONNXError(f"onnx.load: tensor {tensor.name!r} has an offset or a length that is no number") from None
    if length != size:
        raise ONNXError(f"onnx.load: tensor {tensor.name!r} needs {size} bytes, its external data has {length}")
    held = path.stat().st_size
    if offset < 0 or offset + size > held:
        raise ONNXError(
            f"onnx.load: tensor {tensor.name!r} lies at bytes {offset} to {offset + size} of {path.name}, "
            f"which has {held}"
        )
    return np.memmap(path, np.uint8, "r", offset, (size,)) if size else np.zeros(0, np.uint8)


def _within(location: str, folder: Path | None, name: str) -> Path:
    if folder is None:
        raise ONNXError(
            f"onnx.load: tensor {name!r} has external data ({location!r}), but the model was given as bytes; "
            "give the path of its file"
        )
    wanted = PurePosixPath(location.replace(os.sep, "/"))
    root = folder.resolve()
    try:
        path = (root / wanted).resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a zero byte
        raise ONNXError(f"onnx.load: tensor {name!r} has no valid location: {location!r:.200}") from None
    if not location or wanted.is_absolute() or ".." in wanted.parts or not path.is_relative_to(root):
        raise ONNXError(f"onnx.load: tensor {name!r} has external data outside the model's folder: {location!r:.200}")
    if not path.is_file():
        raise ONNXError(f"onnx.load: tensor {name!r} needs the file {location!r:.200}, which is not beside the model")
    return path
