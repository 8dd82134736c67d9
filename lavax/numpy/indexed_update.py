"""New arrays that differ from old ones at some places: `x.at[key].set(y)` and its kind."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lavax.ir.types import DType, bool_
from lavax.numpy.advanced_indexing import Index
from lavax.numpy.application import apply, as_truth
from lavax.numpy.broadcasting import broadcast_to, common_shape, spread
from lavax.numpy.comparison import where
from lavax.numpy.creation import ones_like
from lavax.numpy.elementwise import divide, negative
from lavax.numpy.errors import dtype_error, shape_error
from lavax.numpy.exponential import power
from lavax.numpy.indexing import (
    Item,
    Layout,
    NewAxis,
    Range,
    bounds_of,
    flipped_axes,
    index,
    is_mask,
    key_items,
    layout_of,
    sliced,
)
from lavax.numpy.manipulation import reshaped, transposed
from lavax.numpy.operands import ArrayLike, as_operand, as_value, cast
from lavax.tracer import bind, constant
from lavax.tracer.value import Value


def _identity(join: str, dtype: DType) -> float | int | bool:
    """What an update joins to without effect; for `set` there is none."""
    if join in ("add", "multiply"):
        return (float if dtype.is_float else int)(join == "multiply")
    limit: float | int | bool = dtype.lowest if join == "maximum" else dtype.highest
    return limit


@dataclass(frozen=True, eq=False)
class At:
    """`x.at`: index it with a key as one would index `x`."""

    array: Value

    def __getitem__(self, key: Any) -> Place:
        return Place(self.array, key)


@dataclass(frozen=True, eq=False)
class Place:
    """Places in an array. Each method gives a new array of the same shape and dtype that differs there.

    Keys are those of indexing. Updates are broadcast to the shape of `x[key]` and cast to the dtype of `x`. Where
    a place is named more than once, updates come one after the other in row-major order: the last one set stands,
    and each is added. A position known while tracing that is outside the range raises an IndexError; an update at
    a computed one is dropped. Gradients flow to `x` and to the updates.
    """

    array: Value
    key: Any

    def set(self, values: ArrayLike) -> Value:
        """With `values` in place of what stood there."""
        return _updated(self.array, self.key, "set", values)

    def add(self, values: ArrayLike) -> Value:
        """With `values` added."""
        return _updated(self.array, self.key, "add", values)

    def subtract(self, values: ArrayLike) -> Value:
        """With `values` subtracted."""
        return self.add(negative(values))

    def multiply(self, values: ArrayLike) -> Value:
        """Multiplied by `values`."""
        return _updated(self.array, self.key, "multiply", values)

    mul = multiply

    def divide(self, values: ArrayLike) -> Value:
        """Divided by `values`; cast to the dtype of `x`."""
        divisors = Place(ones_like(self.array), self.key).multiply(values)
        return cast(divide(self.array, divisors), self.array.type.dtype)

    def power(self, values: ArrayLike) -> Value:
        """Raised to the power of `values`."""
        return power(self.array, Place(ones_like(self.array), self.key).multiply(values))

    def min(self, values: ArrayLike) -> Value:
        """With `values` where they are smaller; NaN where one of both is."""
        return _updated(self.array, self.key, "minimum", values)

    def max(self, values: ArrayLike) -> Value:
        """With `values` where they are greater; NaN where one of both is."""
        return _updated(self.array, self.key, "maximum", values)

    def apply(self, function: Callable[[Value], ArrayLike]) -> Value:
        """With `function` of what stood there, once for each place."""
        return self.set(function(self.get()))

    def get(self) -> Value:
        """`x[key]`."""
        return index(self.array, self.key)


def _updated(array: Value, key: Any, join: str, values: ArrayLike) -> Value:
    if array.type.dtype.kind == "bool" and join in ("add", "multiply"):
        raise dtype_error(f"at[].{join} is not defined for {array.type}")
    if is_mask(key) and as_operand(values).type.rank <= array.ndim - len(_shape_of(key)):
        return _where_mask(array, key, join, values)
    items = key_items(key, array.type)
    arrays = [item for item in items if isinstance(item, Index)]
    if not arrays:
        shape = index_shape(items, array)
        return _put_back(array, items, join, _fitting(array, values, shape))
    cut = sliced(array, items)
    places = common_shape("at", [item.positions for item in arrays])
    layout = layout_of(items, cut.shape, places)
    changed = _scattered(reshaped(cut, layout.kept), layout, join, arrays, _fitting(array, values, layout.shape))
    if cut is array:
        return reshaped(changed, array.shape)
    return _put_back(array, items, "set", changed)


def _shape_of(mask: Any) -> tuple[int, ...]:
    return as_truth(mask).shape


def _where_mask(array: Value, mask: Any, join: str, values: ArrayLike) -> Value:
    """A mask with one update for all places, or one for each row, needs no positions."""
    truth = as_truth(mask)
    if truth.shape != array.shape[: truth.ndim]:
        raise shape_error(f"at[mask]: a mask of shape {truth.shape} does not fit {array.type}")
    chosen = spread(reshaped(truth, truth.shape + (1,) * (array.ndim - truth.ndim)), array.shape)
    fitted = _fitting(array, values, array.shape)
    return where(chosen, fitted if join == "set" else apply(join, array, fitted), array)


def _fitting(array: Value, values: ArrayLike, shape: tuple[int, ...]) -> Value:
    """The updates in the dtype of `array` and the shape they must have. Raises ShapeError where they do not."""
    updates = cast(as_value(values), array.type.dtype)
    extra = updates.ndim - len(shape)
    if extra > 0 and updates.shape[:extra] == (1,) * extra:
        updates = reshaped(updates, updates.shape[extra:])
    return broadcast_to(updates, shape)


def index_shape(items: Sequence[Item], array: Value) -> tuple[int, ...]:
    """The shape of `array` at a key without index arrays."""
    extents = iter(array.shape)
    shape = []
    for item in items:
        if isinstance(item, NewAxis):
            shape.append(1)
            continue
        extent = next(extents)
        if isinstance(item, Range):
            start, limit, step = bounds_of(item, extent)
            shape.append(len(range(start, limit, step)))
    return tuple(shape)


def _scattered(kept: Value, layout: Layout, join: str, arrays: Sequence[Index], updates: Value) -> Value:
    """The updates, which have the shape of what the key reads, joined to the places of the index arrays."""
    rank = len(layout.order) - (kept.ndim - len(layout.axes))
    places = common_shape("at", [item.positions for item in arrays])
    window = [extent for axis, extent in enumerate(kept.shape) if axis not in layout.axes]
    found = (*places, *window)
    assert len(places) == rank
    moved = reshaped(updates, tuple(found[axis] for axis in layout.order))
    back = sorted(range(len(layout.order)), key=layout.order.__getitem__)
    positions = [spread(item.positions, places) for item in arrays]
    return bind(f"scatter_{join}", kept, transposed(moved, back), *positions, axes=layout.axes)


def _put_back(array: Value, items: Sequence[Item], join: str, updates: Value) -> Value:
    """Updates of a key's ranges and entries, spread over the whole array by padding and joined there."""
    real = [item for item in items if not isinstance(item, NewAxis)]
    bounds = [bounds_of(item, extent) for item, extent in zip(real, array.shape, strict=True)]
    cut = tuple(len(range(*bound)) for bound in bounds)
    if not all(cut):
        return array
    placed = reshaped(updates, cut)
    flipped = flipped_axes(items)
    if flipped:
        placed = bind("flip", placed, axes=flipped)
    if join != "set":
        return apply(join, array, _padded(placed, bounds, array, _identity(join, array.type.dtype)))
    if cut == array.shape:
        return placed
    zero = {"float": 0.0, "bool": False}.get(array.type.dtype.kind, 0)
    mask = _padded(constant(True, placed.type.with_dtype(bool_)), bounds, array, False)
    return where(mask, _padded(placed, bounds, array, zero), array)


def _padded(
    value: Value, bounds: Sequence[tuple[int, int, int]], array: Value, filling: float | int | bool
) -> Value:
    starts, _, steps = zip(*bounds, strict=True) if bounds else ((), (), ())
    ends = [start + (n - 1) * step + 1 for start, n, step in zip(starts, value.shape, steps, strict=True)]
    high = tuple(extent - end for extent, end in zip(array.shape, ends, strict=True))
    if value.shape == array.shape:
        return value
    return bind("pad", value, low=tuple(starts), high=high, interior=tuple(step - 1 for step in steps), value=filling)
