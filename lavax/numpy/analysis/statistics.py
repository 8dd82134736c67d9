"""Order statistics, averages, correlation and histograms."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from lavax.ir.types import DType, TensorType, float32, float64, int32
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import Axis, normal_axes, rising_axes
from lavax.numpy._core.broadcasting import broadcast_to, common_dtype, fit, spread
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_operand, as_value, cast
from lavax.numpy._core.promotion import averaging, promote
from lavax.numpy._core.shapes_of_data import length_of
from lavax.numpy.arrays.creation import linspace, zeros
from lavax.numpy.arrays.joining import concatenate, cut, stack
from lavax.numpy.arrays.manipulation import checked_shape, ravel, reshaped, transpose, transposed
from lavax.numpy.elementwise.arithmetic import add, clip, divide, maximum, minimum, multiply, sqrt, subtract
from lavax.numpy.elementwise.comparison import equal, greater_equal, isnan, less_equal, logical_and, where
from lavax.numpy.elementwise.rounding import floor
from lavax.numpy.indexing.taking import take_along_axis
from lavax.numpy.products.linear_algebra import matmul
from lavax.numpy.reductions.reductions import fold, mean
from lavax.numpy.reductions.reductions import max as max_over
from lavax.numpy.reductions.reductions import min as min_over
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.numpy.sorting.searching import searchsorted
from lavax.tracer import bind, constant
from lavax.tracer.values.value import Value

__all__ = [
    "average", "bincount", "corrcoef", "cov", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd",
    "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "ptp", "quantile",
]  # fmt: skip

Method: TypeAlias = Literal["linear", "lower", "higher", "midpoint", "nearest"]
_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _rows(name: str, x: ArrayLike, axis: Axis) -> tuple[Value, tuple[int, ...], tuple[int, ...]]:
    """`x` as floats with the axes to fold joined into a last one; the shape without them, and with extents of 1."""
    value = as_floating(x)
    axes = rising_axes(name, axis, value.type)
    kept = [d for d in range(value.ndim) if d not in axes]
    outer = tuple(value.shape[d] for d in kept)
    rows = reshaped(transposed(value, [*kept, *axes]), (*outer, math.prod(value.shape[d] for d in axes)))
    return rows, outer, tuple(1 if d in axes else extent for d, extent in enumerate(value.shape))


def _at_place(ordered: Value, place: Value, method: Method) -> Value:
    """The elements of sorted rows at fractional places, which broadcast with the rows' other axes."""
    below = floor(place)
    low = _taken(ordered, below)
    if method == "lower":
        return low
    high = _taken(ordered, add(below, minimum(_ceiled(place, below), 1)))
    if method == "higher":
        return high
    if method == "midpoint":
        return multiply(add(low, high), 0.5)
    share = subtract(place, below)
    if method == "nearest":
        odd = equal(subtract(below, multiply(floor(multiply(below, 0.5)), 2)), 1)
        goes_up = where(equal(share, 0.5), odd, greater_equal(share, 0.5))
        return where(goes_up, high, low)
    return where(equal(share, 0), low, add(low, multiply(subtract(high, low), share)))


def _ceiled(place: Value, below: Value) -> Value:
    return where(equal(place, below), 0.0, 1.0)


def _taken(ordered: Value, place: Value) -> Value:
    positions = reshaped(cast(place, int32), (*place.shape, 1))
    shape = (*ordered.shape[:-1], 1)
    return reshaped(take_along_axis(ordered, spread(positions, shape), -1), ordered.shape[:-1])


