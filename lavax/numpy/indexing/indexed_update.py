"""New arrays that differ from old ones at some positions: `x.at[key].set(y)` and its relatives."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.ir.location import warn_user
from lavax.ir.monoids import BY_JOIN
from lavax.ir.types import DType, TensorType, bool_, complex128, float64, int32, int64
from lavax.numpy._core.application import apply, as_truth
from lavax.numpy._core.broadcasting import broadcast_to, spread
from lavax.numpy._core.errors import dtype_error, index_error
from lavax.numpy._core.movement import reshaped, transposed
from lavax.numpy._core.operands import (
    ArrayLike,
    Scalar,
    Splat,
    as_operand,
    cast,
    constant_of,
    own,
    scalar_as,
)
from lavax.numpy._core.promotion import promote
from lavax.numpy.arrays.creation import ones_like
from lavax.numpy.elementwise.arithmetic import divide, negative
from lavax.numpy.elementwise.comparison import where
from lavax.numpy.elementwise.powers import power
from lavax.numpy.indexing.advanced_indexing import AxisPositions, places_of
from lavax.numpy.indexing.complex_extrema import lexicographic
from lavax.numpy.indexing.index_modes import (
    Mode,
    check_mode,
    filling,
    held_inside,
    leaves_out,
    not_from_the_end,
    with_margin,
)
from lavax.numpy.indexing.indexing import (
    AxisRange,
    Entry,
    GatherLayout,
    Item,
    NewAxis,
    bounds_of,
    flipped_axes,
    index,
    key_items,
    layout_of,
    sliced,
)
from lavax.numpy.indexing.masks import holds_truths, is_mask, is_truth, with_axes_of_truths
from lavax.tracer import active_trace, bind, constant
from lavax.tracer.values.value import Value


@dataclass(frozen=True, eq=False)
class At:
    """`x.at`: takes a key in brackets, as `x` does."""

    array: Value

    def __getitem__(self, key: Any) -> Place:
        return Place(self.array, key)


@dataclass(frozen=True, eq=False)
class Place:
    """Positions in an array. Each method returns a new array of the same shape and dtype that differs there.

    Keys are those of indexing. Updates are broadcast to the shape of `x[key]`. Old values and updates are joined in
    their common dtype, and the results are cast to that of `x`, with a FutureWarning where floats become integers. If a
    position is named more than once, its updates are applied in row-major order: the last one set remains, and all are
    added. A position known while tracing that is outside the range raises an IndexError; an update at a computed one is
    dropped. Gradients flow to `x` and to the updates. `mode` changes this for known and computed positions alike:
    "clip" takes the nearest position, "drop" and "fill" leave such updates out, None and "promise_in_bounds" are as
    above. With wrap_negative_indices=False, negative positions are outside, too. The hints `indices_are_sorted` and
    `unique_indices` are taken as JAX takes them, and change nothing.
    """

    array: Value
    key: Any

    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """With `values` there."""
        return _updated_in_mode(self._counted(mode, wrap_negative_indices), "set", values, mode)

    def add(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """With `values` added."""
        return _updated_in_mode(self._counted(mode, wrap_negative_indices), "add", values, mode)

    def subtract(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """With `values` subtracted."""
        return self.add(negative(values), mode=mode, wrap_negative_indices=wrap_negative_indices)

    def multiply(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """Multiplied by `values`."""
        return _updated_in_mode(self._counted(mode, wrap_negative_indices), "multiply", values, mode)

    mul = multiply

    def divide(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """Divided by `values`. Integers become floats, as by `/`; other arrays keep their dtype."""
        own_dtype = self.array.type.dtype
        ones = ones_like(self.array, promote([self.array, as_operand(values)])[0])
        quotients = divide(self.array, self._in(ones, values, mode, wrap_negative_indices))
        return cast(quotients, own_dtype) if own_dtype.is_inexact else quotients

    def power(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """Raised to the power of `values`."""
        return power(self.array, self._in(ones_like(self.array), values, mode, wrap_negative_indices))

    def min(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """With `values` where they are smaller; NaN where either is.

        Complex numbers are ordered by their real parts, equal ones by the imaginary parts.
        """
        return _extremum(self._counted(mode, wrap_negative_indices), "min", values, mode)

    def max(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """With `values` where they are greater; NaN where either is. Complex numbers are ordered as in `min`."""
        return _extremum(self._counted(mode, wrap_negative_indices), "max", values, mode)

    def apply(
        self,
        function: Callable[[Value], ArrayLike],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """With `function` of the old values, once per position."""
        old = self.get(mode=mode, wrap_negative_indices=wrap_negative_indices)
        return self.set(function(old), mode=mode, wrap_negative_indices=wrap_negative_indices)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        fill_value: Scalar | None = None,
        wrap_negative_indices: bool = True,
    ) -> Value:
        """`x[key]`; with the mode "fill", positions outside read `fill_value`.

        If that is None: NaN, the least signed integer, the greatest unsigned one, True. The mode "clip" reads the
        nearest position, "drop" is as "fill". Raises ValueError for another mode, or a `fill_value` without these two.
        """
        check_mode("get", mode)
        if fill_value is not None and not leaves_out(mode):
            raise ValueError(f"at[].get: fill_value is read with mode='fill' or 'drop' only, got mode={mode!r}")
        place = self._counted(mode, wrap_negative_indices, reads=True)
        array, key = with_axes_of_truths(place.array, place.key)
        if leaves_out(mode):
            return index(*with_margin(array, key, filling(array.type.dtype, fill_value)))
        return index(array, held_inside(key, array.type) if mode == "clip" else key)

    def _counted(self, mode: Mode, from_the_end: bool, reads: bool = False) -> Place:
        """The same, with negative positions outside unless they are counted from the end."""
        if from_the_end:
            return self
        return Place(self.array, not_from_the_end(self.key, self.array.type, mode, reads))

    def _in(self, ones: Value, values: ArrayLike, mode: Mode, wrap_negative_indices: bool) -> Value:
        """Ones, multiplied by `values` there."""
        return Place(ones, self.key).multiply(values, mode=mode, wrap_negative_indices=wrap_negative_indices)


@dataclass(frozen=True)
class _Places:
    """The places of a key, for arrays of any dtype."""

    key: Any
    join: str
    mode: Mode

    def read(self, array: Value) -> Value:
        return Place(array, self.key).get(mode=self.mode)

    def joined(self, array: Value, values: Value) -> Value:
        return _updated_in_mode(Place(array, self.key), self.join, values, self.mode)


def _extremum(place: Place, name: str, values: ArrayLike, mode: Mode) -> Value:
    join = {"min": "minimum", "max": "maximum"}[name]
    if not place.array.type.dtype.is_complex:
        return _updated_in_mode(place, join, values, mode)
    check_mode(name, mode)
    return lexicographic(place.array, values, greatest=name == "max", places=_Places(place.key, join, mode))


def _updated_in_mode(place: Place, join: str, values: ArrayLike, mode: Mode) -> Value:
    array, key = place.array, place.key
    check_mode(join, mode)
    common = _common_dtype(array, join, values)
    if common != array.type.dtype:
        in_common = _updated_in_mode(Place(cast(array, common), key), join, values, mode)
        return cast(in_common, array.type.dtype)
    if is_truth(key):
        return _updated(array, key, join, values)
    if holds_truths(key):
        widened, positions = with_axes_of_truths(array, key)
        return reshaped(_updated_in_mode(Place(widened, positions), join, values, mode), array.shape)
    if mode == "clip":
        return _updated(array, held_inside(key, array.type), join, values)
    if not leaves_out(mode):
        return _updated(array, key, join, values)
    widened, marked = with_margin(array, key, scalar_as(0, array.type.dtype))
    return index(_updated(widened, marked, join, values), tuple(slice(extent) for extent in array.shape))


def _common_dtype(array: Value, join: str, values: ArrayLike) -> DType:
    """That in which old values and updates are joined. What is set has the array's, as comparisons of complex ones.

    Warns that results are cast where the updates are floats and the array has integers.
    """
    given, own_dtype = as_operand(values), array.type.dtype
    if join == "set" or own_dtype.kind == "bool":
        return own_dtype
    common, _ = promote([array, given])
    if common.is_complex and not own_dtype.is_complex:
        return own_dtype
    if common.is_float and own_dtype.is_integer:
        message = f"at[]: the results of joining {given.type.dtype} and {array.type} are cast to {own_dtype}"
        warn_user(FutureWarning, message)
    return common


def _updated(array: Value, key: Any, join: str, values: ArrayLike) -> Value:
    if array.type.dtype.kind == "bool" and join in ("add", "multiply"):
        raise dtype_error(f"at[].{join} is not defined for {array.type}")
    if (is_mask(key) and not as_truth(key).size) or (
        is_truth(key) and not as_operand(values).type.size and not bool(key)
    ):
        broadcast_to(values, index(array, key).shape)  # refuses what is not an update of no entries
        return own(array)
    if is_truth(key) or (is_mask(key) and as_operand(values).type.rank <= array.ndim - len(_shape_of(key))):
        return _where_mask(array, key, join, values)
    items = key_items(key, array.type)
    if active_trace() is None:
        items = [_computed(item) for item in items]
    arrays = [item for item in items if isinstance(item, AxisPositions)]
    if not arrays:
        shape = index_shape(items, array)
        return _put_back(array, items, join, _fitting(array, values, shape))
    cut = sliced(array, items)
    places = places_of("at", arrays)
    layout = layout_of(items, cut.shape, places)
    changed = _scattered(reshaped(cut, layout.kept), layout, join, arrays, _fitting(array, values, layout.shape))
    if cut is array:
        return reshaped(changed, array.shape)
    return _put_back(array, items, "set", changed)


def _computed(item: Item) -> Item:
    """A known position as a computed one: outside of traces one program then serves the positions of a whole loop."""
    if not isinstance(item, Entry):
        return item
    return AxisPositions(constant(item.position, TensorType((), int32)))


def _shape_of(mask: Any) -> tuple[int, ...]:
    return as_truth(mask).shape


def _where_mask(array: Value, mask: Any, join: str, values: ArrayLike) -> Value:
    """A mask with one update for all positions, or one per row, needs no positions."""
    truth = as_truth(mask)
    if truth.shape != array.shape[: truth.ndim]:
        raise index_error(f"at[mask]: a mask of shape {truth.shape} does not fit {array.type}")
    chosen = spread(reshaped(truth, truth.shape + (1,) * (array.ndim - truth.ndim)), array.shape)
    fitted = _fitting(array, values, array.shape)
    return where(chosen, fitted if join == "set" else apply(join, array, fitted), array)


def _fitting(array: Value, values: ArrayLike, shape: tuple[int, ...]) -> Value:
    """The updates in the dtype of `array`, broadcast to `shape`. Raises ShapeError if they do not broadcast."""
    given, own_dtype = as_operand(values), array.type.dtype
    if isinstance(given, Splat):  # Python's numbers have 64 bits, which a value of their own would not keep
        has_it_all = own_dtype.is_complex or not isinstance(given.value, complex)
        is_wide = given.weak and own_dtype in (int64, float64, complex128)
        given = constant_of(given, TensorType((), own_dtype) if is_wide and has_it_all else given.type)
    if given.type.dtype.is_complex and array.type.dtype.kind not in ("complex", "bool"):
        message = f"at[]: the imaginary parts of the updates are dropped, because the array is {array.type}"
        warn_user(np.exceptions.ComplexWarning, message)
    updates = cast(given, array.type.dtype)
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
        if isinstance(item, AxisRange):
            start, limit, step = bounds_of(item, extent)
            shape.append(len(range(start, limit, step)))
    return tuple(shape)


def _scattered(kept: Value, layout: GatherLayout, join: str, arrays: Sequence[AxisPositions], updates: Value) -> Value:
    """The updates, of the shape of `x[key]`, scattered to the positions of the index arrays."""
    rank = len(layout.order) - (kept.ndim - len(layout.axes))
    places = places_of("at", arrays)
    window = [extent for axis, extent in enumerate(kept.shape) if axis not in layout.axes]
    found = (*places, *window)
    assert len(places) == rank
    moved = reshaped(updates, tuple(found[axis] for axis in layout.order))
    back = sorted(range(len(layout.order)), key=layout.order.__getitem__)
    positions = [spread(item.positions, places) for item in arrays]
    return bind(f"scatter_{join}", kept, transposed(moved, back), *positions, axes=layout.axes)


def _put_back(array: Value, items: Sequence[Item], join: str, updates: Value) -> Value:
    """Updates of a key's ranges and entries, padded to the whole array and joined with it."""
    real = [item for item in items if not isinstance(item, NewAxis)]
    bounds = [bounds_of(item, extent) for item, extent in zip(real, array.shape, strict=True)]
    cut = tuple(len(range(*bound)) for bound in bounds)
    if not all(cut):
        return own(array)
    placed = reshaped(updates, cut)
    flipped = flipped_axes(items)
    if flipped:
        placed = bind("flip", placed, axes=flipped)
    if join != "set":
        return apply(join, array, _padded(placed, bounds, array, BY_JOIN[join].identity(array.type.dtype)))
    if cut == array.shape:
        return placed
    zero = array.type.dtype.number(0)
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
