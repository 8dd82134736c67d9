"""Questions about dtypes, as in jax.dtypes."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.base.errors import DtypeError
from lavax.numpy import bfloat16, finfo, iinfo, issubdtype, result_type
from lavax.tracer.tracing.convert import dtype_of
from lavax.tracer.tracing.float0 import float0
from lavax.tracer.values.key_array import KEY, extended, prng_key

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]

TypePromotionError = DtypeError


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that arrays made from data of `dtype` get: 32 bits for 64, unless 64-bit dtypes are enabled.

    As in NumPy, None stands for the default float.
    With `allow_extended_dtype` that of keys is itself. Raises DtypeError for what is no dtype here.
    """
    if allow_extended_dtype and dtype == KEY:
        return dtype
    return dtype_of(float if dtype is None else dtype).user


def itemsize_bits(dtype: Any) -> int:
    """The number of bits of an element in memory."""
    return 8 * np.dtype(dtype_of(dtype).user).itemsize


def scalar_type_of(x: Any) -> type:
    """The Python type of an element: bool, int, float or complex. Raises DtypeError for other data."""
    kind = dtype_of(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype).kind
    return {"bool": bool, "float": float, "complex": complex}.get(kind, int)
