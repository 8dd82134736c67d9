"""Entries deleted, inserted and appended, arrays resized."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.axes import Axis, normal_axis, rising_axes
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.errors import index_error, shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy._core.shapes_of_data import length_of
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.arrays.manipulation import moveaxis, ravel
from lavax.numpy.arrays.rearranging import flip
from lavax.numpy.arrays.tiling import tile
from lavax.numpy.elementwise.arithmetic import add, multiply, subtract
from lavax.numpy.elementwise.comparison import less, not_equal, where
from lavax.numpy.elementwise.extrema import clip
from lavax.numpy.indexing.advanced_indexing import as_index, as_wide_positions
from lavax.numpy.indexing.indexed_update import At
from lavax.numpy.indexing.taking import take
from lavax.numpy.reductions.cumulative import cumsum
from lavax.numpy.reductions.reductions import any as any_of
from lavax.numpy.reductions.reductions import argmax
from lavax.numpy.sorting.searching import places_among
from lavax.numpy.sorting.sorting import argsort, sort
from lavax.tracer import Tracer, bind
from lavax.tracer.values.value import Value

__all__ = ["append", "delete", "insert", "resize", "trim_zeros"]

_MOST_PIECES = 8


def _along(name: str, x: ArrayLike, axis: int | None) -> tuple[Value, int]:
    value = as_value(x)
    return (ravel(value), 0) if axis is None else (value, normal_axis(name, axis, value.type))


def _counting(count: int) -> Value:
    return iota(TensorType((count,), int32), 0)


def delete(
    arr: ArrayLike, obj: int | slice | ArrayLike, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Value:
    """`arr` without the entries `obj` along `axis` (None: of the flattened array).

    `obj` is a position, a slice, positions, or a mask. Positions computed inside `compile` are one number, or with
    `assume_unique_indices` an array without repetitions: else the shape of the result would depend on them
    (ConcretizationError). Raises an IndexError for a known position outside.
    """
    value, along = _along("delete", arr, axis)
    if isinstance(obj, Tracer) and (not obj.ndim or assume_unique_indices):
        return take(value, _kept_places(obj, along, value.type), along, mode="promise_in_bounds")
    line = np.arange(value.shape[along], dtype=np.int32)
    gone = obj if isinstance(obj, slice) else np.asarray(obj)
    if isinstance(gone, np.ndarray) and not gone.size:
        return own(value)
    try:
        kept = np.delete(line, gone)
    except IndexError:
        raise index_error(f"delete: {obj!r:.80} names an entry outside axis {along} of {value.type}") from None
    return _pieces(value, kept, along)


def _pieces(value: Value, places: np.ndarray, axis: int) -> Value:
    """The entries at known positions in rising order: cut out if they form few runs, which moves no bytes."""
    starts = [0, *np.flatnonzero(np.diff(places) != 1) + 1]
    if len(starts) > _MOST_PIECES or not places.size:
        return take(value, places, axis, mode="promise_in_bounds")
    ends = [*starts[1:], places.size]
    runs = [(int(places[start]), int(places[end - 1]) + 1) for start, end in zip(starts, ends, strict=True)]
    return concatenate([cut(value, axis, first, limit) for first, limit in runs], axis)


def _kept_places(obj: Value, axis: int, type: TensorType) -> Value:
    """The positions that remain after the distinct ones in `obj` are deleted."""
    extent = type.shape[axis]
    gone = sort(ravel(as_index(obj, axis, extent, type).positions))
    line = _counting(extent - gone.size)
    # The number of deleted entries before the k-th remaining one: those whose position less their rank is at most k.
    return add(line, places_among(subtract(gone, _counting(gone.size)), line, "right"))


def insert(arr: ArrayLike, obj: int | slice | ArrayLike, values: ArrayLike, axis: int | None = None) -> Value:
    """`arr` with `values` inserted before the positions `obj` along `axis` (None: into the flattened array).

    `obj` is a position (for any number of entries), a slice, positions, or a mask; positions are those in `arr`.
    `values` are cast to the dtype of `arr` and broadcast. Raises an IndexError for a known position outside; a computed
    one is clamped to the range.
    """
    value, along = _along("insert", arr, axis)
    new = cast(as_value(values), value.type.dtype)
    new = reshaped(new, (1,) * (value.ndim - new.ndim) + new.shape)
    if new.ndim > value.ndim:
        raise shape_error(f"insert: values {new.type} have more axes than {value.type}")
    places, is_number = _insertion_places(obj, value.type, along)
    if is_number:
        new = moveaxis(new, 0, along)
    count = new.shape[along] if places.size == 1 else places.size
    shape = tuple(count if d == along else extent for d, extent in enumerate(value.shape))
    both = concatenate([value, broadcast_to(new, shape)], along)
    return take(both, _sources(broadcast_to(places, count), value.shape[along]), along, mode="promise_in_bounds")


def _insertion_places(obj: Any, type: TensorType, axis: int) -> tuple[Value, bool]:
    """The positions, along one axis and counted from the front, and whether `obj` is a number."""
    extent = type.shape[axis]
    if isinstance(obj, slice):
        return as_value(np.arange(extent, dtype=np.int32)[obj]), False
    given = obj if isinstance(obj, Value) else np.asarray(obj)
    if isinstance(given, np.ndarray):
        given = _known_places(given, extent)
    if given.ndim > 1 or not given.type.dtype.is_integer:
        raise shape_error(f"insert: positions must be integers along one axis, got {given.type}")
    given = as_wide_positions(given)
    counted = where(less(given, 0), add(given, extent), given) if given.type.dtype.kind == "int" else given
    return ravel(cast(clip(counted, 0, extent), int32)), given.ndim == 0


def _known_places(given: np.ndarray, extent: int) -> Value:
    if given.dtype.kind == "b":
        given = np.flatnonzero(given)
    if given.dtype.kind in "iu" and given.size and not (-extent <= given.min() and given.max() <= extent):
        raise index_error(f"insert: the position {given.min() if given.min() < -extent else given.max()} is outside an "
                          f"axis of extent {extent}")  # fmt: skip
    return as_value(given if given.size else given.astype(np.int32))


def _sources(places: Value, extent: int) -> Value:
    """For each entry of the result its position among `extent` old entries with the new ones behind them."""
    order = argsort(places)  # stable: of equal positions the first stays first
    targets = add(take(places, order, mode="promise_in_bounds"), _counting(places.size))
    line = _counting(extent + places.size)
    is_new = At(multiply(line, 0))[targets].set(1)
    return At(subtract(line, cumsum(is_new)))[targets].set(add(order, extent))


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axis = None) -> Value:
    """`filt` without what holds only zeros at the front ("f" in `trim`) and at the back ("b") of `axis` (None: of all).

    The shape of the result depends on the data: outside `compile` only. Raises ValueError for other letters in `trim`.
    """
    value = as_value(filt)
    if set(trim.lower()) - set("fb"):
        raise ValueError(f"trim_zeros: trim is made of 'f' and 'b', got {trim!r}")
    advice = "inside compile, keep the zeros"
    holds = not_equal(value, 0)
    result = value
    for along in rising_axes("trim_zeros", axis, value.type) if value.size else ():
        full = any_of(holds, tuple(d for d in range(value.ndim) if d != along))
        leading = length_of("trim_zeros", argmax(full), None, advice)
        trailing = length_of("trim_zeros", argmax(flip(full)), None, advice)
        extent = value.shape[along]
        start, stop = leading if "f" in trim.lower() else 0, extent - (trailing if "b" in trim.lower() else 0)
        result = cut(result, along, start, stop) if bool(any_of(full)) else cut(result, along, 0, 0)
    return own(result) if result is value else result


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Value:
    """`values` after `arr` along `axis`; None: both flattened."""
    return concatenate([arr, values], axis)


def resize(a: ArrayLike, new_shape: int | Sequence[int]) -> Value:
    """The flattened `a`, repeated as needed, in `new_shape`; zeros if `a` has no elements.

    Raises ShapeError for negative extents.
    """
    value, shape = ravel(a), checked_shape("resize", new_shape)
    size = math.prod(shape)
    if not value.size or not size:
        return bind("constant", type=value.type.with_shape(shape), value=value.type.dtype.number(0))
    times = -(-size // value.size)
    return reshaped(cut(tile(value, times), 0, 0, size), shape)
