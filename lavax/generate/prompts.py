"""Prompts of different lengths as one array, of a length that few compiled functions serve."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass

_SHORTEST = 16


def bucket_of(length: int) -> int:
    """The length that arrays get for `length` tokens: at most a quarter more, or 16."""
    if length <= _SHORTEST:
        return _SHORTEST
    unit = 1 << max((length - 1).bit_length() - 3, 4)
    return -(-length // unit) * unit


@dataclass(frozen=True, eq=False)
class Prompts:
    """Tokens [B, T] and how many of each row count, both int32."""

    ids: np.ndarray
    lengths: np.ndarray

    @property
    def longest(self) -> int:
        return int(self.lengths.max())

    def padded(self, pad: int, room: int | None) -> np.ndarray:
        """The tokens in rows of a bucket's length, or of the model's `room`, filled with `pad`."""
        length = bucket_of(self.longest) if room is None else min(bucket_of(self.longest), room)
        found = np.full((len(self.lengths), length), pad, np.int32)
        for row, count in enumerate(self.lengths):
            found[row, :count] = self.ids[row, :count]
        return found


def prompts_of(ids: Any, lengths: Any = None) -> Prompts:
    """Prompts from an array [B, T] with or without lengths [B], or from a list of B prompts.

    Raises ValueError for other shapes, no rows, and prompts without tokens; TypeError for what are no integers.
    """
    if isinstance(ids, (list, tuple)) and ids and not np.isscalar(ids[0]) and lengths is None:
        rows = [np.asarray(row) for row in ids]
        if any(row.ndim != 1 for row in rows):
            raise ValueError(f"generate: a list of prompts holds lists of tokens, got shapes {[r.shape for r in rows]}")
        counts = np.array([len(row) for row in rows], np.int32)
        array = np.zeros((len(rows), int(counts.max(initial=0))), np.int64)
        for position, row in enumerate(rows):
            _require_integers(row)
            array[position, : len(row)] = row
    else:
        array = np.asarray(ids)
        if array.ndim != 2:
            raise ValueError(f"generate: ids are tokens [B, T] or a list of prompts, got the shape {array.shape}")
        _require_integers(array)
        counts = np.full(len(array), array.shape[1], np.int32) if lengths is None else np.asarray(lengths, np.int32)
    if counts.shape != (len(array),) or not len(array):
        raise ValueError(f"generate: lengths must be [{len(array)}], one per prompt, got {list(counts.shape)}")
    if counts.min() < 1 or counts.max() > array.shape[1]:
        raise ValueError(f"generate: lengths must lie between 1 and {array.shape[1]}, got {counts.tolist()}")
    return Prompts(array.astype(np.int32), counts)


def _require_integers(array: np.ndarray) -> None:
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"generate: tokens are integers, got {array.dtype}")
