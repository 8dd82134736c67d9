"""JAX's dtype of derivatives by integers, which do not change by small amounts: its elements have no size."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

float0 = np.dtype([("float0", np.void, 0)])


def zeros(shape: Sequence[int]) -> np.ndarray:
    """The derivative by integers: an array of NumPy's, without numbers."""
    return np.zeros(tuple(shape), float0)


def is_float0(part: Any) -> bool:
    """Whether it is an array of elements without size."""
    return isinstance(part, np.ndarray) and part.dtype.itemsize == 0 and part.dtype.kind == "V"