def _quantile(
    name: str, x: ArrayLike, q: ArrayLike, axis: Axis, method: Method, keepdims: bool, skip_nan: bool
) -> Value:
    if method not in _METHODS:
        raise ValueError(f"{name}: method is one of {', '.join(_METHODS)}, got {method!r}")
    rows, outer, kept = _rows(name, x, axis)
    count = rows.shape[-1]
    operand = as_operand(q)
    dtype, _ = promote([rows, operand])
    # Places are numbers up to the count, which floats of 16 bits do not hold.
    places = dtype if dtype == float64 else float32
    rows, fractions = cast(rows, places), fit(operand, operand.type.with_dtype(places))
    if not count:
        return cast(broadcast_to(float("nan"), (*fractions.shape, *(kept if keepdims else outer))), dtype)
    ordered = bind("sort", rows, axis=rows.ndim - 1)
    holds_nan = isnan(reshaped(cut(ordered, ordered.ndim - 1, count - 1, count), outer))
    if skip_nan:
        numbers = sum_over(cast(isnan(rows), int32), -1)
        last = maximum(cast(subtract(count - 1, numbers), fractions.type.dtype), 0)
    else:
        last = constant(float(count - 1), TensorType(outer, rows.type.dtype))
    results = []
    for fraction in [reshaped(ravel(fractions)[k], ()) for k in range(fractions.size)]:
        found = _at_place(ordered, minimum(multiply(last, clip(fraction, 0, 1)), last), method)
        found = found if skip_nan else where(holds_nan, float("nan"), found)
        found = where(logical_and(greater_equal(fraction, 0), less_equal(fraction, 1)), found, float("nan"))
        results.append(reshaped(found, kept) if keepdims else found)
    shape = kept if keepdims else outer
    if not fractions.ndim:
        return cast(results[0], dtype)
    together = reshaped(stack(results), (*fractions.shape, *shape)) if results else zeros((*fractions.shape, *shape))
    return cast(together, dtype)


def quantile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, *, method: Method = "linear", keepdims: bool = False
) -> Value:
    """The value below which the fraction `q` of the elements over `axis` (None: all axes) lies; NaN if one is.

    The axes of `q` come first in the result. `method` says what is taken between two elements. Fractions outside
    0 to 1 give NaN.
    """
    return _quantile("quantile", x, q, axis, method, keepdims, skip_nan=False)


def _of_hundredths(q: ArrayLike) -> ArrayLike:
    """A Python number stays one, as exact as the array that it meets."""
    return q / 100 if isinstance(q, (int, float)) else divide(as_floating(q), 100.0)


def percentile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, *, method: Method = "linear", keepdims: bool = False
) -> Value:
    """As `quantile`, with `q` in hundredths."""
    return quantile(x, _of_hundredths(q), axis, method=method, keepdims=keepdims)


def median(x: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Value:
    """The middle element over `axis` (None: all axes), or the mean of the two; NaN if one is."""
    return quantile(x, 0.5, axis, keepdims=keepdims)


def nanquantile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, *, method: Method = "linear", keepdims: bool = False
) -> Value:
    """As `quantile` of the elements that are not NaN; NaN where there are none."""
    return _quantile("nanquantile", x, q, axis, method, keepdims, skip_nan=True)


def nanpercentile(
    x: ArrayLike, q: ArrayLike, axis: Axis = None, *, method: Method = "linear", keepdims: bool = False
) -> Value:
    """As `percentile` of the elements that are not NaN; NaN where there are none."""
    return nanquantile(x, _of_hundredths(q), axis, method=method, keepdims=keepdims)


