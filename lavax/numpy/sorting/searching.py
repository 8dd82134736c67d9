"""Positions in sorted arrays."""
from __future__ import annotations

from typing import Literal

from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike
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
    """For each element of `v` the int32 position in the sorted one-axis `a` at which it would be inserted.

    `side` "left" is before equal elements, "right" behind them; NaN is behind all numbers. If `a` is not sorted,
    `sorter` is its `argsort`. `method` changes nothing. Raises ValueError for another `side`, ShapeError if the sorted
    array does not have one axis.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is 'left' or 'right', got {side!r}")
    row, values = common_dtype([a, v])
    if row.ndim != 1:
        raise shape_error(f"searchsorted: the sorted array must have one axis, got {row.type}")
    if sorter is not None:
        row = take(row, sorter, mode="promise_in_bounds")
    found = bind("search_sorted", row, reshaped(values, (values.size,)), right=side == "right")
    return reshaped(found, values.shape)
