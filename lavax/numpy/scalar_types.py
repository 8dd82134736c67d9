"""Names of dtypes that users pass and call: `lnp.float32`."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.ir import types
from lavax.numpy.creation import array
from lavax.numpy.dtypes import canonical_dtype
from lavax.numpy.operands import ArrayLike
from lavax.tracer.value import Value


class ScalarType:
    """A dtype by name: it equals and converts to NumPy's, and called with data makes an array of it."""

    def __init__(self, dtype: types.DType) -> None:
        self.dtype = dtype.numpy
        self.__name__ = self.dtype.name

    def __call__(self, x: ArrayLike = 0) -> Value:
        """`x` as an array of this dtype."""
        return array(x, self.dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ScalarType):
            return self is other
        try:
            return bool(self.dtype == np.dtype(other))  # type: ignore[call-overload]
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __repr__(self) -> str:
        return f"lavax.numpy.{self.__name__}"


float32 = ScalarType(types.float32)
int32 = ScalarType(types.int32)
uint32 = ScalarType(types.uint32)
bool_ = ScalarType(types.bool_)


def finfo(dtype: Any) -> np.finfo:
    """The limits of a floating dtype."""
    return np.finfo(canonical_dtype(dtype).numpy)


def iinfo(dtype: Any) -> np.iinfo:
    """The limits of an integer dtype."""
    return np.iinfo(canonical_dtype(dtype).numpy)
