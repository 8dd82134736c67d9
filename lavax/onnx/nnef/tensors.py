"""Tensor files of NNEF: a header of 128 bytes, then the numbers, the first axis slowest (NNEF 1.0, chapter 5)."""
from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np

from lavax.base.errors import ONNXError

_HEADER, _MOST_AXES = 128, 8
_KINDS = {0: "f", 1: "u", 2: "u", 3: "i", 4: "i", 5: "b"}  # of items
_QUANTISED = (2, 3)
_WIDTHS = {"f": (16, 32, 64), "u": (8, 16, 32, 64), "i": (8, 16, 32, 64), "b": (1, 8)}


def tensor_of(folder: Path, label: str) -> tuple[np.ndarray, bool]:
    """The tensor in the file of a variable's label, mapped, and whether its integers are quantised numbers.

    Raises ONNXError if it is damaged or outside the folder.
    """
    path = _within(folder, f"{label}.dat")
    size = path.stat().st_size
    if size < _HEADER:
        raise ONNXError(f"onnx.load_nnef: {path.name} is shorter than the header of a tensor file")
    with path.open("rb") as file:
        header = file.read(_HEADER)
    if header[:3] != b"\x4e\xef\x01":
        raise ONNXError(f"onnx.load_nnef: {path.name} is no tensor file of NNEF 1")
    length, rank, *extents = (int(number) for number in np.frombuffer(header, "<u4", 2 + _MOST_AXES, 4))
    bits, item, is_signed = (int(number) for number in np.frombuffer(header, "<u4", 3, 44))
    kind = _KINDS.get(4 if item == 1 and is_signed else item)
    if kind is None or bits not in _WIDTHS[kind]:
        raise ONNXError(f"onnx.load_nnef: {path.name} has items of type {item} and {bits} bits: not supported")
    if rank > _MOST_AXES:
        raise ONNXError(f"onnx.load_nnef: {path.name} has {rank} axes, more than {_MOST_AXES}")
    shape = tuple(extents[:rank])
    count = prod(shape)
    if length != -(-count * bits // 8) or size != _HEADER + length:
        raise ONNXError(f"onnx.load_nnef: {path.name} of shape {shape} has {size - _HEADER} bytes of numbers")
    if not length:
        return np.zeros(shape, np.float32), False
    words = np.memmap(path, np.uint8, "r", _HEADER, (length,))
    if bits == 1:
        return np.unpackbits(words)[:count].astype(bool).reshape(shape), False
    dtype = np.dtype(bool) if kind == "b" else np.dtype(f"<{kind}{bits // 8}")
    return words.view(dtype).reshape(shape), item in _QUANTISED


def _within(folder: Path, name: str) -> Path:
    root = folder.resolve()
    try:
        path = (root / name).resolve()
    except (OSError, RuntimeError, ValueError):
        raise ONNXError(f"onnx.load_nnef: {name!r:.200} is no path") from None
    if not path.is_relative_to(root):
        raise ONNXError(f"onnx.load_nnef: {name!r:.200} lies outside the model's folder")
    if not path.is_file():
        raise ONNXError(f"onnx.load_nnef: the file {name!r:.200} is not in the model's folder")
    return path
