"""From the many ways a user names a dtype to the dtypes that lavax has."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.ir.types import DType, bool_, float32, int32, uint32
from lavax.numpy.errors import dtype_error

# What an array of each NumPy dtype becomes: 64-bit numbers are held in 32 bits.
_CANONICAL: dict[np.dtype, DType] = {
    np.dtype(np.bool_): bool_,
    np.dtype(np.int32): int32,
    np.dtype(np.int64): int32,
    np.dtype(np.uint32): uint32,
    np.dtype(np.uint64): uint32,
    np.dtype(np.float32): float32,
    np.dtype(np.float64): float32,
}


def canonical_dtype(dtype: Any) -> DType:
    """The dtype that `dtype` stands for: one of lavax, of NumPy, a name such as "float32", or float, int, bool.

    Raises DtypeError where lavax has no such dtype.
    """
    if isinstance(dtype, DType):
        return dtype
    try:
        return _CANONICAL[np.dtype(dtype)]
    except (TypeError, KeyError):
        raise dtype_error(f"{dtype!r} is not a dtype of lavax: use float32, int32, uint32 or bool") from None
