"""Reads of parts of an array: `x[…]` as in NumPy."""
from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from lavax.base.errors import ConcretizationError
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import TensorType
from lavax.numpy._core.broadcasting import spread
from lavax.numpy._core.errors import index_error
from lavax.numpy._core.movement import reshaped, transposed
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.indexing.advanced_indexing import (
    AxisPositions,
    as_index,
    gathered,
    is_index_array,
    places_of,
)
from lavax.numpy.indexing.masks import axes_used, computed_mask_error, is_mask, parts_of, with_axes_of_truths
from lavax.numpy.indexing.nonzero import nonzero
from lavax.tracer import active_trace, bind, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class NewAxis:
    """`None`: an axis of extent 1."""


@dataclass(frozen=True)
class AxisRange:
    """A slice of an axis: elements start, start + step, … below limit, then reversed if `flipped`."""

    start: int
    limit: int
    step: int
    flipped: bool


@dataclass(frozen=True)
class Entry:
    """An int known while tracing: one element; the axis is dropped."""

    position: int


_LARGEST_BLOCK = 1 << 20  # elements; copying larger ones takes longer than preparing a program for each place

Item: TypeAlias = NewAxis | AxisRange | Entry | AxisPositions


def index(x: ArrayLike, key: Any) -> Value:
    """`x[key]` with ints, slices of any step, None, Ellipsis, integer arrays and masks, as in NumPy.

    A mask means the positions where it is true, as from `nonzero`: inside `compile` only if they are known. One truth
    value is a mask without axes, and adds one of extent 1 or 0. Raises an IndexError if a position known while tracing
    is outside; a computed one is clamped to the range.
    """
    value, key = with_axes_of_truths(as_value(x), key)
    items = key_items(key, value.type)
    if active_trace() is None and all(map(_is_contiguous, items)):
        return _block(value, items)
    cut = sliced(value, items)
    arrays = [item for item in items if isinstance(item, AxisPositions)]
    if not arrays:
        return reshaped(cut, spread_shape(items, cut.shape))
    layout = layout_of(items, cut.shape, places_of("index", arrays))
    found = gathered(reshaped(cut, layout.kept), arrays, layout.axes)
    return reshaped(transposed(found, layout.order), layout.shape)


def _is_contiguous(item: Item) -> bool:
    """Whether an item takes one entry, or neighbours in their order."""
    return isinstance(item, (Entry, NewAxis)) or (
        isinstance(item, AxisRange) and item.step == 1 and not item.flipped
    )


def _block(value: Value, items: Sequence[Item]) -> Value:
    """A block of an array, outside a trace: its place is an argument, so that one program serves all places."""
    real = [item for item in items if not isinstance(item, NewAxis)]
    bounds = [bounds_of(item, extent) for item, extent in zip(real, value.shape, strict=True)]
    sizes = tuple(limit - start for start, limit, _ in bounds)
    axes = tuple(axis for axis, extent in enumerate(value.shape) if sizes[axis] != extent)
    shape = spread_shape(items, sizes)
    if not axes or not 0 < math.prod(sizes) <= _LARGEST_BLOCK:
        return reshaped(sliced(value, items), shape)
    return _block_at(value, np.array([bounds[axis][0] for axis in axes], np.int32), axes, sizes, shape)


@one_program("axes", "sizes", "shape")
def _block_at(
    x: Value, starts: ArrayLike, axes: tuple[int, ...], sizes: tuple[int, ...], shape: tuple[int, ...]
) -> Value:
    """The block of `sizes`, reshaped, that begins at `starts` along `axes`, and is whole along the others."""
    positions = []
    for number, axis in enumerate(axes):
        first = index(starts, (slice(number, number + 1),))
        counted = bind("iota", type=TensorType((sizes[axis],), first.type.dtype), axis=0)
        along = bind("add", spread(first, counted.shape), counted)
        positions.append(reshaped(along, (1,) * number + (sizes[axis],) + (1,) * (len(axes) - number - 1)))
    found = gathered(x, [AxisPositions(along) for along in positions], axes)
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    order = [(*axes, *rest).index(axis) for axis in range(x.ndim)]
    return reshaped(transposed(found, order), shape)


def key_items(key: Any, type: TensorType) -> list[Item]:
    """One item per axis for the key's parts, none of them a truth value; axes that the key leaves out are whole."""
    parts = _without_masks(parts_of(key), type)
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > type.rank:
        raise index_error(f"too many indices: {used} for {type}, which has {type.rank} axes")
    if sum(part is Ellipsis for part in parts) > 1:
        raise index_error("an index can have one Ellipsis ('...')")
    whole: list[Any] = [slice(None)] * (type.rank - used)
    gap = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts = parts[:gap] + whole + parts[gap + 1 :]
    extents = iter(enumerate(type.shape))
    return [NewAxis() if part is None else _item(part, *next(extents), type) for part in parts]


def _without_masks(parts: Sequence[Any], type: TensorType) -> list[Any]:
    """The key's parts with each mask replaced by the positions where it is true, one array per axis of the mask."""
    result: list[Any] = []
    axis = 0
    for place, part in enumerate(parts):
        if part is Ellipsis:
            axis = type.rank - sum(axes_used(other) for other in parts[place + 1 :])
        elif is_mask(part):
            result += _positions_of(part, type, axis)
            axis += axes_used(part)
            continue
        else:
            axis += part is not None
        result.append(part)
    return result


