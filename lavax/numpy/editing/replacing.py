"""Elements replaced: written to the array itself, as in NumPy, or with `inplace=False` in a new one.

Traced values, and what is not an array of lavax, cannot be written to: they need `inplace=False`.
"""
from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.application import as_truth
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.dropped_parts import tell_dropped_parts
from lavax.numpy._core.errors import index_error, shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.operands import ArrayLike, as_value, cast, holds_values, own, scalar_as
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.manipulation import ravel
from lavax.numpy.editing.editing import resize
from lavax.numpy.elementwise.arithmetic import subtract
from lavax.numpy.elementwise.comparison import where
from lavax.numpy.elementwise.extrema import clip
from lavax.numpy.elementwise.rounding import remainder
from lavax.numpy.indexing.advanced_indexing import as_index, as_wide_positions
from lavax.numpy.indexing.index_modes import Mode, check_mode, held_inside, leaves_out, with_margin
from lavax.numpy.indexing.indexed_update import At
from lavax.numpy.indexing.taking import take
from lavax.numpy.reductions.cumulative import cumsum
from lavax.tracer import active_trace, bind
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value

__all__ = ["fill_diagonal", "place", "put", "put_along_axis"]


def _require_writable(name: str, given: ArrayLike, inplace: bool) -> None:
    if inplace and not (isinstance(given, Array) and active_trace() is None):
        raise ValueError(
            f"{name}: only arrays outside of functions that are traced can be written to: pass inplace=False, and take "
            "the new array"
        )


def _result(given: ArrayLike, replaced: Value, inplace: bool) -> Value:
    """`given`, with the numbers of `replaced` written to it, or `replaced`."""
    if not inplace:
        return replaced
    assert isinstance(given, Array) and isinstance(replaced, Array)
    given.write(replaced)
    return given


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: Mode | Literal["wrap"] = None, *, inplace: bool = True
) -> Value:
    """`a` with the elements at the positions `ind` of the flattened array replaced by `v`, repeated if shorter.

    `mode` "clip" moves positions outside to the nearer end, which is the first for all negative ones; "wrap" counts on
    from the other end; others are those of `a.at[...]`. With None computed positions outside are moved to the nearer
    end, where negative ones count from the end first. Raises ValueError if `a` cannot be written to, unless `inplace`
    is False, and an IndexError for a known position outside.
    """
    _require_writable("put", a, inplace)
    value = as_value(a)
    # Known positions stay known, so that those outside are refused.
    places = ravel(ind) if holds_values(ind) else np.ravel(np.asarray(ind))
    if not places.size:
        return _result(a, own(value), inplace)
    new = resize(as_value(v), places.size)
    if value.size and mode in ("clip", "wrap"):
        numbers = as_wide_positions(as_value(places))
        places = clip(numbers, 0, value.size - 1) if mode == "clip" else remainder(numbers, value.size)
    elif mode is None and isinstance(places, Value):
        mode = "clip"
    others: Any = None if mode == "wrap" else mode
    return _result(a, reshaped(At(ravel(value))[places].set(new, mode=others), value.shape), inplace)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Value:
    """`arr` with the elements where `mask` is true replaced by those of `vals` in order, repeated if fewer.

    Raises ValueError if `arr` cannot be written to, unless `inplace` is False, and ShapeError if the sizes of `arr` and
    `mask` differ, or `vals` is empty.
    """
    _require_writable("place", arr, inplace)
    value, chosen, new = as_value(arr), ravel(as_truth(mask)), ravel(vals)
    if chosen.size != value.size:
        raise shape_error(f"place: the mask has {chosen.size} elements, the array {value.size}")
    if not new.size and value.size:
        raise shape_error("place: there are no values to put in")
    if not value.size:
        return _result(arr, own(value), inplace)
    tell_dropped_parts("place", new.type.dtype, value.type.dtype)
    which = remainder(subtract(cumsum(chosen), 1), new.size)
    replaced = where(chosen, cast(take(new, which, mode="promise_in_bounds"), value.type.dtype), ravel(value))
    return _result(arr, reshaped(replaced, value.shape), inplace)


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Value:
    """`a` with `val` on its main diagonal, repeated if it has fewer elements.

    With `wrap` the diagonal of a tall matrix restarts at the left, one row below each end. Raises ValueError if `a`
    cannot be written to, unless `inplace` is False, and ShapeError for one axis, or more than two of different extents.
    """
    _require_writable("fill_diagonal", a, inplace)
    value = as_value(a)
    if value.ndim < 2 or (value.ndim > 2 and len(set(value.shape)) > 1):
        raise shape_error(f"fill_diagonal: {value.type} must have at least two axes, and more than two all alike")
    if not value.size:
        return _result(a, own(value), inplace)
    step = 1 + sum(math.prod(value.shape[axis + 1 :]) for axis in range(value.ndim - 1))
    end = value.size if wrap or value.ndim > 2 else min(value.size, value.shape[1] * value.shape[1])
    places = range(0, end, step)
    new = resize(as_value(val), len(places))
    return _result(a, reshaped(At(ravel(value))[slice(0, end, step)].set(new), value.shape), inplace)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: Mode = None,
) -> Value:
    """`arr` with `values` at the positions `indices` along `axis` (None: flattened).

    `indices` has the rank of `arr` and broadcasts at the other axes; `values` is broadcast to it. If a position is
    named twice, the last value remains. `mode` says what becomes of positions outside, as in `x.at[].set`: by default
    a known one raises an IndexError, and computed ones are dropped. Raises ValueError if `arr` cannot be written to,
    unless `inplace` is False, and for another mode.
    """
    _require_writable("put_along_axis", arr, inplace)
    check_mode("put_along_axis", mode)
    value = as_value(arr)
    if axis is None:
        replaced = reshaped(_put_along(ravel(value), ravel(indices), values, 0, mode), value.shape)
    else:
        replaced = _put_along(value, indices, values, normal_axis("put_along_axis", axis, value.type), mode)
    return _result(arr, replaced, inplace)


def _put_along(value: Value, indices: ArrayLike, values: ArrayLike, along: int, mode: Mode) -> Value:
    key = (*[slice(None)] * along, indices)
    if mode == "clip":
        return _put_at_known(value, held_inside(key, value.type)[along], values, along)
    if not leaves_out(mode):
        return _put_at_known(value, indices, values, along)
    widened, marked = with_margin(value, key, scalar_as(0, value.type.dtype))
    return cut(_put_at_known(widened, marked[along], values, along), along, 0, value.shape[along])


def _put_at_known(value: Value, indices: ArrayLike, values: ArrayLike, along: int) -> Value:
    positions = as_index(indices, along, value.shape[along], value.type).positions
    if positions.ndim != value.ndim:
        raise index_error(f"put_along_axis: {positions.type} gives no positions along axis {along} of {value.type}")
    shape = tuple(positions.shape[d] if d == along else extent for d, extent in enumerate(value.shape))
    kind = TensorType(shape, int32)
    places = [broadcast_to(positions, shape) if d == along else iota(kind, d) for d in range(value.ndim)]
    updates = broadcast_to(cast(as_value(values), value.type.dtype), shape)
    return bind("scatter_set", value, updates, *places, axes=tuple(range(value.ndim)))
