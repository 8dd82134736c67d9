"""NumPy's classes of scalar types, and whether a dtype belongs to one."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.ir.brain_floats import is_brain_float
from lavax.ir.types import DType
from lavax.numpy.arrays.scalar_types import ScalarType
from lavax.tracer.values.key_array import KeyDtype

__all__ = [
    "character", "complexfloating", "dtype", "flexible", "floating", "generic", "inexact", "integer", "issubdtype",
    "number", "object_", "signedinteger", "unsignedinteger",
]  # fmt: skip

dtype = np.dtype
generic = np.generic
number = np.number
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
inexact = np.inexact
floating = np.floating
# No array of lavax belongs to these; code that asks for them gets False.
complexfloating = np.complexfloating
flexible = np.flexible
character = np.character
object_ = np.object_


def _of_numpy(x: Any) -> Any:
    """The dtype or class that NumPy knows `x` by."""
    if isinstance(x, ScalarType):
        return x.dtype
    if isinstance(x, KeyDtype):
        return x.type
    return x.user if isinstance(x, DType) else x


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the dtype or class `arg1` is `arg2` or belongs to it: `issubdtype(x.dtype, floating)`.

    Raises TypeError for anything else.
    """
    first, second = _of_numpy(arg1), _of_numpy(arg2)
    if is_brain_float(second):
        return is_brain_float(first)
    return bool(np.issubdtype(np.floating if is_brain_float(first) else first, second))
