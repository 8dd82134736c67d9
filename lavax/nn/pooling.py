"""Reductions over moving windows."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from lavax.ir.monoids import MONOIDS
from lavax.ir.ops.window import windows_along
from lavax.ir.types import TensorType, bool_, int32
from lavax.nn.windows import Padding, PerAxis, paddings, per_axis, require_window_axes, span_of
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.broadcasting import spread_back
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.arrays.creation import iota, ones
from lavax.numpy.elementwise.arithmetic import divide
from lavax.numpy.elementwise.comparison import equal, greater, less, where
from lavax.numpy.reductions.reductions import fold
from lavax.tracer import bind
from lavax.tracer.values.value import Value

__all__ = ["avg_pool", "max_pool", "min_pool", "sum_pool"]

Extremum = Literal["max", "min"]


def _padded(value: Value, axes: Sequence[int], pads: Sequence[tuple[int, int]], fill: float | int | bool) -> Value:
    """`value` with `fill` at the ends of `axes`, or cut there."""
    low, high = [0] * value.ndim, [0] * value.ndim
    for axis, (before, after) in zip(axes, pads, strict=True):
        low[axis], high[axis] = before, after
    if max((*low, *high, 0)) > 0:
        first, last = (tuple(max(width, 0) for width in side) for side in (low, high))
        value = bind("pad", value, low=first, high=last, interior=(0,) * value.ndim, value=fill)
    if min((*low, *high, 0)) < 0:
        start = tuple(max(-width, 0) for width in low)
        ends = zip(start, value.shape, high, strict=True)
        limit = tuple(max(extent + min(width, 0), first) for first, extent, width in ends)
        value = bind("slice", value, start=start, limit=limit, stride=(1,) * value.ndim)
    return value


class _Moves(NamedTuple):
    """The moves of a window, as the user gives them."""

    window_shape: Sequence[int]
    strides: PerAxis | None
    padding: Padding
    window_dilation: PerAxis
    axes: Sequence[int] | None


def _windows(name: str, value: Value, moves: _Moves, fill: float | int | bool) -> tuple[Value, tuple[int, ...]]:
    """The windows: axes of `value`, then those of a window; and the numbers of the latter."""
    if not isinstance(moves.window_shape, Sequence):
        raise shape_error(f"{name}: window_shape has an extent for each axis, such as (2, 2), got {moves.window_shape}")
    count = len(moves.window_shape)
    require_window_axes(name, value.type, count)
    window = per_axis(name, "window_shape", moves.window_shape, count)
    steps = per_axis(name, "strides", 1 if moves.strides is None else moves.strides, count)
    dilations = per_axis(name, "window_dilation", moves.window_dilation, count)
    last = tuple(range(value.ndim - count, value.ndim))
    places = normal_axes(name, last if moves.axes is None else moves.axes, value.type)
    if len(places) != count:
        raise shape_error(f"{name}: a window of {count} axes moves along as many, got axes {moves.axes}")
    spans = [span_of(extent, dilation) for extent, dilation in zip(window, dilations, strict=True)]
    pads = paddings(name, moves.padding, [value.shape[axis] for axis in places], spans, steps)
    value = _padded(value, places, pads, fill)
    rank, shape = value.ndim, list(value.shape)
    for axis, extent, stride, dilation in zip(places, window, steps, dilations, strict=True):
        shape[axis] = windows_along(shape[axis], extent, stride, dilation)
    repeated = bind("broadcast", value, type=value.type.with_shape((*value.shape, *window)), axes=tuple(range(rank)))
    along = tuple(range(rank, rank + count))
    type = value.type.with_shape((*shape, *window))
    attrs: dict[str, Any] = dict(axes=places, along=along, stride=steps, dilation=dilations)
    return bind("shear", repeated, type=type, **attrs), along


def _extremum_pool(extremum: Extremum, x: ArrayLike, moves: _Moves) -> Value:
    """The extremum, whose gradient goes to the first element of the window that equals it.

    That element is known to be the extremum, so only its gradient is ever computed.
    """
    value = as_value(x)
    windows, along = _windows(f"{extremum}_pool", value, moves, MONOIDS[extremum].identity(value.type.dtype))
    result = fold(extremum, windows, along, keepdims=False)
    if not value.type.dtype.is_float or not windows.size:
        return result
    shape = tuple(windows.shape[axis] for axis in along)
    numbers = reshaped(iota(TensorType((math.prod(shape),), int32), 0), shape)
    places = bind("broadcast", numbers, type=TensorType(windows.shape, int32), axes=along)
    is_beaten = (less if extremum == "max" else greater)(windows, spread_back(result, along, windows.shape))
    first = fold("min", where(is_beaten, math.prod(shape), places), along, keepdims=False)
    is_chosen = equal(places, spread_back(first, along, windows.shape))
    chosen = fold("sum", where(is_chosen, windows, 0.0), along, keepdims=False)
    return bind("known_value", chosen, bind("stop_gradient", result))


def _sum_of_windows(name: str, value: Value, moves: _Moves) -> Value:
    windows, along = _windows(name, value, moves, MONOIDS["sum"].identity(value.type.dtype))
    return fold("sum", windows, along, keepdims=False)


def max_pool(
    x: ArrayLike,
    window_shape: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding = "VALID",
    window_dilation: PerAxis = 1,
    axes: Sequence[int] | None = None,
) -> Value:
    """The greatest element of every window, in the dtype of `x`; NaN if the window has one.

    A window of `window_shape` moves by `strides` (None: 1) along `axes`, the last axes of `x` by default; with
    `window_dilation` its elements are that far apart. `padding` is "VALID" (none), "SAME" (as many windows as
    ceil(extent / stride)), "SAME_LOWER", or numbers or pairs (before, after), and never is the greatest. An axis of
    extent n has floor((n + padding - (window - 1)·dilation - 1) / stride) + 1 windows. The gradient of a window goes to
    the first, in row-major order, of its greatest elements. Raises ShapeError for windows or axes that do not fit.
    """
    return _extremum_pool("max", x, _Moves(window_shape, strides, padding, window_dilation, axes))


def min_pool(
    x: ArrayLike,
    window_shape: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding = "VALID",
    window_dilation: PerAxis = 1,
    axes: Sequence[int] | None = None,
) -> Value:
    """The least element of every window; all else as in `max_pool`."""
    return _extremum_pool("min", x, _Moves(window_shape, strides, padding, window_dilation, axes))


def sum_pool(
    x: ArrayLike,
    window_shape: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding = "VALID",
    window_dilation: PerAxis = 1,
    axes: Sequence[int] | None = None,
) -> Value:
    """The sum of every window, in the dtype of `x`; padding counts as 0. Arguments are those of `max_pool`.

    Raises ShapeError for windows or axes that do not fit, DtypeError for truth values.
    """
    value = as_value(x)
    if value.type.dtype == bool_:
        raise dtype_error(f"sum_pool: not defined for truth values, got {value.type}; cast them to a number first")
    return _sum_of_windows("sum_pool", value, _Moves(window_shape, strides, padding, window_dilation, axes))


def avg_pool(
    x: ArrayLike,
    window_shape: Sequence[int],
    strides: PerAxis | None = None,
    padding: Padding = "VALID",
    window_dilation: PerAxis = 1,
    axes: Sequence[int] | None = None,
    count_include_pad: bool = True,
) -> Value:
    """The mean of every window, a float. Arguments are those of `max_pool`.

    With `count_include_pad` padding counts as elements of 0, else the mean is over the elements of `x` only (NaN in
    windows without any). Raises ShapeError for windows or axes that do not fit.
    """
    value = as_floating(x)
    moves = _Moves(window_shape, strides, padding, window_dilation, axes)
    total = _sum_of_windows("avg_pool", value, moves)
    if count_include_pad or padding == "VALID":
        return divide(total, float(math.prod(window_shape)))
    return divide(total, _sum_of_windows("avg_pool", ones(value.shape, np.float32), moves))
