"""Dtypes as users name them, as dtypes of lavax."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavax.ir.default_dtypes import default_complex, default_float, default_integer
from lavax.ir.types import DTYPES, DType, bool_, dtype_of_data
from lavax.numpy._core.errors import dtype_error

# Python's types mean the default dtypes, which may have 64 bits.
_OF_PYTHON: dict[Any, Callable[[], DType]] = {
    bool: lambda: bool_, int: default_integer, float: default_float, complex: default_complex
}
_NAMES = ", ".join(dtype.user_name for dtype in DTYPES.values())


def canonical_dtype(dtype: Any) -> DType:
    """The dtype of lavax for `dtype`: a dtype of lavax or NumPy, a name such as "float32", or float, int, bool.

    Raises DtypeError if lavax has no such dtype.
    """
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type) and dtype in _OF_PYTHON:
        return _OF_PYTHON[dtype]()
    held = dtype_of_data(dtype)
    if held is None:
        raise dtype_error(f"{dtype!r} is not a dtype of lavax: use one of {_NAMES}")
    return held
