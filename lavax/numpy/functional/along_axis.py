"""Functions applied along one axis, or along several in sequence."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lavax.numpy._core.axes import Axis, normal_axes, normal_axis
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, as_value, own
from lavax.numpy.arrays.manipulation import expand_dims, moveaxis
from lavax.tracer.calls.signature import require_function
from lavax.tracer.transforms.vmap import vmap
from lavax.tracer.values.value import Value

__all__ = ["apply_along_axis", "apply_over_axes"]


def apply_along_axis(
    func1d: Callable[..., ArrayLike], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any
) -> Value:
    """`func1d(line, *args, **kwargs)` of each line of `arr` along `axis`, all at once by `vmap`.

    The result of `func1d`, of any one shape, replaces `axis`. Raises ShapeError if there is no such axis or no line.
    """
    require_function(func1d, "apply_along_axis takes a function")
    value = as_value(arr)
    along = normal_axis("apply_along_axis", axis, value.type)
    moved = moveaxis(value, along, -1)
    kept = moved.shape[:-1]
    if not math.prod(kept):
        raise shape_error(f"apply_along_axis: {value.type} has no line along axis {along}")
    lines = reshaped(moved, (math.prod(kept), value.shape[along]))
    found: Value = vmap(lambda line: as_value(func1d(line, *args, **kwargs)))(lines)
    results = found.shape[1:]
    places = range(len(kept), len(kept) + len(results))
    return moveaxis(reshaped(found, kept + results), tuple(places), tuple(range(along, along + len(results))))


def apply_over_axes(func: Callable[[Value, int], ArrayLike], a: ArrayLike, axes: Axis) -> Value:
    """`func(x, axis)` for each of `axes` in sequence (None: all); each result keeps its rank or loses the axis.

    Raises ShapeError if a result has another rank.
    """
    value = as_value(a)
    for axis in normal_axes("apply_over_axes", axes, value.type):
        found = as_value(func(value, axis))
        result = expand_dims(found, axis) if found.ndim == value.ndim - 1 else found
        if result.ndim != value.ndim:
            raise shape_error(f"apply_over_axes: func made {found.type} of {value.type} along axis {axis}")
        value = result
    return own(value)
