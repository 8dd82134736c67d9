"""From the many ways a user names a dtype to the dtypes that lavax has."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.ir.brain_floats import is_brain_float
from lavax.ir.types import DTYPES, DType, bfloat16, bool_, float32, int32
from lavax.numpy.errors import dtype_error

_OF_NUMPY: dict[np.dtype, DType] = {dtype.numpy: dtype for dtype in DTYPES.values() if dtype != bfloat16}
# Python's own types stand for the default dtypes.
_OF_PYTHON: dict[Any, DType] = {bool: bool_, int: int32, float: float32}
_NAMES = ", ".join(str(dtype.user.name) for dtype in DTYPES.values())


def canonical_dtype(dtype: Any) -> DType:
    """The dtype that `dtype` stands for: one of lavax, of NumPy, a name such as "float32", or float, int, bool.

    Raises DtypeError where lavax has no such dtype.
    """
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type) and dtype in _OF_PYTHON:
        return _OF_PYTHON[dtype]
    if is_brain_float(dtype):
        return bfloat16
    try:
        return _OF_NUMPY[np.dtype(dtype)]
    except (TypeError, KeyError):
        raise dtype_error(f"{dtype!r} is not a dtype of lavax: use one of {_NAMES}") from None
