"""Interpolation of sampled functions."""
from __future__ import annotations

import math

from lavax.numpy._core.application import as_floating, real_numbers
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, subtract
from lavax.numpy.elementwise.comparison import equal, greater, less, where
from lavax.numpy.elementwise.extrema import clip
from lavax.numpy.elementwise.rounding import remainder
from lavax.numpy.indexing.taking import take
from lavax.numpy.sorting.searching import places_among
from lavax.tracer import bind
from lavax.tracer.values.value import Value

__all__ = ["interp"]


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
) -> Value:
    """Linear interpolation at `x` between the points (xp, fp), with rising `xp`; float32, or of a complex `fp`
    its dtype.

    Beyond the ends it is `left` and `right` (by default the first and last `fp`). With `period` the points repeat, and
    may be unsorted. Raises ShapeError unless `xp` and `fp` have one axis and equal extents.
    """
    places, points = (real_numbers("interp", coordinates) for coordinates in (x, xp))
    values = as_floating(fp)
    if points.ndim != 1 or points.shape != values.shape or not points.size:
        raise shape_error(f"interp: {points.type} and {values.type} are not the coordinates of points")
    if period is not None:
        places, points, values = _periodic(places, points, values, float(period))
        left = right = None
    if points.size == 1:
        inner = broadcast_to(values, places.shape) if places.ndim else reshaped(values, ())
    else:
        above = clip(places_among(points, places, "right"), 1, points.size - 1)
        below = subtract(above, 1)
        start, distance = take(points, below), subtract(take(points, above), take(points, below))
        first = take(values, below, mode="promise_in_bounds")
        still = equal(distance, 0)
        share = divide(subtract(places, start), where(still, 1.0, distance))
        inner = where(still, first, add(first, multiply(share, subtract(take(values, above), first))))
        inner = where(equal(places, take(points, above)), take(values, above), inner)
    low, high = points[0], points[-1]
    inner = where(less(places, low), values[0] if left is None else left, inner)
    return where(greater(places, high), values[-1] if right is None else right, inner)


def _periodic(places: Value, points: Value, values: Value, period: float) -> tuple[Value, Value, Value]:
    """Points within one period, and one more on either side."""
    if not period:
        raise ValueError("interp: the period must not be 0")
    period = math.fabs(period)
    wrapped = remainder(points, period)
    order = bind("sort_order", wrapped, axis=0)
    points, values = take(wrapped, order, mode="promise_in_bounds"), take(values, order, mode="promise_in_bounds")
    count = points.size
    around = [subtract(cut(points, 0, count - 1, count), period), points, add(cut(points, 0, 0, 1), period)]
    values = concatenate([cut(values, 0, count - 1, count), values, cut(values, 0, 0, 1)])
    return remainder(places, period), concatenate(around), values
