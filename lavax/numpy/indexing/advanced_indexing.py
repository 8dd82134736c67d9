"""Reads at index arrays along some axes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import TensorType, int32
from lavax.numpy._core.broadcasting import Shape, common_shape, spread
from lavax.numpy._core.errors import dtype_error, index_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast, holds_values
from lavax.numpy.elementwise.arithmetic import add
from lavax.numpy.elementwise.comparison import less, where
from lavax.numpy.elementwise.extrema import maximum, minimum
from lavax.tracer import bind, constant, lift, with_weak
from lavax.tracer.values.value import Value


@dataclass(frozen=True, eq=False)
class AxisPositions:
    """Positions along one axis, as int32, counted from the front."""

    positions: Value


def is_index_array(part: Any) -> bool:
    """Whether a part of a key is an index array (or a traced one), not an int, slice, None or Ellipsis."""
    return isinstance(part, (Value, np.ndarray, list)) and not (isinstance(part, np.ndarray) and not part.ndim)


def as_index(part: ArrayLike, axis: int, extent: int, type: TensorType) -> AxisPositions:
    """Positions along `axis` of `type`, of the given extent; negative ones count from the end.

    Raises an IndexError if a position known while tracing is outside, or if they are not integers.
    """
    if not holds_values(part):
        return AxisPositions(_known_positions(np.asarray(part), axis, extent, type))
    positions = as_value(part)
    kind = positions.type.dtype.kind
    if kind == "bool":
        raise _mask_error(str(positions.type))
    if kind not in ("int", "uint"):
        raise _kind_error(str(positions.type), axis, type)
    positions = clamped_positions(positions)
    return AxisPositions(positions if kind == "uint" else where(less(positions, 0), add(positions, extent), positions))


def clamped_positions(numbers: Value) -> Value:
    """Integers of any width as int32; larger ones are clamped to its range, which is outside every array."""
    dtype = numbers.type.dtype
    if dtype.highest > int32.highest:
        numbers = minimum(numbers, int32.highest)
    if dtype.lowest < int32.lowest:
        numbers = maximum(numbers, int32.lowest)
    return cast(numbers, int32)


def as_wide_positions(numbers: Value) -> Value:
    """Narrow integers as int32, which holds the extents that they are counted in; others as they are."""
    dtype = numbers.type.dtype
    return cast(numbers, int32) if dtype.is_integer and dtype.bits < int32.bits else numbers


def known_integers(numbers: np.ndarray) -> np.ndarray:
    """Integers of any width as int64, which holds what extents are added to; larger ones are clamped to its range."""
    return (np.minimum(numbers, np.iinfo(np.int64).max) if numbers.dtype == np.uint64 else numbers).astype(np.int64)


def _mask_error(mask: str) -> Exception:
    return dtype_error(
        f"a mask {mask} as an index gives a shape that depends on data: choose by lnp.where(mask, x, other), or index "
        "with the positions that numpy.nonzero gives"
    )


def _kind_error(positions: str, axis: int, type: TensorType) -> Exception:
    return index_error(f"positions along axis {axis} of {type} must be integers, got {positions}")


def _known_positions(numbers: np.ndarray, axis: int, extent: int, type: TensorType) -> Value:
    """Positions that are known while tracing: checked, and a constant if they are all equal."""
    if numbers.size == 0:
        return constant(0, TensorType(numbers.shape, int32))
    if numbers.dtype.kind == "b":
        raise _mask_error(f"bool{list(numbers.shape)}")
    if numbers.dtype.kind not in "iu":
        raise _kind_error(str(numbers.dtype), axis, type)
    numbers = known_integers(numbers)
    low, high = int(numbers.min()), int(numbers.max())
    if low < -extent or high >= extent:
        outside = high if high >= extent else low
        raise index_error(f"index {outside} is outside axis {axis} of {type}, which has extent {extent}")
    counted = np.where(numbers < 0, numbers + extent, numbers).astype(np.int32)
    first = int(counted.flat[0])
    if (counted == first).all():
        return constant(first, TensorType(counted.shape, int32))
    return lift(counted)


def places_of(name: str, indices: Sequence[AxisPositions]) -> Shape:
    """The common shape of a key's positions. Raises ArrayIndexError if they do not broadcast."""
    return common_shape(name, [entry.positions for entry in indices], index_error)


def gathered(value: Value, indices: Sequence[AxisPositions], axes: Sequence[int]) -> Value:
    """The entries at the broadcast positions along `axes`: first their axes, then the other axes of `value`."""
    positions = [entry.positions for entry in indices]
    shape = places_of("index", indices)
    spread_positions = [spread(one, shape) for one in positions]
    return with_weak(bind("gather", value, *spread_positions, axes=tuple(axes)), value.weak)
