"""Arrays and their elements repeated."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy._core.shape_arguments import as_shape
from lavax.numpy._core.shapes_of_data import length_of
from lavax.numpy.arrays.manipulation import ravel
from lavax.tracer import bind, constant
from lavax.tracer.values.value import Value

__all__ = ["repeat", "tile"]


def repeat(
    a: ArrayLike,
    repeats: int | ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Value:
    """`a` with each element repeated `repeats` times along `axis`; None: flattened first.

    `repeats` may be an array of one number per entry. If it is computed inside `compile`, the extent of the result must
    be given as `total_repeat_length`: excess entries are dropped, and the last entry fills up.
    """
    value = as_value(a)
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis("repeat", axis, value.type)
    times = np.asarray(repeats) if not isinstance(repeats, Value) else repeats
    if times.size == 1 and not isinstance(times, Value) and total_repeat_length is None:
        return _repeated(value, along, whole_number("repeats", times.item()))
    return _repeated_each(value, along, as_value(times), total_repeat_length)


def _repeated(value: Value, along: int, times: int) -> Value:
    if times < 0:
        raise shape_error(f"repeat: {times} is not a number of repetitions")
    before, extent, after = value.shape[:along], value.shape[along], value.shape[along + 1 :]
    kept = tuple(d + (d > along) for d in range(value.ndim))
    spread = bind("broadcast", value, type=value.type.with_shape((*before, extent, times, *after)), axes=kept)
    return reshaped(spread, (*before, extent * times, *after))


def _repeated_each(value: Value, along: int, times: Value, length: int | None) -> Value:
    """Each position of the result is searched among the ends of the repeated entries."""
    extent = value.shape[along]
    if times.size == 1 and times.ndim < 2:
        times = bind("broadcast", reshaped(times, ()), type=times.type.with_shape((extent,)), axes=())
    if times.shape != (extent,) or not times.type.dtype.is_integer:
        raise shape_error(f"repeat: {times.type} are not numbers of repetitions for axis {along} of {value.type}")
    ends = bind("cumulative_sum", bind("cast", times, type=times.type.with_dtype(int32)), axis=0)
    if length is None:
        last = reshaped(cut(ends, 0, extent - 1, extent), ()) if extent else constant(0, TensorType((), int32))
        length = length_of("repeat", last, None, "give total_repeat_length=")
    places = bind("iota", type=TensorType((length,), int32), axis=0)
    source = bind("search_sorted", ends, places, right=True)
    order = [along, *(d for d in range(value.ndim) if d != along)]
    found = bind("gather", value, source, axes=(along,))
    return bind("transpose", found, axes=tuple(sorted(range(value.ndim), key=order.__getitem__)))


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Value:
    """`A` as a tile, repeated `reps` times along each axis; both are aligned at the last axis.

    Raises ShapeError for negative numbers.
    """
    value = as_value(A)
    times = as_shape(reps, "reps")
    if min(times, default=0) < 0:
        raise shape_error(f"tile: {times} are not numbers of repetitions")
    rank = max(value.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - value.ndim) + value.shape
    pairs = tuple(extent for pair in zip(times, shape, strict=True) for extent in pair)
    kept = tuple(2 * d + 1 for d in range(rank - value.ndim, rank))
    spread = value
    if any(count != 1 for count in times):
        spread = bind("broadcast", value, type=value.type.with_shape(pairs), axes=kept)
    return reshaped(spread, tuple(count * extent for count, extent in zip(times, shape, strict=True)))
