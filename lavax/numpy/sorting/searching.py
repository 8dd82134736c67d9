"""Positions in sorted arrays."""
from __future__ import annotations

from typing import Literal

from lavax.ir.default_dtypes import default_integer
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy.indexing.taking import take
from lavax.tracer import bind
from lavax.tracer.values.value import Value

__all__ = ["searchsorted"]


def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: Literal["left", "right"] = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Value:
    """For each element of `v` the position in the sorted one-axis `a` at which it would be inserted.

    Positions have the dtype of Python's integers. `side` "left" is before equal elements, "right" behind them; NaN is
    behind all numbers. If `a` is not sorted, `sorter` is its `argsort`. `method` changes nothing. Raises ValueError for
    another `side`, ShapeError if the sorted array does not have one axis.
    """
    return cast(places_among(a, v, side, sorter), default_integer())


def places_among(
    a: ArrayLike, v: ArrayLike, side: Literal["left", "right"] = "left", sorter: ArrayLike | None = None
) -> Value:
    """What `searchsorted` finds, as int32."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', got {side!r}")
    row, values = common_dtype([a, v])
    if row.ndim != 1:
        raise shape_error(f"searchsorted: the sorted array must have one axis, got {row.type}")
    if sorter is not None:
        row = take(row, sorter, mode="promise_in_bounds")
    found = bind("search_sorted", row, reshaped(values, (values.size,)), right=side == "right")
    return reshaped(found, values.shape)
