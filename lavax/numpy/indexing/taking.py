"""Entries taken along an axis at given positions."""
from __future__ import annotations

import operator
from typing import Literal, TypeAlias

import numpy as np

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import spread
from lavax.numpy._core.errors import index_error
from lavax.numpy._core.movement import transposed
from lavax.numpy._core.operands import ArrayLike, Scalar, as_value, holds_values
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.manipulation import ravel, reshape
from lavax.numpy.elementwise.comparison import greater_equal, less, logical_or, where
from lavax.numpy.elementwise.extrema import clip
from lavax.numpy.elementwise.rounding import remainder
from lavax.numpy.indexing.advanced_indexing import as_index, as_wide_positions, gathered
from lavax.numpy.indexing.index_modes import filling, held_inside, with_margin
from lavax.numpy.indexing.indexing import index
from lavax.tracer import bind, constant, with_weak
from lavax.tracer.values.value import Value

__all__ = ["take", "take_along_axis"]

TakeMode: TypeAlias = Literal["clip", "wrap", "fill", "promise_in_bounds"] | None
TAKE_MODES = (None, "clip", "wrap", "fill", "promise_in_bounds")


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: TakeMode = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Scalar | None = None,
) -> Value:
    """The entries of `a` at `indices` along `axis` (None: of the flattened array); axes of `indices` replace that axis.

    Negative positions count from the end. For positions outside: by default one that is a Python or NumPy number raises
    an IndexError, and one in an array reads as with "fill"; with `mode` "clip" all are clamped, negative ones to 0;
    with "wrap" they wrap around; with "fill" they read `fill_value` (None: NaN, the least signed integer, the greatest
    unsigned one, True); "promise_in_bounds": there are none. The hints `unique_indices` and `indices_are_sorted` are
    taken as JAX takes them, and change nothing. Raises ValueError for another mode.
    """
    refuse_out("take", out)
    if mode not in TAKE_MODES:
        raise ValueError(f"take: mode is {', '.join(map(repr, TAKE_MODES[:-1]))} or {TAKE_MODES[-1]!r}, got {mode!r}")
    value = as_value(a)
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis("take", axis, value.type)
    if mode in ("clip", "wrap") and value.shape[along]:
        extent = value.shape[along]
        numbers = as_wide_positions(as_value(indices))
        indices = clip(numbers, 0, extent - 1) if mode == "clip" else remainder(numbers, extent)
    fills = mode == "fill" or (mode is None and holds_values(indices))
    if fills and not (value.shape[along] and holds_values(indices)):
        value, indices = _filled(value, indices, along, fill_value)
        fills = False
    if isinstance(indices, (int, np.integer)) and not isinstance(indices, bool):
        return index(value, (*[slice(None)] * along, operator.index(indices)))
    places = as_index(indices, along, value.shape[along], value.type)
    found = gathered(value, [places], [along])
    if fills:
        shape = (*places.positions.shape, *[1] * (value.ndim - 1))
        found = _or_filling(found, reshape(_outside(places.positions, value.shape[along]), shape), fill_value)
    rank = found.ndim - value.ndim + 1
    return transposed(found, [*range(rank, rank + along), *range(rank), *range(rank + along, found.ndim)])


def _outside(positions: Value, extent: int) -> Value:
    """Which positions, counted from the front, are outside."""
    return logical_or(less(positions, 0), greater_equal(positions, extent))


def _or_filling(found: Value, outside: Value, fill_value: Scalar | None) -> Value:
    """What was read, with the filling for positions outside."""
    return with_weak(where(outside, filling(found.type.dtype, fill_value), found), found.weak)


def _filled(value: Value, indices: ArrayLike, along: int, fill_value: Scalar | None) -> tuple[Value, ArrayLike]:
    """The array with one more entry along the axis, and positions with those outside referring to it."""
    key = (*[slice(None)] * along, indices)
    widened, marked = with_margin(value, key, filling(value.type.dtype, fill_value))
    return widened, marked[along]


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: Literal["clip", "fill", "promise_in_bounds"] | None = None,
    fill_value: Scalar | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Value:
    """For each position of `indices` the entry of `arr` there, but along `axis` at the position given by `indices`.

    `arr` and `indices` have one rank and broadcast at the other axes; `axis` None takes both flattened. Negative
    positions count from the end, unless `wrap_negative_indices` is False: then they are outside. For positions outside:
    by default one that is a Python or NumPy number raises an IndexError, and one in an array reads as with "fill"; with
    `mode` "clip" all are clamped; with "fill" they read `fill_value` (None: NaN, the least signed integer, the greatest
    unsigned one, True); "promise_in_bounds": there are none. Raises ValueError for another mode.
    """
    if mode not in (None, "clip", "fill", "promise_in_bounds"):
        raise ValueError(
            f"take_along_axis: mode is None, 'clip', 'fill' or 'promise_in_bounds', got {mode!r}"
        )
    value = as_value(arr)
    if axis is None:
        value, axis = ravel(value), 0
        indices = indices if np.ndim(indices) == 1 else ravel(indices)
    along = normal_axis("take_along_axis", axis, value.type)
    if wrap_negative_indices is False:
        counted = as_wide_positions(as_value(indices))
        indices = where(less(counted, 0), 0 if mode == "clip" else value.shape[along], counted)
    if mode == "clip":
        indices = held_inside((*[slice(None)] * along, indices), value.type)[along]
    fills = mode == "fill" or (mode is None and holds_values(indices))
    if fills and not (value.shape[along] and holds_values(indices)):
        value, indices = _filled(value, indices, along, fill_value)
        fills = False
    positions = as_index(indices, along, value.shape[along], value.type).positions
    shape = _shape_along(value.type, positions.type, along)
    kind = TensorType(shape, int32)
    places = [
        spread(positions, shape)
        if d == along
        else (constant(0, kind) if extent == 1 else iota(kind, d))
        for d, extent in enumerate(value.shape)
    ]
    found = with_weak(bind("gather", value, *places, axes=tuple(range(value.ndim))), value.weak)
    return _or_filling(found, _outside(places[along], value.shape[along]), fill_value) if fills else found


def _shape_along(type: TensorType, positions: TensorType, axis: int) -> tuple[int, ...]:
    """The shape of the result: that of the positions, broadcast with the array's except at `axis`."""
    pairs = list(zip(type.shape, positions.shape, strict=False))
    fits = all(a == b or 1 in (a, b) for d, (a, b) in enumerate(pairs) if d != axis)
    if type.rank != positions.rank or not fits:
        raise index_error(f"take_along_axis: {positions} does not give positions along axis {axis} of {type}")
    return tuple(b if d == axis or a == 1 else a for d, (a, b) in enumerate(pairs))
