"""Reading parts of an array: `x[…]` as NumPy has it."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lavax.ir.types import TensorType
from lavax.numpy.advanced_indexing import Index, as_index, gathered, is_index_array
from lavax.numpy.errors import index_error
from lavax.numpy.manipulation import reshaped, transposed
from lavax.numpy.operands import ArrayLike, as_value
from lavax.tracer import bind, with_weak
from lavax.tracer.value import Value


@dataclass(frozen=True)
class _NewAxis:
    """`None`: an axis of extent 1."""


@dataclass(frozen=True)
class _Range:
    """A slice of an axis: elements start, start + step, … below limit, then reversed if `flipped`."""

    start: int
    limit: int
    step: int
    flipped: bool


@dataclass(frozen=True)
class _Entry:
    """An int known while tracing: one element, and the axis is gone."""

    position: int


_Item: TypeAlias = _NewAxis | _Range | _Entry | Index


def index(x: ArrayLike, key: Any) -> Value:
    """`x[key]` with ints, slices of any step, None, Ellipsis and integer arrays, as in NumPy.

    Raises an IndexError where a position known while tracing is outside; a computed one is held to the range.
    """
    value = as_value(x)
    items = _items(key, value.type)
    cut = _sliced(value, [item for item in items if not isinstance(item, _NewAxis)])
    arrays = [item for item in items if isinstance(item, Index)]
    if not arrays:
        return reshaped(cut, _spread_shape(items, cut.shape))
    return _with_arrays(cut, items, arrays)


def _items(key: Any, type: TensorType) -> list[_Item]:
    """The key's parts with what each means for its axis; axes that the key leaves out are taken whole."""
    parts = list(key) if isinstance(key, tuple) else [key]
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > type.rank:
        raise index_error(f"too many indices: {used} for {type}, which has {type.rank} axes")
    if sum(part is Ellipsis for part in parts) > 1:
        raise index_error("an index can have one Ellipsis ('...')")
    whole: list[Any] = [slice(None)] * (type.rank - used)
    gap = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts = parts[:gap] + whole + parts[gap + 1 :]
    extents = iter(enumerate(type.shape))
    return [_NewAxis() if part is None else _item(part, *next(extents), type) for part in parts]


def _item(part: Any, axis: int, extent: int, type: TensorType) -> _Item:
    if isinstance(part, slice):
        return _range(part, extent)
    if is_index_array(part):
        return as_index(part, axis, extent, type)
    if isinstance(part, (bool, np.bool_)) or not hasattr(part, "__index__"):
        raise index_error(f"an index is an int, a slice, None, Ellipsis or an integer array, got {part!r}")
    position = operator.index(part)
    if not -extent <= position < extent:
        raise index_error(f"index {position} is outside axis {axis} of {type}, which has extent {extent}")
    return _Entry(position % extent)


def _range(part: slice, extent: int) -> _Range:
    start, stop, step = part.indices(extent)
    count = len(range(start, stop, step))
    if not count:
        return _Range(0, 0, 1, False)
    last = start + (count - 1) * step
    if count == 1:
        return _Range(start, start + 1, 1, False)
    return _Range(start, last + 1, step, False) if step > 0 else _Range(last, start + 1, -step, True)


def _sliced(value: Value, items: Sequence[_Item]) -> Value:
    """The ranges and single entries (with their axis still there, at extent 1) of each axis."""
    bounds = [_bounds(item, extent) for item, extent in zip(items, value.shape, strict=True)]
    if bounds != [(0, extent, 1) for extent in value.shape]:
        start, limit, stride = zip(*bounds, strict=True)
        value = with_weak(bind("slice", value, start=start, limit=limit, stride=stride), value.weak)
    flipped = tuple(axis for axis, item in enumerate(items) if isinstance(item, _Range) and item.flipped)
    return with_weak(bind("flip", value, axes=flipped), value.weak) if flipped else value


def _bounds(item: _Item, extent: int) -> tuple[int, int, int]:
    """(start, limit, step); the limit is the extent where the range goes through to the end."""
    if isinstance(item, _Entry):
        return item.position, item.position + 1, 1
    if isinstance(item, _Range):
        return item.start, item.limit, item.step
    return 0, extent, 1


def _spread_shape(items: Sequence[_Item], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape once single entries are dropped and new axes put in; `shape` has an extent for each real axis."""
    extents = iter(shape)
    result = []
    for item in items:
        if isinstance(item, _NewAxis):
            result.append(1)
            continue
        extent = next(extents)
        if not isinstance(item, _Entry):
            result.append(extent)
    return tuple(result)


def _with_arrays(cut: Value, items: Sequence[_Item], arrays: Sequence[Index]) -> Value:
    """Reads at the positions of the index arrays, whose axes stand together in the result.

    As in NumPy they stand where the arrays stood if these, and ints, were side by side, else in front.
    """
    real = [item for item in items if not isinstance(item, _NewAxis)]
    kept = tuple(n for n, item in zip(cut.shape, real, strict=True) if not isinstance(item, _Entry))
    axes = [axis for axis, item in enumerate(i for i in real if not isinstance(i, _Entry)) if isinstance(item, Index)]
    found = gathered(reshaped(cut, kept), arrays, axes)
    rank = found.ndim - (len(kept) - len(axes))

    selecting = [place for place, item in enumerate(items) if isinstance(item, (_Entry, Index))]
    together = selecting[-1] - selecting[0] + 1 == len(selecting)
    others = [item for item in items if not isinstance(item, (_Entry, Index))]
    before = selecting[0] if together else 0
    window_before = sum(isinstance(item, _Range) for item in others[:before])
    order = [*range(rank, rank + window_before), *range(rank), *range(rank + window_before, found.ndim)]
    placed = transposed(found, order)
    window = iter(placed.shape[:window_before] + placed.shape[window_before + rank :])
    spread = [1 if isinstance(item, _NewAxis) else next(window) for item in others]
    places = placed.shape[window_before : window_before + rank]
    return reshaped(placed, (*spread[:before], *places, *spread[before:]))
