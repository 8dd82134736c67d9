"""Coordinates of grids."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from lavax.ir.default_dtypes import default_integer
from lavax.ir.types import TensorType
from lavax.numpy._core.broadcasting import broadcast_to
from lavax.numpy._core.dtypes import canonical_dtype
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy._core.shape_arguments import checked_shape
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.joining import stack
from lavax.numpy.arrays.manipulation import ravel
from lavax.tracer.values.value import Value

__all__ = ["indices", "meshgrid"]


def meshgrid(
    *arrays: ArrayLike, copy: bool = True, sparse: bool = False, indexing: Literal["xy", "ij"] = "xy"
) -> list[Value]:
    """Coordinate arrays of a grid, one per one-axis array of coordinates.

    With "ij" the array k varies along axis k; with "xy" axes 0 and 1 are exchanged. `sparse` leaves the other axes at
    extent 1. `copy` changes nothing. Raises ValueError for another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', got {indexing!r}")
    values = [ravel(array) for array in arrays]
    places = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        places[:2] = [1, 0]
    shape = [0] * len(values)
    for value, place in zip(values, places, strict=True):
        shape[place] = value.size
    result = []
    for value, place in zip(values, places, strict=True):
        line = reshaped(value, tuple(value.size if d == place else 1 for d in range(len(values))))
        result.append(line if sparse else broadcast_to(line, tuple(shape)))
    return result


def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """The coordinates of a grid of extents `dimensions` along each axis, stacked; integers if no `dtype` is given.

    `sparse` gives a tuple of arrays that broadcast to the grid. Raises ShapeError for negative extents.
    """
    shape = checked_shape("indices", dimensions)
    held = default_integer() if dtype is None else canonical_dtype(dtype)
    if sparse:
        lines = (tuple(n if d == axis else 1 for d in range(len(shape))) for axis, n in enumerate(shape))
        return tuple(iota(TensorType(line, held), axis) for axis, line in enumerate(lines))
    if not shape:
        return reshaped(iota(TensorType((0,), held), 0), (0,))
    return stack([iota(TensorType(shape, held), axis) for axis in range(len(shape))])
