"""Elements and entries selected by conditions or numbers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from lavax.numpy._core.application import as_truth
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.errors import index_error, shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, Scalar, as_value
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy._core.sequences import parts_of
from lavax.numpy.arrays.manipulation import ravel
from lavax.numpy.elementwise import comparison
from lavax.numpy.indexing.index_modes import filling
from lavax.numpy.indexing.nonzero import USE_SIZE, nonzero, true_places
from lavax.numpy.indexing.taking import take
from lavax.tracer import active_trace, constant
from lavax.tracer.values.array import Array
from lavax.tracer.values.value import Value

__all__ = ["choose", "compress", "extract", "select", "where"]


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: Scalar = 0) -> Value:
    """The elements of the flattened `arr` where the flattened `condition` is true; `size` as in `compress`."""
    return compress(ravel(condition), ravel(arr), 0, size=size, fill_value=fill_value)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Scalar = 0,
    out: None = None,
) -> Value:
    """The entries of `a` along `axis` (None: of the flattened array) where `condition`, of one axis, is true.

    `size` is the number of entries returned: the first ones, then entries of `fill_value`, cast to the dtype of `a`. It
    is required inside `compile`, which raises ConcretizationError without it.
    """
    refuse_out("compress", out)
    value = as_value(a)
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis("compress", axis, value.type)
    mask = as_truth(condition)
    if mask.ndim != 1 or mask.size > value.shape[along]:
        raise index_error(f"compress: {mask.type} does not choose along axis {along} of {value.type}")
    places, is_one = true_places("compress", mask, size, USE_SIZE)
    if is_one is None:
        return take(value, places, along, mode="promise_in_bounds")
    number = constant(filling(value.type.dtype, fill_value), value.type.with_shape(()))
    if not value.shape[along]:
        return broadcast_to(number, tuple(places.size if d == along else n for d, n in enumerate(value.shape)))
    shape = tuple(is_one.size if d == along else 1 for d in range(value.ndim))
    return comparison.where(reshaped(is_one, shape), take(value, places, along, mode="promise_in_bounds"), number)


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    size: int | None = None,
    fill_value: Scalar | None = None,
) -> Any:
    """`x` where `condition` is true (not zero), else `y`, elementwise; with `condition` alone: `nonzero` of it.

    The gradient of the choice not taken is zero, but 0 times an infinity is NaN: keep both choices finite. Raises
    TypeError if only one choice is given, ShapeError if shapes do not broadcast.
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError("where takes a condition alone, or a condition and both choices")
    return comparison.where(condition, x, y)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Value:
    """The choice of the first true condition, elementwise; `default` where none is true.

    Raises ShapeError if conditions and choices differ in number.
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise shape_error(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    result: ArrayLike = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = comparison.where(condition, choice, result)
    return as_value(result)


def choose(
    a: ArrayLike,
    choices: Sequence[ArrayLike] | Value,
    out: None = None,
    mode: Literal["raise", "clip", "wrap"] = "raise",
) -> Value:
    """For each element of the integers `a` the element of the choice with that number.

    For other numbers: `mode` "raise" raises an IndexError outside of traces, where numbers are known, and clamps them
    inside; "wrap" wraps them around, "clip" clamps them. Raises ShapeError for no choices, ValueError for another mode.
    """
    refuse_out("choose", out)
    if mode not in ("raise", "clip", "wrap"):
        raise ValueError(f"choose: mode is 'raise', 'clip' or 'wrap', got {mode!r}")
    rows = [as_value(choice) for choice in parts_of("choose", choices)]
    number = as_value(a)
    if mode == "raise" and isinstance(number, Array) and active_trace() is None:
        numbers = np.asarray(number)
        if ((numbers < 0) | (numbers >= len(rows))).any():
            raise index_error(f"choose: there are {len(rows)} choices, and a number is of none: see `mode`")
    if mode == "wrap":
        number = number % len(rows)
    result = rows[-1]
    for place in range(len(rows) - 2, -1, -1):
        result = comparison.where(comparison.less_equal(number, place), rows[place], result)
    return result
