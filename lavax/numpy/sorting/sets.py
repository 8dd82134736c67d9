"""Arrays as sets: distinct elements, unions, intersections and differences.

Their shapes depend on data: outside `compile` one number is read for the shape; inside, `size` is required.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from lavax.ir.types import TensorType, bool_, int32
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import broadcast_to, common_dtype
from lavax.numpy._core.movement import cut, reshaped
from lavax.numpy._core.operands import ArrayLike, Scalar, as_positions, as_value, cast
from lavax.numpy._core.shapes_of_data import length_of
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.arrays.manipulation import moveaxis, ravel
from lavax.numpy.elementwise.arithmetic import subtract
from lavax.numpy.elementwise.comparison import (
    equal,
    isnan,
    less,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)
from lavax.numpy.indexing.nonzero import true_places
from lavax.numpy.indexing.selecting import compress
from lavax.numpy.indexing.taking import take
from lavax.numpy.reductions.reductions import any as any_over
from lavax.numpy.reductions.reductions import sum as sum_over
from lavax.numpy.sorting.searching import places_among
from lavax.numpy.sorting.sorting import lexsort
from lavax.tracer import bind, constant
from lavax.tracer.values.value import Value

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
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
    if equal_nan and ordered.type.dtype.is_inexact:
        differ = logical_and(differ, logical_not(logical_and(isnan(later), isnan(earlier))))
    if ordered.ndim > 1:
        differ = any_over(differ, tuple(range(1, ordered.ndim)))
    return concatenate([constant(True, differ.type.with_shape((1,))), differ])


def _unique(value: Value, equal_nan: bool, size: int | None, fill_value: Scalar | None) -> UniqueAll:
    """Of the entries along axis 0."""
    count = value.shape[0]
    if not count:
        length = length_of("unique", constant(0, TensorType((), int32)), size, _USE_SIZE)
        values = broadcast_to(cast(as_value(fill_value or 0), value.type.dtype), (length, *value.shape[1:]))
        none = constant(0, TensorType((length,), int32))
        return UniqueAll(values, *map(as_positions, (none, constant(0, TensorType((0,), int32)), none)))
    if value.ndim == 1:
        order = bind("sort_order", value, axis=0)
    else:
        columns = reshaped(value, (count, value.size // count))
        order = cast(lexsort([columns[:, column] for column in reversed(range(columns.shape[1]))]), int32)
    is_new = _changes(take(value, order, 0, mode="promise_in_bounds"), equal_nan)
    starts, is_one = true_places("unique", is_new, size, _USE_SIZE)
    firsts = take(order, starts, mode="promise_in_bounds")
    if is_one is not None:
        firsts = where(is_one, firsts, order[0])
        starts = where(is_one, starts, count)
    values = take(value, firsts, 0, mode="promise_in_bounds")
    if is_one is not None and fill_value is not None:
        values = where(reshaped(is_one, (is_one.size, *(1,) * (value.ndim - 1))), values, fill_value)
    number = subtract(bind("cumulative_sum", cast(is_new, int32), axis=0), 1)
    inverse = bind("unsort", number, order, axis=0)
    # There may be more distinct elements than `size`: the last one ends where they begin.
    within = sum_over(cast(less(number, starts.size), int32), 0, keepdims=True)
    ends = concatenate([starts, within])[1:]
    return UniqueAll(values, *map(as_positions, (firsts, inverse, subtract(ends, starts))))


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Scalar | None = None,
    sorted: bool = True,
) -> Any:
    """The distinct elements of `ar` in rising order, whatever `sorted` says; with `axis` the distinct entries along it.

    Then, on request: the positions of their first occurrences, the number of the distinct element for each
    element of `ar`, and the counts. NaNs are one element unless `equal_nan` is false. `size` is the number of elements
    returned: the first ones, then `fill_value` (the smallest). It is required inside `compile`, which raises
    ConcretizationError without it.
    """
    value = as_value(ar)
    line = ravel(value) if axis is None else moveaxis(value, axis, 0)
    found = _unique(line, equal_nan, size, fill_value)
    values = found.values if axis is None else moveaxis(found.values, 0, normal_axis("unique", axis, value.type))
    inverse = reshaped(found.inverse_indices, value.shape) if axis is None else found.inverse_indices
    results = [values]
    wanted = (return_index, found.indices), (return_inverse, inverse), (return_counts, found.counts)
    results += [result for is_wanted, result in wanted if is_wanted]
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


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: Scalar | None = None) -> Value:
    """The distinct elements of both arrays, in rising order. `size` as in `unique`."""
    joined = concatenate([ravel(ar1), ravel(ar2)])
    return unique(joined, size=size, fill_value=fill_value)  # type: ignore[no-any-return]


def _in_order(line: Value) -> tuple[Value, Value, Value]:
    """The elements of a line in rising order, their positions in it, and whether each differs from the one before."""
    order = bind("sort_order", line, axis=0)
    ordered = take(line, order, 0, mode="promise_in_bounds")
    return ordered, order, _changes(ordered, True) if line.size else constant(False, line.type.with_dtype(bool_))


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Scalar | None = None,
) -> Any:
    """The distinct elements that are in both arrays, in rising order.

    `size` is the number of elements returned: the first ones, then `fill_value` (the smallest). It is required inside
    `compile`, which raises ConcretizationError without it. With `return_indices` also the positions of their
    first occurrences in either flattened array; filled up with its length.
    """
    lines = [ravel(value) for value in common_dtype([ar1, ar2])]
    found = []
    for line, other in (lines, reversed(lines)):
        ordered, order, is_new = _in_order(line)
        found.append((logical_and(is_new, isin(ordered, other)), ordered, order))
    kept, ordered, _ = found[0]
    values = _kept(kept, ordered, size, fill_value)
    if not return_indices:
        return values
    places = (compress(kept, order, size=size, fill_value=order.size) for kept, _, order in found)
    return values, *map(as_positions, places)


def _kept(kept: Value, ordered: Value, size: int | None, fill_value: Scalar | None) -> Value:
    """The elements of a rising line that are kept, then `fill_value`, or else the first of them, or 0."""
    found = compress(kept, ordered, size=size, fill_value=0 if fill_value is None else fill_value)
    if size is None or fill_value is not None or not found.size:
        return found
    count = sum_over(cast(kept, int32))
    return where(less(iota(found.type.with_dtype(int32), 0), count), found, found[0])


def setdiff1d(
    ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *, size: int | None = None, fill_value: Scalar = 0
) -> Value:
    """The distinct elements of `ar1` that are not in `ar2`, in rising order. `size` as in `intersect1d`.

    With `assume_unique` those of `ar1` are taken to be distinct, and stay in their order.
    """
    if assume_unique:
        given = ravel(ar1)
        return compress(isin(given, ar2, invert=True), given, size=size, fill_value=fill_value)
    ordered, _, is_new = _in_order(ravel(ar1))
    return compress(logical_and(is_new, isin(ordered, ar2, invert=True)), ordered, size=size, fill_value=fill_value)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Scalar | None = None,
) -> Value:
    """The distinct elements that are in exactly one of the arrays, in rising order. `size` as in `intersect1d`.

    NaN equals nothing, so each array contributes its own.
    """
    first, second = (ravel(value) for value in common_dtype([ar1, ar2]))
    ordered, order, is_new = _in_order(concatenate([first, second]))
    if ordered.size and ordered.type.dtype.is_inexact:  # among equal elements those of `ar1` come first
        is_new = logical_or(is_new, logical_and(isnan(ordered), _changes(less(order, first.size), False)))
    is_in_both = logical_and(isin(ordered, first), isin(ordered, second))
    return _kept(logical_and(is_new, logical_not(is_in_both)), ordered, size, fill_value)


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Value:
    """Whether each element of `element` is one of `test_elements`, as bool; negated if `invert`. NaN never is.

    `assume_unique` and `method` change nothing.
    """
    values, tests = common_dtype([element, test_elements])
    if not tests.size:
        return constant(invert, values.type.with_dtype(bool_))
    row = bind("sort", ravel(tests), axis=0)
    found = equal(take(row, places_among(row, values), mode="promise_in_bounds"), values)
    return logical_not(found) if invert else found
