"""Arrays as sets: distinct elements, and what two arrays have in common.

Their shapes depend on data: outside `compile` one number is read for the shape; inside, `size` is needed.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from lavax.ir.types import TensorType, int32
from lavax.numpy.axes import normal_axis
from lavax.numpy.broadcasting import common_dtype
from lavax.numpy.comparison import isnan, logical_and, logical_not, not_equal, where
from lavax.numpy.data_dependent import true_places
from lavax.numpy.elementwise import subtract
from lavax.numpy.joining import concatenate, cut
from lavax.numpy.manipulation import moveaxis, ravel, reshaped
from lavax.numpy.operands import ArrayLike, Scalar, as_value, cast
from lavax.numpy.reductions import any as any_over
from lavax.numpy.searching import isin
from lavax.numpy.selecting import compress
from lavax.numpy.sorting import lexsort
from lavax.numpy.taking import take
from lavax.tracer import bind, constant
from lavax.tracer.value import Value

__all__ = [
    "intersect1d", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts", "unique_inverse",
    "unique_values",
]  # fmt: skip

_USE_SIZE = "give the number of distinct elements as size="


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Value
    indices: Value
    inverse_indices: Value
    counts: Value


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Value
    counts: Value


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Value
    inverse_indices: Value


def _changes(ordered: Value, equal_nan: bool) -> Value:
    """Whether each entry (along axis 0) of an ordered array differs from the one before."""
    count = ordered.shape[0]
    later, earlier = cut(ordered, 0, 1, count), cut(ordered, 0, 0, count - 1)
    differ = not_equal(later, earlier)
    if equal_nan and ordered.type.dtype.is_float:
        differ = logical_and(differ, logical_not(logical_and(isnan(later), isnan(earlier))))
    if ordered.ndim > 1:
        differ = any_over(differ, tuple(range(1, ordered.ndim)))
    return concatenate([constant(True, differ.type.with_shape((1,))), differ])


def _unique(value: Value, equal_nan: bool, size: int | None, fill_value: Scalar | None) -> UniqueAll:
    """Of the entries along axis 0."""
    count = value.shape[0]
    if not count:
        none = constant(0, TensorType((0,), int32))
        return UniqueAll(value, none, none, none)
    if value.ndim == 1:
        order = bind("sort_order", value, axis=0)
    else:
        columns = reshaped(value, (count, value.size // count))
        order = lexsort([columns[:, column] for column in reversed(range(columns.shape[1]))])
    is_new = _changes(take(value, order, 0), equal_nan)
    starts, is_one = true_places("unique", is_new, size, _USE_SIZE)
    firsts = take(order, starts)
    if is_one is not None:
        firsts = where(is_one, firsts, firsts[0])
        starts = where(is_one, starts, count)
    values = take(value, firsts, 0)
    if is_one is not None and fill_value is not None:
        values = where(reshaped(is_one, (is_one.size, *(1,) * (value.ndim - 1))), values, fill_value)
    number = subtract(bind("cumulative_sum", cast(is_new, int32), axis=0), 1)
    inverse = bind("unsort", number, order, axis=0)
    ends = concatenate([cut(starts, 0, 1, starts.size), constant(count, TensorType((1,), int32))])
    return UniqueAll(values, firsts, inverse, subtract(ends, starts))


def unique(
    x: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Scalar | None = None,
) -> Any:
    """The distinct elements of `x` in rising order; with `axis` the distinct entries along it.

    Then, as asked for: the int32 positions of their first occurrences, which of them each element of `x` is, and how
    often each occurs. NaNs are one element unless `equal_nan` is false. `size` is how many are given: the first so
    many, then `fill_value` (the smallest). Needed inside `compile`: ConcretizationError is raised there without it.
    """
    value = as_value(x)
    line = ravel(value) if axis is None else moveaxis(value, axis, 0)
    found = _unique(line, equal_nan, size, fill_value)
    values = found.values if axis is None else moveaxis(found.values, 0, normal_axis("unique", axis, value.type))
    inverse = reshaped(found.inverse_indices, value.shape) if axis is None else found.inverse_indices
    results = [values]
    results += [found.indices] * return_index + [inverse] * return_inverse + [found.counts] * return_counts
    return results[0] if len(results) == 1 else tuple(results)


def _distinct(x: ArrayLike, size: int | None, fill_value: Scalar | None) -> UniqueAll:
    value = as_value(x)
    found = _unique(ravel(value), False, size, fill_value)
    return found._replace(inverse_indices=reshaped(found.inverse_indices, value.shape))


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: Scalar | None = None) -> UniqueAll:
    """The distinct elements, where each is first, which each element is, and how often each occurs; NaNs are distinct.

    `size` and `fill_value` as in `unique`.
    """
    return _distinct(x, size, fill_value)


def unique_counts(x: ArrayLike, /, *, size: int | None = None, fill_value: Scalar | None = None) -> UniqueCounts:
    """The distinct elements and how often each occurs; NaNs are distinct. `size` as in `unique`."""
    found = _distinct(x, size, fill_value)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: ArrayLike, /, *, size: int | None = None, fill_value: Scalar | None = None) -> UniqueInverse:
    """The distinct elements and which of them each element of `x` is; NaNs are distinct. `size` as in `unique`."""
    found = _distinct(x, size, fill_value)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: Scalar | None = None) -> Value:
    """The distinct elements; NaNs are distinct. `size` as in `unique`."""
    return _distinct(x, size, fill_value).values


def union1d(x: ArrayLike, y: ArrayLike, *, size: int | None = None, fill_value: Scalar | None = None) -> Value:
    """The distinct elements of both arrays, in rising order. `size` as in `unique`."""
    joined = concatenate([ravel(x), ravel(y)])
    return unique(joined, size=size, fill_value=fill_value)  # type: ignore[no-any-return]


def intersect1d(x: ArrayLike, y: ArrayLike, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that are in both arrays, in rising order; outside `compile` only.

    With `return_indices` also the positions of their first occurrences in either flattened array.
    """
    first, second = (_unique(ravel(value), True, None, None) for value in common_dtype([x, y]))
    both = isin(first.values, second.values)
    values = compress(both, first.values)
    if not return_indices:
        return values
    return values, compress(both, first.indices), compress(isin(second.values, first.values), second.indices)


def setdiff1d(x: ArrayLike, y: ArrayLike, assume_unique: bool = False) -> Value:
    """The distinct elements of `x` that are not in `y`, in rising order; outside `compile` only."""
    values = _unique(ravel(x), True, None, None).values
    return compress(isin(values, y, invert=True), values)


def setxor1d(x: ArrayLike, y: ArrayLike, assume_unique: bool = False) -> Value:
    """The distinct elements that are in just one of the arrays, in rising order; outside `compile` only."""
    first, second = (_unique(ravel(value), True, None, None).values for value in common_dtype([x, y]))
    mine = compress(isin(first, second, invert=True), first)
    theirs = compress(isin(second, first, invert=True), second)
    return bind("sort", concatenate([mine, theirs]), axis=0)
