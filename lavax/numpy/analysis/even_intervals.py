"""Intervals of equal width in which numbers are found by a division, and a comparison with the edges on both sides."""
from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from lavax.ir.types import float32, float64, int32
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy.elementwise.arithmetic import add, multiply, subtract
from lavax.numpy.elementwise.comparison import greater_equal, less, less_equal, logical_and, where
from lavax.numpy.elementwise.extrema import maximum, minimum
from lavax.numpy.indexing.taking import take
from lavax.tracer.values.value import Value

# How far, in roundings of the greatest edge, an edge or a quotient may be from where it is with exact arithmetic.
_ROUNDINGS = 16
# What all of that may be of an interval, so that an element is in the interval that was found, or beside it.
_LARGEST_ERROR = 0.25


def places_in_even_intervals(edges: Value, column: ArrayLike, span: Sequence[Any] | None) -> Value | None:
    """The int32 numbers of the intervals between `edges`, which divide the `span` evenly; -1 for elements outside.

    None if the ends of the span are not known while a function is traced, or the intervals are so narrow that rounding
    could place an element further away than in the interval beside its own.
    """
    row, values = common_dtype([edges, column])
    count = row.size - 1
    if span is None or row.type.dtype not in (float32, float64) or not all(isinstance(end, Real) for end in span):
        return None
    low, high = map(float, span)
    error = _ROUNDINGS * float(np.finfo(row.type.dtype.numpy).eps) * max(abs(low), abs(high), high - low)
    if not (math.isfinite(low) and math.isfinite(high) and count * error < _LARGEST_ERROR * (high - low)):
        return None
    quotient = multiply(subtract(values, low), count / (high - low))
    found = cast(minimum(maximum(quotient, 0.0), count - 1.0), int32)
    first, behind = (take(row, place, mode="promise_in_bounds") for place in (found, add(found, 1)))
    place = subtract(add(found, cast(greater_equal(values, behind), int32)), cast(less(values, first), int32))
    is_inside = logical_and(greater_equal(values, row[0]), less_equal(values, row[-1]))  # NaN is not
    return where(is_inside, minimum(place, count - 1), -1)
