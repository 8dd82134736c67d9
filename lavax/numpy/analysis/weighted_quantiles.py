"""Order statistics of elements that count by weights."""
from __future__ import annotations

from collections.abc import Callable

from lavax.ir.types import int32
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.operands import cast
from lavax.numpy.arrays.creation import ones_like
from lavax.numpy.elementwise.arithmetic import multiply, subtract
from lavax.numpy.elementwise.comparison import equal, isnan, less, logical_not, logical_or, where
from lavax.numpy.elementwise.extrema import clip
from lavax.numpy.indexing.taking import take_along_axis
from lavax.numpy.reductions.cumulative import cumsum
from lavax.numpy.reductions.reductions import any as any_over
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.numpy.sorting.sorting import argsort
from lavax.tracer.values.value import Value


def by_weights(rows: Value, weights: Value | None, skip_nan: bool) -> Callable[[Value], Value]:
    """The function that gives each row's least element that, with all below it, has a fraction of the weights."""
    outer, count = rows.shape[:-1], rows.shape[-1]
    given = ones_like(rows) if weights is None else cast(weights, rows.type.dtype)
    order = argsort(rows, -1)
    ordered, missing = take_along_axis(rows, order, -1), isnan(rows)
    wrong = logical_or(isnan(given), less(given, 0))
    counted = where(logical_or(wrong, missing), 0.0, given)
    reached = cumsum(take_along_axis(counted, order, -1), -1)
    total = reshaped(cut(reached, rows.ndim - 1, count - 1, count), outer)
    numbers = sum_over(cast(logical_not(missing), int32), -1)
    failed = logical_or(any_over(wrong, -1), equal(numbers, 0) if skip_nan else any_over(missing, -1))

    def at_fraction(fraction: Value) -> Value:
        wanted = reshaped(multiply(fraction, total), (*outer, 1))
        is_below = logical_or(less(reached, wanted), equal(reached, 0))  # elements of no weight have no fraction, not 0
        place = clip(sum_over(cast(is_below, int32), -1), 0, subtract(numbers, 1))
        found = take_along_axis(ordered, reshaped(clip(place, 0, count - 1), (*outer, 1)), -1)
        return where(failed, float("nan"), reshaped(found, outer))

    return at_fraction
