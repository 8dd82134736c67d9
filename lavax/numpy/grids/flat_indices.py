"""Positions in an array, and in the same array flattened."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from lavax.ir.default_dtypes import default_integer
from lavax.ir.types import int32
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.errors import dtype_error, index_error, shape_error
from lavax.numpy._core.movement import rows
from lavax.numpy._core.operands import ArrayLike, as_positions, as_value, cast, holds_values
from lavax.numpy._core.shape_arguments import as_shape
from lavax.numpy.arrays.manipulation import Order
from lavax.numpy.elementwise.arithmetic import add, multiply
from lavax.numpy.elementwise.comparison import greater_equal, less, logical_or, where
from lavax.numpy.elementwise.extrema import clip
from lavax.numpy.elementwise.rounding import floor_divide, remainder
from lavax.numpy.indexing.advanced_indexing import as_wide_positions, clamped_positions
from lavax.numpy.reductions.reductions import any as any_of
from lavax.tracer.values.value import Value

__all__ = ["ravel_multi_index", "unravel_index"]


def _strides(name: str, shape: tuple[int, ...], order: Order) -> list[int]:
    """The distance between neighbours along each axis, in elements."""
    if order not in ("C", "F"):
        raise ValueError(f"{name}: order is 'C' or 'F', got {order!r}")
    if min(shape, default=0) < 0 or math.prod(shape) > 2**31 - 1:
        raise shape_error(f"{name}: {shape} is not a shape of fewer than 2^31 elements")
    axes = range(len(shape))
    return [math.prod(shape[axis + 1 :] if order == "C" else shape[:axis]) for axis in axes]


def _positions(name: str, x: ArrayLike) -> Value:
    """Integers of at least 32 bits."""
    value = as_value(x)
    if not value.type.dtype.is_integer:
        raise dtype_error(f"{name}: positions must be integers, got {value.type}")
    return as_wide_positions(value)


def ravel_multi_index(
    multi_index: Sequence[ArrayLike] | Value | np.ndarray,
    dims: Sequence[int],
    mode: Literal["raise", "wrap", "clip"] = "raise",
    order: Order = "C",
    *,
    dtype: Any = None,
) -> Value:
    """The positions in the flattened array of shape `dims` of the elements at `multi_index`, one array per axis.

    They are integers, or of `dtype`. For positions outside: `mode` "raise" raises an IndexError, which requires known
    numbers (ConcretizationError inside `compile`); "wrap" wraps them around, "clip" clamps them to the range.
    """
    shape = as_shape(dims)
    strides = _strides("ravel_multi_index", shape, order)
    parts = rows(multi_index) if isinstance(multi_index, Value) else list(multi_index)
    if len(parts) != len(shape):
        raise shape_error(f"ravel_multi_index: {len(parts)} positions for the {len(shape)} axes of {shape}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"ravel_multi_index: mode is 'raise', 'wrap' or 'clip', got {mode!r}")
    total: Value = as_value(np.int32(0))
    for part, extent, stride in zip(parts, shape, strides, strict=True):
        places = _positions("ravel_multi_index", part)
        if mode == "raise":
            _require_inside(places, extent)
        elif mode == "wrap":
            places = remainder(places, extent)
        else:
            places = clip(places, 0, extent - 1)
        total = add(total, multiply(cast(places, int32), stride))
    return cast(total, default_integer() if dtype is None else canonical_dtype(dtype))


def _require_inside(places: Value, extent: int) -> None:
    if bool(any_of(logical_or(less(places, 0), greater_equal(places, extent)))):
        raise index_error(f"ravel_multi_index: a position is outside an axis of extent {extent}")


def unravel_index(indices: ArrayLike, shape: int | Sequence[int], order: Order = "C") -> tuple[Value, ...]:
    """The int32 positions along each axis of an array of `shape`, of the elements at `indices` of it flattened.

    Negative ones count from the end. Raises an IndexError if a known position is outside; a computed one is clamped to
    the range.
    """
    extents = as_shape(shape)
    strides = _strides("unravel_index", extents, order)
    count = math.prod(extents)
    if not holds_values(indices):
        known = np.asarray(indices)
        if known.size and known.dtype.kind in "iu" and not (-count <= known.min() and known.max() < count):
            raise index_error(f"unravel_index: a position is outside the {count} elements of {extents}")
    places = clamped_positions(_positions("unravel_index", indices))
    held = clip(where(less(places, 0), add(places, count), places), 0, max(count - 1, 0))
    return tuple(
        as_positions(remainder(floor_divide(held, max(stride, 1)), max(extent, 1)))
        for extent, stride in zip(extents, strides, strict=True)
    )
