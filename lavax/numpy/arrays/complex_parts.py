"""Functions of complex numbers, for real numbers: lavax has no complex dtypes."""
from __future__ import annotations

import math
from typing import Any

from lavax.ir.types import bool_
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.operands import ArrayLike, as_value, own
from lavax.numpy.arrays.creation import full_like, zeros_like
from lavax.numpy.elementwise.comparison import isnan, where
from lavax.numpy.elementwise.signs import signbit
from lavax.tracer.values.value import Value

__all__ = ["angle", "conj", "imag", "iscomplex", "iscomplexobj", "isreal", "isrealobj", "real"]


def real(x: ArrayLike) -> Value:
    """`x`, as all its elements are real."""
    return own(as_value(x))


def imag(x: ArrayLike) -> Value:
    """Zeros, as all elements of `x` are real."""
    return zeros_like(x)


def conj(x: ArrayLike) -> Value:
    """`x`, as all its elements are real."""
    return own(as_value(x))


def angle(z: ArrayLike, deg: bool = False) -> Value:
    """0 where `z` is positive, pi (180 with `deg`) where it is negative; NaN stays NaN."""
    value = as_floating(z)
    turned = full_like(value, 180.0 if deg else math.pi)
    return where(isnan(value), value, where(signbit(value), turned, 0.0))


def isreal(x: ArrayLike) -> Value:
    """True everywhere."""
    return full_like(x, True, bool_)


def iscomplex(x: ArrayLike) -> Value:
    """False everywhere."""
    return full_like(x, False, bool_)


def isrealobj(x: Any) -> bool:
    """True: no array holds complex numbers. Raises DtypeError for data that are complex."""
    as_value(x)
    return True


def iscomplexobj(x: Any) -> bool:
    """False: no array holds complex numbers. Raises DtypeError for data that are complex."""
    return not isrealobj(x)
