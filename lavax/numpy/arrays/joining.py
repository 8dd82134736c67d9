"""Arrays joined into one."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.ir.types import TensorType
from lavax.numpy._core.axes import normal_axis
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.movement import reshaped
from lavax.numpy._core.operands import ArrayLike, as_value, join_along_new_axis, own
from lavax.numpy._core.out_arguments import refuse_out
from lavax.numpy._core.sequences import Arrays, parts_of
from lavax.numpy._core.shape_arguments import Shape
from lavax.numpy.arrays.creation import astype
from lavax.numpy.arrays.manipulation import atleast_1d, atleast_2d, atleast_3d, moveaxis, ravel
from lavax.tracer import bind
from lavax.tracer.values.value import Value

__all__ = ["block", "column_stack", "concatenate", "dstack", "hstack", "stack", "vstack"]


def _converted(parts: Sequence[ArrayLike], dtype: Any) -> Sequence[ArrayLike]:
    return parts if dtype is None else [astype(part, dtype) for part in parts]


def _whole(arrays: Arrays, dtype: Any = None) -> Value | None:
    """The array whose parts along axis 0 are to be joined, in `dtype`; None if they are no parts of one array."""
    if not isinstance(arrays, (Value, np.ndarray)) or not arrays.ndim or not arrays.shape[0]:
        return None
    return common_dtype(_converted([arrays], dtype))[0]


def _joined_parts(name: str, whole: Value, part: Shape, axis: int) -> Value:
    """The parts of an array, seen in the shape `part`, joined along `axis` by a transpose: none is cut out."""
    count = whole.shape[0]
    parts = reshaped(whole, (count, *part))
    along = normal_axis(name, axis, TensorType(part, whole.type.dtype))
    joined = moveaxis(parts, 0, along)
    return own(reshaped(joined, (*part[:along], count * part[along], *part[along + 1 :])))


def _common(name: str, arrays: Arrays, dtype: Any) -> list[Value]:
    """The arrays in `dtype`, or in their common dtype."""
    return common_dtype(_converted(parts_of(name, arrays), dtype))


def concatenate(arrays: Arrays, axis: int | None = 0, dtype: Any = None) -> Value:
    """`arrays` concatenated along an existing axis (None: flattened first), in `dtype` or their common one.

    Raises ShapeError if they differ in another axis.
    """
    whole = _whole(arrays, dtype)
    if whole is not None and axis is None:
        return own(ravel(whole))
    if whole is not None and axis is not None and whole.ndim > 1:
        return _joined_parts("concatenate", whole, whole.shape[1:], axis)
    values = _common("concatenate", arrays, dtype)
    if axis is None:
        values, axis = [ravel(value) for value in values], 0
    along = normal_axis("concatenate", axis, values[0].type)
    return values[0] if len(values) == 1 else bind("concatenate", *values, axis=along)


def stack(arrays: Arrays, axis: int = 0, out: None = None, dtype: Any = None) -> Value:
    """`arrays` of one shape, stacked along a new axis, in `dtype` or their common one."""
    refuse_out("stack", out)
    whole = _whole(arrays, dtype)
    if whole is not None:
        return own(moveaxis(whole, 0, normal_axis("stack", axis, whole.type, whole.ndim)))
    parts = _converted(parts_of("stack", arrays), dtype)
    first = as_value(parts[0]).type
    return join_along_new_axis("stack", parts, normal_axis("stack", axis, first, first.rank + 1))


def hstack(tup: Arrays, dtype: Any = None) -> Value:
    """`tup` side by side along axis 1 (axis 0 if they have one axis), in `dtype` or their common one."""
    whole = _whole(tup, dtype)
    if whole is not None:
        part = whole.shape[1:] or (1,)
        return _joined_parts("hstack", whole, part, 0 if len(part) == 1 else 1)
    values = [atleast_1d(array) for array in parts_of("hstack", tup)]
    return concatenate(values, 0 if values[0].ndim == 1 else 1, dtype)


def vstack(tup: Arrays, dtype: Any = None) -> Value:
    """`tup` on top of each other along axis 0; those of one axis are rows. In `dtype` or their common one."""
    whole = _whole(tup, dtype)
    if whole is not None:
        part = whole.shape[1:]
        return _joined_parts("vstack", whole, (1,) * (2 - len(part)) + part, 0)
    return concatenate([atleast_2d(array) for array in parts_of("vstack", tup)], 0, dtype)


def column_stack(tup: Arrays) -> Value:
    """One-axis arrays as columns, and arrays of two axes, side by side."""
    whole = _whole(tup)
    if whole is not None:
        part = whole.shape[1:]
        return _joined_parts("column_stack", whole, part if len(part) > 1 else (*part, 1)[:1] + (1,), 1)
    values = [as_value(array) for array in parts_of("column_stack", tup)]
    return concatenate([value if value.ndim > 1 else reshaped(value, (value.size, 1)) for value in values], 1)


def dstack(tup: Arrays, dtype: Any = None) -> Value:
    """`tup` side by side along a third axis, in `dtype` or their common one."""
    whole = _whole(tup, dtype)
    if whole is not None:
        part = whole.shape[1:]
        return _joined_parts("dstack", whole, part if len(part) > 2 else ((1,) * (2 - len(part)) + part + (1,)), 2)
    return concatenate([atleast_3d(array) for array in parts_of("dstack", tup)], 2, dtype)


def block(arrays: Any) -> Value:
    """An array assembled from nested lists of blocks: the innermost lists along the last axis, and so on outward."""
    depth = _depth(arrays)
    parts = _leaves(arrays)
    rank = max([depth, *(as_value(part).ndim for part in parts)])
    return _joined_blocks(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise shape_error("block: a list of blocks must not be empty")
    depths = {_depth(part) for part in arrays}
    if len(depths) > 1:
        raise shape_error("block: lists of blocks must be nested equally deep")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for part in arrays for leaf in _leaves(part)] if isinstance(arrays, list) else [arrays]


def _joined_blocks(arrays: Any, depth: int, rank: int) -> Value:
    if not isinstance(arrays, list):
        value = as_value(arrays)
        return reshaped(value, (1,) * (rank - value.ndim) + value.shape)
    return concatenate([_joined_blocks(part, depth - 1, rank) for part in arrays], rank - depth)
