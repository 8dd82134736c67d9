"""The axes, extents and size of an argument."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from lavax.ir.types import TensorType, uint32
from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.operands import ArrayLike, as_operand
from lavax.tracer.values.value import Value

__all__ = ["isscalar", "iterable", "ndim", "shape", "size"]


def ndim(a: ArrayLike) -> int:
    """The number of axes of `a`."""
    return len(as_operand(a).shape)


def shape(a: ArrayLike) -> tuple[int, ...]:
    """The extents of `a` along its axes."""
    return as_operand(a).shape


def size(a: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements of `a`, or of entries along `axis`."""
    extents = as_operand(a).shape
    kind = TensorType(extents, uint32)  # of any dtype
    return prod(extents[along] for along in normal_axes("size", axis, kind))


def isscalar(element: Any) -> bool:
    """Whether `element` is one number: Python's, NumPy's, or an array of no axes."""
    return not element.ndim if isinstance(element, (Value, np.ndarray)) else bool(np.isscalar(element))


def iterable(y: Any) -> bool:
    """Whether one can loop over `y`: not over an array of no axes."""
    return bool(y.ndim) if isinstance(y, Value) else bool(np.iterable(y))
