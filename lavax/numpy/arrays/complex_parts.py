"""The parts of complex numbers, their angles and conjugates."""
from __future__ import annotations

import math
from typing import Any

from lavax.ir.types import bool_
from lavax.numpy._core.application import as_python_float
from lavax.numpy._core.operands import ArrayLike, as_value, has_dtype_alone, own
from lavax.numpy.arrays.creation import full_like, zeros_like
from lavax.numpy.elementwise.arithmetic import multiply
from lavax.numpy.elementwise.comparison import equal, isnan, not_equal, where
from lavax.numpy.elementwise.signs import signbit
from lavax.numpy.elementwise.trigonometric import atan2
from lavax.tracer import bind, dtype_of, with_weak
from lavax.tracer.values.value import Value

__all__ = ["angle", "conj", "imag", "iscomplex", "iscomplexobj", "isreal", "isrealobj", "real"]


def _applied(op: str, value: Value) -> Value:
    return with_weak(bind(op, value), value.weak)


def real(x: ArrayLike) -> Value:
    """The real part of each element: f[…] for complex numbers; real ones as they are."""
    value = as_value(x)
    return _applied("real", value) if value.type.dtype.is_complex else own(value)


def imag(x: ArrayLike) -> Value:
    """The imaginary part of each element, a real number; zeros for real numbers."""
    value = as_value(x)
    return _applied("imag", value) if value.type.dtype.is_complex else zeros_like(value)


def conj(x: ArrayLike) -> Value:
    """Each element with its imaginary part negated; real numbers as they are."""
    value = as_value(x)
    return _applied("conjugate", value) if value.type.dtype.is_complex else own(value)


def angle(z: ArrayLike, deg: bool = False) -> Value:
    """The angle of each element in the complex plane, in [-π, π], or in degrees with `deg`; NaN stays NaN.

    For real numbers 0 where they are positive, π where they are negative.
    """
    value = as_python_float(z)
    if value.type.dtype.is_complex:
        found = atan2(imag(value), real(value))
        return multiply(found, 180 / math.pi) if deg else found
    turned = full_like(value, 180.0 if deg else math.pi)
    return where(isnan(value), math.nan, where(signbit(value), turned, 0.0))


def isreal(x: ArrayLike) -> Value:
    """Whether the imaginary part of each element is 0."""
    value = as_value(x)
    return equal(imag(value), 0) if value.type.dtype.is_complex else full_like(value, True, bool_)


def iscomplex(x: ArrayLike) -> Value:
    """Whether the imaginary part of each element is not 0."""
    value = as_value(x)
    return not_equal(imag(value), 0) if value.type.dtype.is_complex else full_like(value, False, bool_)


def isrealobj(x: Any) -> bool:
    """Whether the dtype of `x` is real."""
    return not iscomplexobj(x)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of `x`, an array or anything that has a dtype, is complex, whatever its imaginary parts are."""
    held = dtype_of(x.dtype) if has_dtype_alone(x) else as_value(x).type.dtype
    return held.is_complex
