"""Reductions over segments: groups of rows that need not be neighbours, as in jax.ops."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.ir.monoids import BY_JOIN
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.numpy.indexing.advanced_indexing import clamped_positions
from lavax.numpy.indexing.index_modes import check_mode, leaves_out
from lavax.numpy.indexing.indexed_update import At
from lavax.tracer import constant
from lavax.tracer.values.value import Value

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

# How the rows of a segment are joined, by the name of the method of `x.at[]`: its operation on two values.
_JOINS = {"add": "add", "multiply": "multiply", "min": "minimum", "max": "maximum"}


def _segments(name: str, method: str, data: ArrayLike, ids: ArrayLike, count: int | None, mode: Any) -> Value:
    rows, numbers = as_value(data), as_value(ids)
    if not numbers.type.dtype.is_integer:
        raise dtype_error(f"ops.{name}: segment_ids must be integers, got {numbers.type}")
    if not rows.ndim:  # one number for all
        rows = lnp.broadcast_to(rows, numbers.shape)
    if numbers.ndim > rows.ndim or numbers.shape != rows.shape[: numbers.ndim]:
        raise shape_error(f"ops.{name}: segment_ids {numbers.type} must have the leading axes of data {rows.type}")
    if count is None:
        count = int(lnp.max(numbers)) + 1 if numbers.size else 0
    count = whole_number(f"ops.{name}: num_segments", count)
    if count < 0:
        raise shape_error(f"ops.{name}: num_segments must not be negative, got {count}")
    numbers = clamped_positions(numbers)  # narrow integers would not hold the number of segments
    held = rows.type.dtype
    empty = BY_JOIN[_JOINS[method]].identity(held.part if method in ("max", "min") else held)
    start = constant(empty, rows.type.with_shape((count, *rows.shape[numbers.ndim :])))
    if not count or not rows.size:
        return start
    places = lnp.clip(numbers, 0, count - 1) if mode == "clip" else lnp.where(numbers < 0, count, numbers)
    check_mode(method, mode)
    # Computed places outside are left out as they are: the modes that do so give the array one more row, and copy it.
    joined: Value = getattr(At(start)[places], method)(rows, mode=None if leaves_out(mode) else mode)
    return joined


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Value:
    """Sums of the rows of each segment: [num_segments, ...]; a segment without rows is 0.

    `data` is [n, ...], or one number for all rows, and `segment_ids` are n integers, the numbers of the rows' segments
    (or [n, m], for rows along two axes). Rows whose number is not in [0, num_segments) are left out; `mode="clip"`
    takes the nearest segment. `num_segments` is by default the greatest number plus one, which must be known then: give
    it inside `compile`. `indices_are_sorted`, `unique_indices` and `bucket_size` are taken as JAX takes them, and
    change nothing. Raises ShapeError or DtypeError for ids that are not such integers.
    """
    return _segments("segment_sum", "add", data, segment_ids, num_segments, mode)


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Value:
    """Products of the rows of each segment, as `segment_sum`; a segment without rows is 1."""
    return _segments("segment_prod", "multiply", data, segment_ids, num_segments, mode)


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Value:
    """Maxima of each segment, as `segment_sum`; a segment without rows is -inf, or the least integer."""
    return _segments("segment_max", "max", data, segment_ids, num_segments, mode)


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
) -> Value:
    """Minima of each segment, as `segment_sum`; a segment without rows is inf, or the greatest integer."""
    return _segments("segment_min", "min", data, segment_ids, num_segments, mode)
