"""Streams of tokens as examples for language models."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np


class Windows:
    """Windows of a stream of tokens: a sequence of `(inputs, targets)`, int32 [length] each, for `data.Loader`.

    The targets are the tokens that follow the inputs: the same window, one token later.
    """

    def __init__(self, stream: np.ndarray, length: int, stride: int) -> None:
        self._stream, self._length, self._stride = stream, length, stride

    def __len__(self) -> int:
        return max(0, (len(self._stream) - self._length - 1) // self._stride + 1)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"there are {count} windows, got the index {index}")
        inputs, targets = self.batch(np.array([index % count]))
        return inputs[0], targets[0]

    def batch(self, indices: Any) -> tuple[np.ndarray, np.ndarray]:
        """`(inputs, targets)` of the windows at these places, int32 [B, length] each."""
        places = np.arange(*indices.indices(len(self))) if isinstance(indices, slice) else indices
        starts = places.astype(np.int64) * self._stride
        found = self._stream[starts[:, None] + np.arange(self._length + 1)].astype(np.int32)
        return found[:, :-1], found[:, 1:]


def tokens(source: Any, length: int, *, stride: int | None = None, dtype: Any = "uint16") -> Windows:
    """Windows of `length` tokens, each with its targets, from a stream of tokens.

    `source`: integers [N], or the path of a file of them, which is memory-mapped: `.npy`, or bare numbers of `dtype`.
    `stride`: from one window's beginning to the next one's; by default `length`, so that every token is a target once.
    Raises ValueError if the stream is too short, or not one-dimensional, and TypeError if it has no integers.
    """
    stream = _mapped(Path(source), dtype) if isinstance(source, (str, os.PathLike)) else np.asanyarray(source)
    if stream.ndim != 1:
        raise ValueError(f"tokens: a stream of tokens has one axis, got the shape {stream.shape}")
    if stream.dtype.kind not in "iu":
        raise TypeError(f"tokens: tokens are integers, got {stream.dtype}")
    if length < 1 or (stride is not None and stride < 1):
        raise ValueError(f"tokens: length and stride must be at least 1, got {length} and {stride}")
    windows = Windows(stream, length, length if stride is None else stride)
    if not len(windows):
        raise ValueError(f"tokens: a window of {length} and the token behind it need more than {len(stream)} tokens")
    return windows


def _mapped(path: Path, dtype: Any) -> np.ndarray:
    if path.suffix == ".npy":
        found: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        return found
    if path.stat().st_size % np.dtype(dtype).itemsize or not path.stat().st_size:
        raise ValueError(f"tokens: {path} has {path.stat().st_size} bytes, which are no numbers of {np.dtype(dtype)}")
    return np.memmap(path, dtype, "r")
