"""The axes, extents and size of an argument."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.operands import ArrayLike, as_operand
from lavax.tracer.values.value import Value

__all__ = ["isscalar", "iterable", "ndim", "shape", "size"]


def ndim(x: ArrayLike) -> int:
    """The number of axes of `x`."""
    return len(as_operand(x).shape)


def shape(x: ArrayLike) -> tuple[int, ...]:
    """The extents of `x` along its axes."""
    return as_operand(x).shape


def size(x: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements of `x`, or of entries along `axis`."""
    kind = as_operand(x).type
    return prod(kind.shape[along] for along in normal_axes("size", axis, kind))


def isscalar(x: Any) -> bool:
    """Whether `x` is one number: Python's, NumPy's, or an array of no axes."""
    return not x.ndim if isinstance(x, (Value, np.ndarray)) else bool(np.isscalar(x))


def iterable(x: Any) -> bool:
    """Whether one can loop over `x`: not over an array of no axes."""
    return bool(x.ndim) if isinstance(x, Value) else bool(np.iterable(x))
