"""Parts of arrays at fixed places and at places that are computed."""
from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.lax.operands import of_one_dtype
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

_FEW = 8  # an update of so many times fewer elements is scattered: the others are not written


def slice(
    operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Value:
    """The elements from `start_indices` up to `limit_indices`, by `strides`. Raises ShapeError out of bounds."""
    value = as_value(operand)
    steps = (1,) * value.ndim if strides is None else tuple(strides)
    given = list(zip(start_indices, limit_indices, steps, strict=False))
    fits = len(given) == value.ndim == len(start_indices) == len(limit_indices)
    bounds = zip(given, value.shape, strict=False)
    if not fits or any(not 0 <= first <= last <= extent or step < 1 for (first, last, step), extent in bounds):
        raise shape_error(
            f"lax.slice: starts {tuple(start_indices)}, limits {tuple(limit_indices)} and strides {steps} do not fit "
            f"{value.type}"
        )
    return value[tuple(builtins.slice(*each) for each in given)]


def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Value:
    """The elements from `start_index` up to `limit_index` along one axis, as Python slices it."""
    value = as_value(operand)
    along = normal_axis("lax.slice_in_dim", axis, value.type)
    return value[(builtins.slice(None),) * along + (builtins.slice(start_index, limit_index, stride),)]


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Value:
    """The elements at one position of an axis, which stays with extent 1 if `keepdims`."""
    value = as_value(operand)
    along = normal_axis("lax.index_in_dim", axis, value.type)
    place = operator.index(index)
    if not -value.shape[along] <= place < value.shape[along]:
        raise shape_error(f"lax.index_in_dim: index {place} is outside axis {axis} of {value.type}")
    part = value[(builtins.slice(None),) * along + (place,)]
    return lnp.expand_dims(part, along) if keepdims else part


def _starts(name: str, value: Value, given: Any, sizes: Sequence[int], from_end: bool) -> list[Any]:
    """Where a part of `sizes` begins: Python's numbers where they are known, moved so that the part is inside."""
    starts = list(given) if not isinstance(given, Value) else [given[place] for place in range(given.shape[0])]
    if len(starts) != value.ndim or len(sizes) != value.ndim:
        raise shape_error(f"lax.{name}: starts and sizes have an entry for each axis of {value.type}")
    if any(not 0 <= size <= extent for size, extent in zip(sizes, value.shape, strict=True)):
        raise shape_error(f"lax.{name}: a part of {tuple(sizes)} is not within {value.type}")
    return [
        _inside(name, start, extent, extent - size, from_end)
        for start, extent, size in zip(starts, value.shape, sizes, strict=True)
    ]


def _inside(name: str, start: Any, extent: int, last: int, from_end: bool) -> Any:
    """A start from 0 to `last`; negative ones count from the end of the axis, if that is allowed."""
    end = extent if from_end else 0
    if last == 0:
        return 0
    if isinstance(start, (int, np.integer)) or not (isinstance(start, Value) or hasattr(start, "shape")):
        place = operator.index(start)
        if place < 0 and not from_end:
            raise shape_error(f"lax.{name}: start {place} is negative, which allow_negative_indices=False refuses")
        return min(max(place + end if place < 0 else place, 0), last)
    given = as_value(start)
    if not given.type.dtype.is_integer:
        raise dtype_error(f"lax.{name}: a start must be an integer, got {given.type}")
    computed: Any = lnp.astype(given, lnp.int32)
    return lnp.clip(lnp.where(computed < 0, computed + end, computed), 0, last)


def dynamic_slice(
    operand: ArrayLike, start_indices: Any, slice_sizes: Sequence[int], *, allow_negative_indices: bool = True
) -> Value:
    """A part of `slice_sizes` from `start_indices` on, which are moved so that the part is inside the array."""
    value = as_value(operand)
    starts = _starts("dynamic_slice", value, start_indices, slice_sizes, allow_negative_indices)
    result = value
    for axis, (start, size) in enumerate(zip(starts, slice_sizes, strict=True)):
        if isinstance(start, int):
            result = result[(builtins.slice(None),) * axis + (builtins.slice(start, start + size),)]
        else:
            places = start + lnp.arange(size, dtype=lnp.int32)
            result = lnp.take(result, places, axis=axis, mode="clip")
    return result


def dynamic_slice_in_dim(
    operand: ArrayLike, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Value:
    """`dynamic_slice` along one axis."""
    value = as_value(operand)
    along = normal_axis("lax.dynamic_slice_in_dim", axis, value.type)
    starts, sizes = [0] * value.ndim, list(value.shape)
    starts[along], sizes[along] = start_index, operator.index(slice_size)
    return dynamic_slice(value, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Value:
    """The elements at a position that is computed, moved so that it is inside."""
    value = as_value(operand)
    along = normal_axis("lax.dynamic_index_in_dim", axis, value.type)
    part = dynamic_slice_in_dim(value, index, 1, along, allow_negative_indices=allow_negative_indices)
    return part if keepdims else lnp.squeeze(part, along)


def dynamic_update_slice(
    operand: ArrayLike, update: ArrayLike, start_indices: Any, *, allow_negative_indices: bool = True
) -> Value:
    """The array with `update` from `start_indices` on, which are moved so that all of it is inside."""
    value, new = of_one_dtype("dynamic_update_slice", operand, update)
    if new.ndim != value.ndim:
        raise shape_error(f"lax.dynamic_update_slice: update {new.type} has other axes than {value.type}")
    starts = _starts("dynamic_update_slice", value, start_indices, new.shape, allow_negative_indices)
    moved = [axis for axis in range(value.ndim) if new.shape[axis] != value.shape[axis]]
    if not moved:
        return lnp.copy(new)
    if len(moved) == 1 and new.size * _FEW <= value.size:
        places = starts[moved[0]] + lnp.arange(new.shape[moved[0]], dtype=lnp.int32)
        array: Any = value
        written: Value = array.at[(builtins.slice(None),) * moved[0] + (places,)].set(new)
        return written
    is_inside: Any = True
    spread = new
    for axis in moved:
        offset = lnp.arange(value.shape[axis], dtype=lnp.int32) - starts[axis]
        spread = lnp.take(spread, lnp.clip(offset, 0, max(new.shape[axis] - 1, 0)), axis=axis, mode="clip")
        along = [1] * value.ndim
        along[axis] = value.shape[axis]
        is_inside = is_inside & lnp.reshape((offset >= 0) & (offset < new.shape[axis]), along)
    return lnp.where(is_inside, spread, value) if new.size else value


def dynamic_update_slice_in_dim(
    operand: ArrayLike, update: ArrayLike, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Value:
    """`dynamic_update_slice` along one axis."""
    value = as_value(operand)
    along = normal_axis("lax.dynamic_update_slice_in_dim", axis, value.type)
    starts: list[Any] = [0] * value.ndim
    starts[along] = start_index
    return dynamic_update_slice(value, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Value:
    """The array with `update` at one position of an axis, which `update` may lack."""
    value, new = as_value(operand), as_value(update)
    along = normal_axis("lax.dynamic_update_index_in_dim", axis, value.type)
    if new.ndim == value.ndim - 1:
        new = lnp.expand_dims(new, along)
    return dynamic_update_slice_in_dim(value, new, index, along, allow_negative_indices=allow_negative_indices)


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Value:
    """The slices of `src` at positions `idxs`, one array for each of `axes`; the positions' axis comes first."""
    value = as_value(src)
    order = [*axes, *(axis for axis in range(value.ndim) if axis not in axes)]
    places = tuple(
        lnp.clip(lnp.astype(as_value(each), lnp.int32), 0, value.shape[axis] - 1)
        for each, axis in zip(idxs, axes, strict=True)
    )
    return lnp.transpose(value, order)[places]
