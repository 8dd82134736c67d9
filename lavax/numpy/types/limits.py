"""The limits of dtypes."""
from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.ir import types
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error
from lavax.tracer.values.value import Value

__all__ = ["finfo", "iinfo"]


@dataclass(frozen=True)
class FloatLimits:
    """The limits of a floating dtype as Python numbers, under the names that numpy.finfo has for them."""

    dtype: np.dtype
    bits: int
    eps: float  # the distance from 1 to the next number
    epsneg: float  # the distance from 1 to the number before
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float
    resolution: float  # 10^-precision
    precision: int  # decimal digits that are kept
    nmant: int  # bits of the mantissa, less the one that is not stored
    nexp: int  # bits of the exponent
    machep: int  # eps = 2^machep
    negep: int  # epsneg = 2^negep
    minexp: int  # smallest_normal = 2^minexp
    maxexp: int  # the least power of two that overflows
    iexp: int

    @property
    def tiny(self) -> float:
        return self.smallest_normal


def finfo(dtype: Any) -> FloatLimits:
    """The limits of a floating dtype, or of the parts of a complex one. Raises DtypeError for others."""
    held = _dtype_of(dtype).part
    if not held.is_float:
        raise dtype_error(f"finfo: {held} is not a floating dtype")
    return _limits_of(held)


@cache
def _limits_of(held: types.DType) -> FloatLimits:
    limits: Any = _BRAIN_FLOAT_LIMITS if held == types.bfloat16 else np.finfo(held.numpy)
    numbers: dict[str, Any] = {name: _python_number(getattr(limits, name)) for name in _LIMITS}
    return FloatLimits(held.user, **numbers)


_LIMITS = [each.name for each in fields(FloatLimits) if each.name != "dtype"]
_BRAIN_FLOAT_LIMITS = ml_dtypes.finfo(ml_dtypes.bfloat16)  # type: ignore[no-untyped-call]


def _python_number(limit: Any) -> int | float:
    return int(limit) if isinstance(limit, (int, np.integer)) else float(limit)


def iinfo(int_type: Any) -> np.iinfo:
    """The limits of an integer dtype. Raises DtypeError for others."""
    held = _dtype_of(int_type)
    if not held.is_integer:
        raise dtype_error(f"iinfo: {held} is not an integer dtype")
    return np.iinfo(held.numpy)


def _dtype_of(x: Any) -> types.DType:
    return x.type.dtype if isinstance(x, Value) else canonical_dtype(x)
