"""Counts of elements by value."""
from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeAlias

from lavax.ir.default_dtypes import default_integer
from lavax.ir.types import TensorType, float64, int32
from lavax.numpy._core.application import as_floating, real_numbers
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy._core.shapes_of_data import length_of
from lavax.numpy.analysis.even_intervals import places_in_even_intervals
from lavax.numpy.arrays.joining import stack
from lavax.numpy.arrays.manipulation import ravel
from lavax.numpy.arrays.ranges import linspace
from lavax.numpy.arrays.rearranging import flip
from lavax.numpy.elementwise.arithmetic import add, divide, subtract
from lavax.numpy.elementwise.comparison import equal, less_equal, where
from lavax.numpy.elementwise.extrema import maximum
from lavax.numpy.indexing.advanced_indexing import clamped_positions
from lavax.numpy.reductions.reductions import max as max_over
from lavax.numpy.reductions.reductions import min as min_over
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.numpy.sorting.searching import places_among
from lavax.tracer import bind, constant
from lavax.tracer.values.value import Value

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Value:
    """The count of each number from 0 on in the one-axis integers `x`, or the sum of its `weights`.

    The result ends with the greatest number, but has at least `minlength` entries; inside `compile` its `length` must
    be given, and greater numbers are dropped. Negative numbers count as 0. Raises ShapeError for other ranks and for
    weights of another shape, DtypeError for floats.
    """
    value = as_value(x)
    if value.ndim != 1:
        raise shape_error(f"bincount: {value.type} must have one axis")
    if value.type.dtype.is_inexact:
        raise dtype_error(f"bincount counts integers, got {value.type}")
    places = maximum(clamped_positions(value), 0)
    if length is None:
        most = add(max_over(places), 1) if value.size else constant(0, TensorType((), int32))
        found = length_of("bincount", most, None, "give the length= of the result")
        length = max(found, whole_number("minlength", minlength))
    (length,) = checked_shape("bincount", length)
    held = default_integer() if weights is None else as_floating(weights).type.dtype
    updates = constant(1, places.type.with_dtype(held)) if weights is None else as_floating(weights)
    if updates.shape != places.shape:
        raise shape_error(f"bincount: weights {updates.type} for {value.type}")
    empty = constant(held.number(0), TensorType((length,), held))
    return bind("scatter_add", empty, updates, places, axes=(0,)) if length else empty


Range: TypeAlias = Sequence[ArrayLike] | None


def histogram_bin_edges(
    a: ArrayLike, bins: int | ArrayLike = 10, range: Range = None, weights: ArrayLike | None = None
) -> Value:
    """The edges of `bins` equal intervals from the smallest to the greatest element, or over `range`.

    If `bins` is an array, it is the result. Elements that are all equal get an interval of half a unit on either side.
    Raises TypeError for the name of a rule, ShapeError for less than one interval.
    """
    if isinstance(bins, str):
        raise TypeError("histogram: bins is a number or the edges, not the name of a rule")
    given = as_value(bins)
    if given.ndim:
        return own(given)
    value = real_numbers("histogram", ravel(a))
    if range is not None:
        _, low, high = common_dtype([value, *range])
    elif value.size:
        low, high = min_over(value), max_over(value)
    else:
        _, low, high = common_dtype([value, 0.0, 1.0])
    same = equal(low, high)
    low, high = where(same, subtract(low, 0.5), low), where(same, add(high, 0.5), high)
    count = whole_number("bins", given)
    if count < 1:
        raise shape_error(f"histogram: bins={count} is not a number of intervals")
    return linspace(low, high, count + 1)


def histogram(
    a: ArrayLike,
    bins: int | ArrayLike = 10,
    range: Range = None,
    weights: ArrayLike | None = None,
    density: bool = False,
) -> tuple[Value, Value]:
    """The number of elements in each of `bins` equal intervals (or between the edges `bins`), and the edges.

    An interval contains its lower edge, the last one both. `weights` are summed instead; `density` makes the area 1.
    """
    value = ravel(as_value(a))
    real_numbers("histogram", value)
    edges = histogram_bin_edges(value, bins, range)
    scale = None if weights is None else ravel(as_floating(weights))
    counts = _counts([_places(value, edges, bins, range)], [edges], scale)
    if density:
        widths = subtract(cut(edges, 0, 1, edges.size), cut(edges, 0, 0, edges.size - 1))
        counts = divide(divide(counts, sum_over(counts)), widths)
    return counts, edges