def nanmedian(x: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Value:
    """As `median` of the elements that are not NaN; NaN where there are none."""
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


def ptp(x: ArrayLike, axis: Axis = None, *, keepdims: bool = False) -> Value:
    """The greatest less the smallest element over `axis` (None: all axes)."""
    return subtract(max_over(x, axis, keepdims=keepdims), min_over(x, axis, keepdims=keepdims))


def average(
    x: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """The mean over `axis` (None: all axes), weighted by `weights`: of the shape of `x`, or of its axes `axis` alone.

    With `returned` also the sum of the weights, of the mean's shape.
    """
    value = as_floating(x)
    axes = rising_axes("average", axis, value.type)
    if weights is None:
        result = mean(value, axes, keepdims=keepdims)
        count = float(math.prod(value.shape[d] for d in axes))
        return (result, constant(count, result.type)) if returned else result
    scale = as_floating(weights)
    held, _ = promote([value, scale])
    value, scale = (cast(part, averaging(held)) for part in (value, scale))
    if scale.shape != value.shape:
        scale = _along(scale, value, normal_axes("average", axis, value.type))
    total = fold("sum", scale, axes, keepdims)
    result = cast(divide(fold("sum", multiply(value, scale), axes, keepdims), total), held)
    return (result, cast(total, held)) if returned else result


def _along(weights: Value, value: Value, axes: tuple[int, ...]) -> Value:
    """Weights of the entries along `axes`, which they have in this order, for all of `value`."""
    if weights.shape != tuple(value.shape[d] for d in axes):
        raise shape_error(f"average: weights {weights.type} do not fit {value.type} over axes {list(axes)}")
    rising = transposed(weights, sorted(_numbers(len(axes)), key=lambda place: axes[place]))
    kept = tuple(extent if d in axes else 1 for d, extent in enumerate(value.shape))
    return spread(reshaped(rising, kept), value.shape)


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
) -> Value:
    """The covariances of variables, one a row (a column if not `rowvar`) with its observations.

    Divides by their number less `ddof` (1, or 0 if `bias`). `fweights` says how often each observation was made,
    `aweights` how much it counts.
    """
    rows, held = _variables_to_average((m,) if y is None else (m, y), rowvar)
    return cast(_covariances(rows, ddof if ddof is not None else int(not bias), fweights, aweights), held)


def _variables_to_average(parts: Sequence[ArrayLike], rowvar: bool) -> tuple[Value, DType]:
    """All variables, one a row, as floats to be averaged, and the dtype of the result."""
    rows = concatenate([_variables(part, rowvar) for part in parts], 0)
    return cast(rows, averaging(rows.type.dtype)), rows.type.dtype


def _covariances(rows: Value, less: int, fweights: ArrayLike | None, aweights: ArrayLike | None) -> Value:
    weight = None
    for given in (fweights, aweights):
        if given is not None:
            factor = cast(as_floating(given), rows.type.dtype)
            weight = factor if weight is None else multiply(weight, factor)
    if weight is None:
        centred = subtract(rows, mean(rows, 1, keepdims=True))
        product = matmul(centred, transpose(centred))
        return _one_as_scalar(divide(product, float(max(rows.shape[1] - less, 0))))
    total = sum_over(weight)
    centre = divide(sum_over(multiply(rows, weight), 1, keepdims=True), total)
    centred = subtract(rows, centre)
    lost: ArrayLike = float(less)
    if aweights is not None and less:
        lost = multiply(divide(sum_over(multiply(weight, as_floating(aweights))), total), float(less))
    product = matmul(multiply(centred, weight), transpose(centred))
    return _one_as_scalar(divide(product, subtract(total, lost)))


def _variables(x: ArrayLike, rowvar: bool) -> Value:
    value = as_floating(x)
    if value.ndim > 2:
        raise shape_error(f"cov: {value.type} has more than two axes")
    if value.ndim < 2:
        return reshaped(value, (1, value.size))
    return value if rowvar or value.shape[0] == 1 else transpose(value)


def _one_as_scalar(matrix: Value) -> Value:
    """A matrix of one element as a scalar."""
    return reshaped(matrix, ()) if matrix.shape == (1, 1) else matrix


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True) -> Value:
    """The correlations of variables, one a row (a column if not `rowvar`): from -1 to 1, NaN for constant ones."""
    rows, held = _variables_to_average((x,) if y is None else (x, y), rowvar)
    matrix = _covariances(rows, 1, None, None)
    if not matrix.ndim:
        return cast(divide(matrix, matrix), held)
    count = matrix.shape[0]
    scale = sqrt(reshaped(matrix, (count * count,))[:: count + 1])
    return cast(clip(divide(divide(matrix, reshaped(scale, (count, 1))), scale), -1.0, 1.0), held)


