"""bfloat16 on the host. The dtype is that of ml_dtypes, whose import also teaches NumPy the name "bfloat16"."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

_NAME = "bfloat16"
BRAIN_FLOAT: np.dtype = np.dtype(ml_dtypes.bfloat16)


def is_brain_float(dtype: Any) -> bool:
    """Whether `dtype` (lavax's, NumPy's, a name, or another library's) is bfloat16."""
    return (dtype if isinstance(dtype, str) else getattr(dtype, "name", None)) == _NAME


def brain_floats_to_bits(numbers: np.ndarray) -> np.ndarray:
    """Rounds numbers to the nearest even and returns their bits in uint16."""
    if numbers.dtype.itemsize > 4 and numbers.dtype.kind == "f":
        numbers = _rounded_to_odd(numbers)
    elif is_narrow(numbers.dtype):
        numbers = numbers.astype(np.float32)  # exact; ml_dtypes 0.4 and 0.5.0 make no bfloat16 of integers of 4 bits
    with np.errstate(over="ignore", invalid="ignore"):
        return numbers.astype(BRAIN_FLOAT, copy=False).view(np.uint16)


def _rounded_to_odd(numbers: np.ndarray) -> np.ndarray:
    """Numbers in float32 that round to the same bfloat16; needed because ml_dtypes rounds float64 to float32 first."""
    with np.errstate(over="ignore"):
        single = numbers.astype(np.float32)
    bits = np.atleast_1d(single).view(np.uint32).reshape(numbers.shape)
    precise = single.astype(np.float64)
    below = bits - (np.abs(precise) > np.abs(numbers)).astype(np.uint32)
    inexact = (precise != numbers) & ~np.isnan(numbers)
    return np.asarray(np.where(inexact, below | np.uint32(1), bits)).view(np.float32)


def is_narrow(dtype: Any) -> bool:
    """Whether it is one of ml_dtypes' floats of 4 to 8 bits or integers of 1 to 4, which are no dtypes of lavax."""
    return isinstance(dtype, np.dtype) and dtype.isbuiltin == 2 and dtype.itemsize == 1


def as_brain_floats(numbers: np.ndarray) -> np.ndarray:
    """Numbers in float32 that are bfloat16's, in that dtype: the upper halves of their bits, those of NaN as well."""
    words = np.ascontiguousarray(numbers, np.float32).view(np.uint32) >> np.uint32(16)
    return np.asarray(words, np.uint16).view(BRAIN_FLOAT).reshape(numbers.shape)


def brain_floats_from_bits(bits: np.ndarray) -> np.ndarray:
    """Converts bits in uint16 to numbers in float32."""
    return bits.view(BRAIN_FLOAT).astype(np.float32)
