"""Entries taken along an axis at given positions."""
from __future__ import annotations

import operator

import numpy as np

from lavax.ir.types import TensorType, int32
from lavax.numpy.advanced_indexing import as_index, gathered
from lavax.numpy.axes import normal_axis
from lavax.numpy.broadcasting import spread
from lavax.numpy.creation import iota
from lavax.numpy.errors import shape_error
from lavax.numpy.indexing import index
from lavax.numpy.manipulation import ravel, transposed
from lavax.numpy.operands import ArrayLike, as_value
from lavax.tracer import bind, constant, with_weak
from lavax.tracer.value import Value

__all__ = ["take", "take_along_axis"]


def take(x: ArrayLike, indices: ArrayLike, axis: int | None = None) -> Value:
    """The entries of `x` at `indices` along `axis` (None: of the flattened array), in whose place theirs come.

    Negative positions count from the end. Raises an IndexError where one known while tracing is outside; a
    computed one is held to the range.
    """
    value = as_value(x)
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis("take", axis, value.type)
    if isinstance(indices, (int, np.integer)) and not isinstance(indices, bool):
        return index(value, (*[slice(None)] * along, operator.index(indices)))
    found = gathered(value, [as_index(indices, along, value.shape[along], value.type)], [along])
    rank = found.ndim - value.ndim + 1
    return transposed(found, [*range(rank, rank + along), *range(rank), *range(rank + along, found.ndim)])


def take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int | None = -1) -> Value:
    """For each place of `indices` the entry of `x` there, but along `axis` at the position it says.

    `x` and `indices` have one rank and broadcast at the other axes; `axis` None takes both flattened. Negative
    positions count from the end. Raises an IndexError where one known while tracing is outside; a computed one
    is held to the range.
    """
    value = as_value(x)
    if axis is None:
        value, axis = ravel(value), 0
        indices = indices if np.ndim(indices) == 1 else ravel(indices)
    along = normal_axis("take_along_axis", axis, value.type)
    positions = as_index(indices, along, value.shape[along], value.type).positions
    shape = _shape_along(value.type, positions.type, along)
    kind = TensorType(shape, int32)
    places = [
        spread(positions, shape)
        if d == along
        else (constant(0, kind) if extent == 1 else iota(kind, d))
        for d, extent in enumerate(value.shape)
    ]
    return with_weak(bind("gather", value, *places, axes=tuple(range(value.ndim))), value.weak)


def _shape_along(type: TensorType, positions: TensorType, axis: int) -> tuple[int, ...]:
    """The shape of the result: that of the positions, broadcast with the array's except at `axis`."""
    pairs = list(zip(type.shape, positions.shape, strict=False))
    fits = all(a == b or 1 in (a, b) for d, (a, b) in enumerate(pairs) if d != axis)
    if type.rank != positions.rank or not fits:
        raise shape_error(f"take_along_axis: {positions} does not give positions along axis {axis} of {type}")
    return tuple(b if d == axis or a == 1 else a for d, (a, b) in enumerate(pairs))
