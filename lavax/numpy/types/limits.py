"""The limits of dtypes."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lavax.ir import types
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error
from lavax.tracer.values.value import Value

__all__ = ["finfo", "iinfo"]


@dataclass(frozen=True)
class BrainFloatLimits:
    """The limits of bfloat16, under the names that numpy.finfo has for them."""

    dtype: np.dtype
    bits: int = 16
    eps: float = 2.0**-7
    max: float = (2 - 2.0**-7) * 2.0**127
    min: float = -(2 - 2.0**-7) * 2.0**127
    tiny: float = 2.0**-126
    smallest_normal: float = 2.0**-126
    smallest_subnormal: float = 2.0**-133
    resolution: float = 0.01


def finfo(dtype: Any) -> np.finfo | BrainFloatLimits:
    """The limits of a floating dtype. Raises DtypeError for others."""
    held = _dtype_of(dtype)
    if not held.is_float:
        raise dtype_error(f"finfo: {held} is not a floating dtype")
    return BrainFloatLimits(held.user) if held == types.bfloat16 else np.finfo(held.numpy)


def iinfo(dtype: Any) -> np.iinfo:
    """The limits of an integer dtype. Raises DtypeError for others."""
    held = _dtype_of(dtype)
    if not held.is_integer:
        raise dtype_error(f"iinfo: {held} is not an integer dtype")
    return np.iinfo(held.numpy)


def _dtype_of(x: Any) -> types.DType:
    return x.type.dtype if isinstance(x, Value) else canonical_dtype(x)