def _positions_of(mask: Any, type: TensorType, axis: int) -> Sequence[Any]:
    shape = mask.shape if isinstance(mask, Value) else np.shape(mask)
    fits = [given in (extent, 0) for given, extent in zip(shape, type.shape[axis:], strict=False)]
    if len(fits) != len(shape) or not all(fits):
        raise index_error(f"a mask of shape {tuple(shape)} does not fit {type} from axis {axis} on")
    if isinstance(mask, Value):
        try:
            return nonzero(mask)
        except ConcretizationError as error:
            raise computed_mask_error(error) from None
    return np.nonzero(np.asarray(mask))


def _item(part: Any, axis: int, extent: int, type: TensorType) -> Item:
    if isinstance(part, slice):
        return _range(part, extent)
    if is_index_array(part):
        return as_index(part, axis, extent, type)
    if not hasattr(part, "__index__"):
        raise index_error(f"an index is an int, a slice, None, Ellipsis or an integer array, got {part!r}")
    position = operator.index(part)
    if not -extent <= position < extent:
        raise index_error(f"index {position} is outside axis {axis} of {type}, which has extent {extent}")
    return Entry(position % extent)


def _range(part: slice, extent: int) -> AxisRange:
    start, stop, step = part.indices(extent)
    count = len(range(start, stop, step))
    if not count:
        return AxisRange(0, 0, 1, False)
    last = start + (count - 1) * step
    if count == 1:
        return AxisRange(start, start + 1, 1, False)
    return AxisRange(start, last + 1, step, False) if step > 0 else AxisRange(last, start + 1, -step, True)


def sliced(value: Value, items: Sequence[Item]) -> Value:
    """The ranges and single entries of each axis; the axis of a single entry stays, with extent 1."""
    real = [item for item in items if not isinstance(item, NewAxis)]
    bounds = [bounds_of(item, extent) for item, extent in zip(real, value.shape, strict=True)]
    if bounds != [(0, extent, 1) for extent in value.shape]:
        start, limit, stride = zip(*bounds, strict=True)
        value = with_weak(bind("slice", value, start=start, limit=limit, stride=stride), value.weak)
    flipped = flipped_axes(items)
    return with_weak(bind("flip", value, axes=flipped), value.weak) if flipped else value


def flipped_axes(items: Sequence[Item]) -> tuple[int, ...]:
    """The axes of the indexed array that the key reverses."""
    real = (item for item in items if not isinstance(item, NewAxis))
    return tuple(axis for axis, item in enumerate(real) if isinstance(item, AxisRange) and item.flipped)


def bounds_of(item: Item, extent: int) -> tuple[int, int, int]:
    """(start, limit, step); the limit is the extent if the range reaches the end."""
    if isinstance(item, Entry):
        return item.position, item.position + 1, 1
    if isinstance(item, AxisRange):
        return item.start, item.limit, item.step
    return 0, extent, 1


def spread_shape(items: Sequence[Item], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape without the axes of single entries and with new axes; `shape` has an extent per real axis."""
    extents = iter(shape)
    result = []
    for item in items:
        if isinstance(item, NewAxis):
            result.append(1)
            continue
        extent = next(extents)
        if not isinstance(item, Entry):
            result.append(extent)
    return tuple(result)


@dataclass(frozen=True)
class GatherLayout:
    """The order of axes after a read at index arrays.

    `kept` is the shape of the cut array less the axes of single entries, `axes` are its indexed axes. The gathered
    array has the axes of the positions, then those of the window; `order` transposes it, and `shape` is the result's,
    with new axes. As in NumPy, the axes of positions replace the index arrays if these, and ints, are adjacent; else
    they come first.
    """

    kept: tuple[int, ...]
    axes: tuple[int, ...]
    order: tuple[int, ...]
    shape: tuple[int, ...]


def layout_of(items: Sequence[Item], cut: tuple[int, ...], places: tuple[int, ...]) -> GatherLayout:
    """The layout for a cut array of shape `cut` and positions of shape `places`."""
    real = [item for item in items if not isinstance(item, NewAxis)]
    kept = tuple(extent for extent, item in zip(cut, real, strict=True) if not isinstance(item, Entry))
    left = [item for item in real if not isinstance(item, Entry)]
    axes = tuple(axis for axis, item in enumerate(left) if isinstance(item, AxisPositions))
    selecting = [place for place, item in enumerate(items) if isinstance(item, (Entry, AxisPositions))]
    together = selecting[-1] - selecting[0] + 1 == len(selecting)
    others = [item for item in items if not isinstance(item, (Entry, AxisPositions))]
    before = selecting[0] if together else 0
    window = [extent for axis, extent in enumerate(kept) if axis not in axes]
    in_front = sum(isinstance(item, AxisRange) for item in others[:before])
    rank = len(places)
    order = (*range(rank, rank + in_front), *range(rank), *range(rank + in_front, rank + len(window)))
    extents = iter(window)
    spread = [1 if isinstance(item, NewAxis) else next(extents) for item in others]
    return GatherLayout(kept, axes, order, (*spread[:before], *places, *spread[before:]))
