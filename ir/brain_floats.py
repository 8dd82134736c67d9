"""bfloat16 on the host: the upper half of a float32, which NumPy has no dtype for."""
from __future__ import annotations

from typing import Any

import numpy as np


class BrainFloat16:
    """The dtype bfloat16 as users see it: equal to its name and to other libraries' dtype of that name."""

    name = "bfloat16"
    itemsize = 2
    kind = "f"

    def __eq__(self, other: object) -> bool:
        return other == "bfloat16" if isinstance(other, str) else getattr(other, "name", None) == "bfloat16"

    def __hash__(self) -> int:
        return hash("bfloat16")

    def __repr__(self) -> str:
        return "dtype(bfloat16)"

    def __reduce__(self) -> str:
        return "BFLOAT16"


BFLOAT16 = BrainFloat16()


def is_brain_float(dtype: Any) -> bool:
    """Whether `dtype` (lavax's, a name, or another library's) is bfloat16."""
    return bool(dtype == BFLOAT16)


def brain_floats_to_bits(numbers: np.ndarray) -> np.ndarray:
    """Numbers, or another library's array of bfloat16, as bits in uint16; rounded to the nearest even."""
    if is_brain_float(numbers.dtype):
        return numbers.view(np.uint16)
    with np.errstate(over="ignore"):
        single = numbers.astype(np.float32)
    bits = np.atleast_1d(single).view(np.uint32)
    if numbers.dtype.itemsize > 4 and numbers.dtype.kind == "f":
        bits = _rounded_to_odd(np.atleast_1d(numbers), np.atleast_1d(single))
    nearest = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    quiet = bits >> np.uint32(16) | np.uint32(0x40)
    is_nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return np.where(is_nan, quiet, nearest).astype(np.uint16).reshape(numbers.shape)


def _rounded_to_odd(numbers: np.ndarray, single: np.ndarray) -> np.ndarray:
    """The bits of float32 numbers such that rounding them on rounds `numbers` once."""
    bits = single.view(np.uint32)
    precise = single.astype(np.float64)
    below = bits - (np.abs(precise) > np.abs(numbers)).astype(np.uint32)
    inexact = (precise != numbers) & ~np.isnan(numbers)
    return np.where(inexact, below | np.uint32(1), bits)


def brain_floats_from_bits(bits: np.ndarray) -> np.ndarray:
    """The numbers of bits in uint16, in float32."""
    return (np.atleast_1d(bits).astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(bits.shape)