def _places(column: Value, edges: Value, bins: int | ArrayLike, range: Range) -> Value:
    """The interval of each element, of which the last one contains both of its edges."""
    even = places_in_even_intervals(edges, column, range) if as_value(bins).ndim == 0 else None
    if even is not None:
        return even
    place = subtract(places_among(edges, column, "right"), 1)
    return where(equal(column, edges[-1]), edges.size - 2, place)


def _counts(places: Sequence[Value], edges: Sequence[Value], weights: Value | None) -> Value:
    shape = tuple(edge.size - 1 for edge in edges)
    updates = constant(1, places[0].type.with_dtype(default_integer())) if weights is None else weights
    kind = TensorType(shape, updates.type.dtype)
    empty = constant(kind.dtype.number(0), kind)
    return bind("scatter_add", empty, updates, *places, axes=tuple(_numbers(len(shape))))


def _numbers(count: int) -> list[int]:
    return [number for number, _ in enumerate([None] * count)]


def histogramdd(
    sample: ArrayLike,
    bins: int | Sequence[int | ArrayLike] = 10,
    range: Sequence[Range] | None = None,
    weights: ArrayLike | None = None,
    density: bool = False,
) -> tuple[Value, list[Value]]:
    """The number of rows of `sample` (n, d) in each cell of a grid in d dimensions, and the edges of each dimension.

    The counts are floats, as in NumPy. Raises ShapeError unless the sample has two axes, and bins and ranges are as
    many as dimensions.
    """
    value = real_numbers("histogramdd", sample)
    if value.ndim != 2:
        raise shape_error(f"histogramdd: the sample must have two axes, got {value.type}")
    columns = [value[:, number] for number in _numbers(value.shape[1])]
    by_column = [bins] * len(columns) if isinstance(bins, (int, Integral)) else list(bins)
    ranges = [None] * len(columns) if range is None else list(range)
    for name, each in (("bins", by_column), ("range", ranges)):
        if len(each) != len(columns):
            raise shape_error(f"histogramdd: {name} must be {len(columns)}, one a dimension, got {len(each)}")
    given = list(zip(columns, by_column, ranges, strict=True))
    edges = [histogram_bin_edges(column, bins, range) for column, bins, range in given]
    places = [_places(column, edge, bins, range) for edge, (column, bins, range) in zip(edges, given, strict=True)]
    counts = _counts(places, edges, None if weights is None else as_floating(weights))
    is_wide = value.type.dtype == float64 and not counts.type.dtype.is_complex
    counts = cast(counts, float64) if is_wide else as_floating(counts)
    if density:
        counts = divide(counts, sum_over(counts))
        for axis, edge in enumerate(edges):
            widths = subtract(cut(edge, 0, 1, edge.size), cut(edge, 0, 0, edge.size - 1))
            shape = tuple(widths.size if d == axis else 1 for d in _numbers(counts.ndim))
            counts = divide(counts, reshaped(widths, shape))
    return counts, edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: int | ArrayLike | Sequence[int | ArrayLike] = 10,
    range: Sequence[Range] | None = None,
    weights: ArrayLike | None = None,
    density: bool = False,
) -> tuple[Value, Value, Value]:
    """The number of points (x, y) in each cell of a grid, as floats, and the edges of both axes.

    `bins` are a number of intervals or edges, the same for both axes, or two of these, one for each axis.
    """
    given: Any = bins
    if not isinstance(bins, (int, Integral)) and len(given) not in (1, 2):
        given = [bins, bins]
    counts, (first, second) = histogramdd(stack([x, y], 1), given, range, weights, density)
    return counts, first, second


def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Value:
    """For each element of `x` the int32 number of its interval between `bins`, which rise or fall.

    An interval contains its lower bound, or its upper one if `right`. Falling bins are recognized by their ends.
    `method` changes nothing. Raises ShapeError for bins that do not have one axis.
    """
    edges = as_value(bins)
    if edges.ndim != 1:
        raise shape_error(f"digitize: the bins must have one axis, got {edges.type}")
    rising = places_among(edges, x, "left" if right else "right")
    if edges.size < 2:
        return rising
    backwards = places_among(flip(edges), x, "left" if right else "right")
    falling = bind("subtract", constant(edges.size, backwards.type), backwards)
    return where(less_equal(edges[0], edges[-1]), rising, falling)
