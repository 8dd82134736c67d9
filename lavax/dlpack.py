"""Exchange with other libraries, under the names of jax.dlpack."""
from __future__ import annotations

from typing import Any

from lavax.ir.types import dtype_of_data
from lavax.numpy import from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of this dtype can be exchanged: lavax's dtypes can, except bfloat16, which NumPy does not know."""
    held = dtype_of_data(dtype)
    return held is not None and held.name != "bf16"
