"""Arrays of a device as NumPy's, in their own dtype."""
from __future__ import annotations

from typing import Any

import numpy as np


def on_host(array: Any) -> np.ndarray:
    """The array in NumPy, bfloat16 as ml_dtypes has it; waits for its contents."""
    found = np.asarray(array)
    dtype = getattr(array, "dtype", found.dtype)
    return found if found.dtype == dtype else found.astype(dtype)