def bincount(
    x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None
) -> Value:
    """How often each number from 0 on occurs in the one-axis integers `x`, or the sum of the `weights` there.

    The result ends with the greatest number, but has `minlength` entries at least; inside `compile` its `length` must
    be given, and greater numbers are dropped. Negative numbers count as 0. Raises ShapeError for other ranks and for
    weights of another shape, DtypeError for floats.
    """
    value = as_value(x)
    if value.ndim != 1:
        raise shape_error(f"bincount: {value.type} must have one axis")
    if value.type.dtype.is_float:
        raise dtype_error(f"bincount counts integers, got {value.type}")
    places = maximum(cast(value, int32), 0)
    if length is None:
        most = add(max_over(places), 1) if value.size else constant(0, TensorType((), int32))
        found = length_of("bincount", most, None, "give the length= of the result")
        length = max(found, whole_number("minlength", minlength))
    (length,) = checked_shape("bincount", length)
    held = int32 if weights is None else as_floating(weights).type.dtype
    updates = constant(1, places.type) if weights is None else as_floating(weights)
    if updates.shape != places.shape:
        raise shape_error(f"bincount: weights {updates.type} for {value.type}")
    empty = constant(held.number(0), TensorType((length,), held))
    return bind("scatter_add", empty, updates, places, axes=(0,)) if length else empty


Range: TypeAlias = Sequence[ArrayLike] | None


def histogram_bin_edges(
    x: ArrayLike, bins: int | ArrayLike = 10, range: Range = None, weights: ArrayLike | None = None
) -> Value:
    """The edges of `bins` equal intervals from the smallest to the greatest element, or over `range`; or `bins` itself.

    Elements that are all equal get an interval of half a unit on either side. Raises TypeError for the name of a rule,
    ShapeError for less than one interval.
    """
    if isinstance(bins, str):
        raise TypeError("histogram: bins is a number or the edges, not the name of a rule")
    given = as_value(bins)
    if given.ndim:
        return given
    value = as_floating(ravel(x))
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
    x: ArrayLike,
    bins: int | ArrayLike = 10,
    range: Range = None,
    weights: ArrayLike | None = None,
    density: bool = False,
) -> tuple[Value, Value]:
    """How many elements lie in each of `bins` equal intervals (or between the edges `bins`), and the edges.

    An interval holds its lower edge, the last one both. `weights` are summed instead; `density` makes the area 1.
    """
    value = ravel(as_value(x))
    edges = histogram_bin_edges(value, bins, range)
    scale = None if weights is None else ravel(as_floating(weights))
    counts = _counts([value], [edges], scale)
    if density:
        widths = subtract(cut(edges, 0, 1, edges.size), cut(edges, 0, 0, edges.size - 1))
        counts = divide(divide(counts, sum_over(counts)), widths)
    return counts, edges


def _counts(columns: Sequence[Value], edges: Sequence[Value], weights: Value | None) -> Value:
    shape = tuple(edge.size - 1 for edge in edges)
    places = []
    for column, edge in zip(columns, edges, strict=True):
        place = subtract(searchsorted(edge, column, "right"), 1)
        places.append(where(equal(column, edge[-1]), edge.size - 2, place))
    updates = constant(1, places[0].type) if weights is None else weights
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
    """How many rows of `sample` (n, d) lie in each cell of a grid in d dimensions, and the edges of each dimension.

    The counts are floats, as NumPy's are. Raises ShapeError unless the sample has two axes.
    """
    value = as_floating(sample)
    if value.ndim != 2:
        raise shape_error(f"histogramdd: the sample must have two axes, got {value.type}")
    columns = [value[:, number] for number in _numbers(value.shape[1])]
    by_column = [bins] * len(columns) if isinstance(bins, int) else list(bins)
    ranges = [None] * len(columns) if range is None else list(range)
    edges = [histogram_bin_edges(*given) for given in zip(columns, by_column, ranges, strict=True)]
    counts = _counts(columns, edges, None if weights is None else as_floating(weights))
    counts = cast(counts, float64) if value.type.dtype == float64 else as_floating(counts)
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
    bins: int | Sequence[int | ArrayLike] = 10,
    range: Sequence[Range] | None = None,
    weights: ArrayLike | None = None,
    density: bool = False,
) -> tuple[Value, Value, Value]:
    """How many points (x, y) lie in each cell of a grid, as floats, and the edges of both axes."""
    counts, (first, second) = histogramdd(stack([x, y], 1), bins, range, weights, density)
    return counts, first, second
