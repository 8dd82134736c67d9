"""Convolution and correlation of one-axis arrays."""
from __future__ import annotations

from typing import Any, Literal, TypeAlias

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.complex_parts import conj
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.rearranging import flip
from lavax.numpy.editing.padding import pad
from lavax.numpy.elementwise.arithmetic import add
from lavax.numpy.indexing.taking import take
from lavax.numpy.products.linear_algebra import matmul
from lavax.tracer.values.value import Value

__all__ = ["convolve", "correlate"]

Mode: TypeAlias = Literal["full", "same", "valid"]


def _lines(name: str, a: ArrayLike, v: ArrayLike) -> list[Value]:
    values = [value if value.ndim else reshaped(value, (1,)) for value in common_dtype([a, v])]
    if any(value.ndim != 1 or not value.size for value in values):
        raise shape_error(f"{name}: {values[0].type} and {values[1].type} must have one axis, and elements")
    return values


def _sliding(long: Value, short: Value, precision: str | None, wanted: Any) -> Value:
    """The sums of products of the reversed `short` with windows of `long` that may extend beyond its ends."""
    count, width = long.size, short.size
    padded = pad(long, width - 1)
    length = count + width - 1
    kind = TensorType((length, width), int32)
    windows = take(padded, add(iota(kind, 0), iota(kind, 1)), mode="promise_in_bounds")
    return matmul(windows, flip(short), precision, wanted)


def _trimmed(full: Value, count: int, width: int, mode: Mode) -> Value:
    if mode == "full":
        return full
    if mode == "same":
        start, length = (width - 1) // 2, count
    elif mode == "valid":
        start, length = width - 1, count - width + 1
    else:
        raise ValueError(f"convolve, correlate: mode is 'full', 'same' or 'valid', got {mode!r}")
    return cut(full, 0, start, start + length)


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: Mode = "full",
    *,
    precision: str | None = None,
    preferred_element_type: Any = None,
) -> Value:
    """The convolution of two one-axis arrays.

    `mode`: "full", wherever they overlap; "same", of the longer one's length; "valid", where they overlap completely.
    `precision` and `preferred_element_type` are as in `matmul`.
    """
    first, second = _lines("convolve", a, v)
    if second.size > first.size:
        first, second = second, first
    return _trimmed(_sliding(first, second, precision, preferred_element_type), first.size, second.size, mode)


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: Mode = "valid",
    *,
    precision: str | None = None,
    preferred_element_type: Any = None,
) -> Value:
    """The correlation of two one-axis arrays: `convolve` of `a` with the conjugate of `v` reversed.

    `mode` is as in `convolve`, `precision` and `preferred_element_type` are as in `matmul`.
    """
    first, second = _lines("correlate", a, conj(v))
    if second.size > first.size:
        whole = _sliding(second, flip(first), precision, preferred_element_type)
        return flip(_trimmed(whole, second.size, first.size, mode))
    return _trimmed(_sliding(first, flip(second), precision, preferred_element_type), first.size, second.size, mode)
