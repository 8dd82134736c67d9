"""Arrays put together, cut apart and repeated."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.axes import Axis, normal_axis
from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, join_along_new_axis
from lavax.numpy._core.shapes_of_data import length_of
from lavax.numpy.arrays.creation import astype
from lavax.numpy.arrays.manipulation import as_shape, atleast_1d, atleast_2d, atleast_3d, checked_shape, ravel, reshaped
from lavax.tracer import bind, constant
from lavax.tracer.values.value import Value

__all__ = [
    "append", "array_split", "block", "column_stack", "concatenate", "dsplit", "dstack", "hsplit", "hstack",
    "repeat", "resize", "roll", "split", "stack", "tile", "unstack", "vsplit", "vstack",
]  # fmt: skip

Arrays: TypeAlias = "Sequence[ArrayLike] | Value | np.ndarray"


def parts_of(name: str, arrays: Arrays) -> Sequence[ArrayLike]:
    """The arrays that are to be put together: at least one. Raises ShapeError, or DtypeError for what has none."""
    if not isinstance(arrays, (Value, Iterable)):
        raise dtype_error(f"{name} takes a sequence of arrays, got {arrays!r:.40} of type {type(arrays).__name__}")
    parts: Sequence[ArrayLike] = rows(arrays) if isinstance(arrays, Value) else list(arrays)
    if not parts:
        raise shape_error(f"{name} needs at least one array")
    return parts


def _converted(parts: Sequence[ArrayLike], dtype: Any) -> Sequence[ArrayLike]:
    return parts if dtype is None else [astype(part, dtype) for part in parts]


def _common(name: str, arrays: Arrays, dtype: Any) -> list[Value]:
    """The arrays in the dtype, or in the one they have in common."""
    return common_dtype(_converted(parts_of(name, arrays), dtype))


def rows(value: Value) -> list[Value]:
    """The entries of `value` along its first axis. Raises ShapeError for a scalar."""
    if not value.ndim:
        raise shape_error(f"{value.type} has no axis to take entries along")
    return [reshaped(cut(value, 0, i, i + 1), value.shape[1:]) for i in range(value.shape[0])]


def cut(value: Value, axis: int, start: int, limit: int, step: int = 1) -> Value:
    """The elements start, start + step, … below `limit` of `axis`; `value` itself where that is all."""
    if (start, limit, step) == (0, value.shape[axis], 1):
        return value
    starts, limits, steps = [0] * value.ndim, list(value.shape), [1] * value.ndim
    starts[axis], limits[axis], steps[axis] = start, limit, step
    return bind("slice", value, start=tuple(starts), limit=tuple(limits), stride=tuple(steps))


def concatenate(arrays: Arrays, axis: int | None = 0, dtype: Any = None) -> Value:
    """`arrays` one after the other along an axis they have (None: flattened first), in `dtype` or their common one.

    Raises ShapeError where they differ in another axis.
    """
    values = _common("concatenate", arrays, dtype)
    if axis is None:
        values, axis = [ravel(value) for value in values], 0
    along = normal_axis("concatenate", axis, values[0].type)
    return values[0] if len(values) == 1 else bind("concatenate", *values, axis=along)


def stack(arrays: Arrays, axis: int = 0, *, dtype: Any = None) -> Value:
    """`arrays` of one shape side by side along a new axis, in `dtype` or their common one."""
    parts = _converted(parts_of("stack", arrays), dtype)
    first = as_value(parts[0]).type
    return join_along_new_axis("stack", parts, normal_axis("stack", axis, first, first.rank + 1))


def hstack(arrays: Arrays, dtype: Any = None) -> Value:
    """`arrays` side by side, in `dtype` or their common one: along axis 1, or along axis 0 if they have just one
    axis."""
    values = [atleast_1d(array) for array in parts_of("hstack", arrays)]
    return concatenate(values, 0 if values[0].ndim == 1 else 1, dtype)


def vstack(arrays: Arrays, dtype: Any = None) -> Value:
    """`arrays` on top of each other: along axis 0, where an array of one axis is a row; in `dtype` or their common
    one."""
    return concatenate([atleast_2d(array) for array in parts_of("vstack", arrays)], 0, dtype)


def split(x: ArrayLike, indices_or_sections: int | Iterable[int], axis: int = 0) -> list[Value]:
    """`x` cut along `axis` into so many equal parts, or before the given positions.

    Raises ShapeError where the extent is not a multiple of the number of parts.
    """
    value = as_value(x)
    along = normal_axis("split", axis, value.type)
    extent = value.shape[along]
    if isinstance(indices_or_sections, Iterable):
        return _cut_at(value, along, indices_or_sections)
    parts = whole_number("the number of parts", indices_or_sections)
    if parts < 1 or extent % parts:
        raise shape_error(f"split: axis {along} of {value.type} does not make {parts} equal parts")
    return _cut_at(value, along, range(extent // parts, extent, extent // parts) if extent else [0] * (parts - 1))


def array_split(x: ArrayLike, indices_or_sections: int | Iterable[int], axis: int = 0) -> list[Value]:
    """As `split`, but the first parts are longer by one where the extent is no multiple of their number.

    Raises ShapeError for less than one part.
    """
    value = as_value(x)
    along = normal_axis("array_split", axis, value.type)
    if isinstance(indices_or_sections, Iterable):
        return _cut_at(value, along, indices_or_sections)
    parts = whole_number("the number of parts", indices_or_sections)
    if parts < 1:
        raise shape_error(f"array_split: {parts} is not a number of parts")
    each, longer = divmod(value.shape[along], parts)
    return _cut_at(value, along, [part * each + min(part, longer) for part in range(1, parts)])


def _cut_at(value: Value, axis: int, positions: Iterable[int]) -> list[Value]:
    extent = value.shape[axis]
    ends = [slice(whole_number("a position", position)).indices(extent)[1] for position in positions]
    return [
        cut(value, axis, start, max(start, end)) for start, end in zip([0, *ends], [*ends, extent], strict=True)
    ]


def roll(x: ArrayLike, shift: int | Sequence[int], axis: Axis = None) -> Value:
    """`x` with elements moved on by `shift` along `axis`, those at the end to the front; None: flattened.

    Raises ShapeError where shifts and axes differ in number, or there is no such axis.
    """
    value = as_value(x)
    if axis is None:
        return reshaped(roll(ravel(value), shift, 0), value.shape)
    axes = [normal_axis("roll", one, value.type) for one in as_shape(axis, "axis")]
    shifts = as_shape(shift, "shift")
    if 1 not in (len(axes), len(shifts)) and len(axes) != len(shifts):
        raise shape_error(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    if not axes or not shifts:
        return value
    count = max(len(axes), len(shifts))
    for one, by in zip(axes * (count // len(axes)), shifts * (count // len(shifts)), strict=True):
        value = _rolled(value, one, by)
    return value


def _rolled(value: Value, axis: int, shift: int) -> Value:
    extent = value.shape[axis]
    start = -shift % extent if extent else 0
    if not start:
        return value
    return bind("concatenate", cut(value, axis, start, extent), cut(value, axis, 0, start), axis=axis)


def repeat(
    x: ArrayLike, repeats: int | ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None
) -> Value:
    """`x` with each element `repeats` times in a row along `axis`; None: flattened first.

    `repeats` may be an array of one number for each entry. Where it is computed inside `compile`, the extent of the
    result must be given as `total_repeat_length`: what is more is dropped, and the last entry fills up.
    """
    value = as_value(x)
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis("repeat", axis, value.type)
    times = np.asarray(repeats) if not isinstance(repeats, Value) else repeats
    if times.size == 1 and not isinstance(times, Value) and total_repeat_length is None:
        return _repeated(value, along, whole_number("repeats", times.item()))
    return _repeated_each(value, along, as_value(times), total_repeat_length)


def _repeated(value: Value, along: int, times: int) -> Value:
    if times < 0:
        raise shape_error(f"repeat: {times} is not a number of repetitions")
    before, extent, after = value.shape[:along], value.shape[along], value.shape[along + 1 :]
    kept = tuple(d + (d > along) for d in range(value.ndim))
    spread = bind("broadcast", value, type=value.type.with_shape((*before, extent, times, *after)), axes=kept)
    return reshaped(spread, (*before, extent * times, *after))


def _repeated_each(value: Value, along: int, times: Value, length: int | None) -> Value:
    """Each place of the result is looked for among the ends of what the entries become."""
    extent = value.shape[along]
    if times.size == 1 and times.ndim < 2:
        times = bind("broadcast", reshaped(times, ()), type=times.type.with_shape((extent,)), axes=())
    if times.shape != (extent,) or not times.type.dtype.is_integer:
        raise shape_error(f"repeat: {times.type} are no numbers of repetitions for axis {along} of {value.type}")
    ends = bind("cumulative_sum", bind("cast", times, type=times.type.with_dtype(int32)), axis=0)
    if length is None:
        last = reshaped(cut(ends, 0, extent - 1, extent), ()) if extent else constant(0, TensorType((), int32))
        length = length_of("repeat", last, None, "give total_repeat_length=")
    places = bind("iota", type=TensorType((length,), int32), axis=0)
    source = bind("search_sorted", ends, places, right=True)
    order = [along, *(d for d in range(value.ndim) if d != along)]
    found = bind("gather", value, source, axes=(along,))
    return bind("transpose", found, axes=tuple(sorted(range(value.ndim), key=order.__getitem__)))


def tile(x: ArrayLike, reps: int | Sequence[int]) -> Value:
    """`x` as a tile laid `reps` times along each axis; both are aligned at the last axis.

    Raises ShapeError for negative numbers.
    """
    value = as_value(x)
    times = as_shape(reps, "reps")
    if min(times, default=0) < 0:
        raise shape_error(f"tile: {times} are not numbers of repetitions")
    rank = max(value.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - value.ndim) + value.shape
    pairs = tuple(extent for pair in zip(times, shape, strict=True) for extent in pair)
    kept = tuple(2 * d + 1 for d in range(rank - value.ndim, rank))
    spread = value
    if any(count != 1 for count in times):
        spread = bind("broadcast", value, type=value.type.with_shape(pairs), axes=kept)
    return reshaped(spread, tuple(count * extent for count, extent in zip(times, shape, strict=True)))


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Value, ...]:
    """The entries of `x` along `axis`, without it."""
    value = as_value(x)
    along = normal_axis("unstack", axis, value.type)
    shape = (*value.shape[:along], *value.shape[along + 1 :])
    return tuple(reshaped(cut(value, along, i, i + 1), shape) for i in range(value.shape[along]))


def column_stack(arrays: Arrays) -> Value:
    """One-axis arrays as columns, and arrays of two axes, side by side."""
    values = [as_value(array) for array in parts_of("column_stack", arrays)]
    return concatenate([value if value.ndim > 1 else reshaped(value, (value.size, 1)) for value in values], 1)


def dstack(arrays: Arrays, dtype: Any = None) -> Value:
    """`arrays` side by side along a third axis, in `dtype` or their common one."""
    return concatenate([atleast_3d(array) for array in parts_of("dstack", arrays)], 2, dtype)


def _split_along(name: str, axis: int, x: ArrayLike, indices_or_sections: int | Iterable[int]) -> list[Value]:
    value = as_value(x)
    if value.ndim <= axis:
        raise shape_error(f"{name}: {value.type} needs at least {axis + 1} axes")
    return split(value, indices_or_sections, axis)


def hsplit(x: ArrayLike, indices_or_sections: int | Iterable[int]) -> list[Value]:
    """`split` along axis 1, or axis 0 of an array of one axis."""
    return _split_along("hsplit", min(as_value(x).ndim, 2) - 1, x, indices_or_sections)


def vsplit(x: ArrayLike, indices_or_sections: int | Iterable[int]) -> list[Value]:
    """`split` along axis 0. Raises ShapeError below rank 2."""
    if as_value(x).ndim < 2:
        raise shape_error(f"vsplit: {as_value(x).type} needs at least 2 axes")
    return _split_along("vsplit", 0, x, indices_or_sections)


def dsplit(x: ArrayLike, indices_or_sections: int | Iterable[int]) -> list[Value]:
    """`split` along axis 2. Raises ShapeError below rank 3."""
    return _split_along("dsplit", 2, x, indices_or_sections)


def append(x: ArrayLike, values: ArrayLike, axis: int | None = None) -> Value:
    """`values` behind `x` along `axis`; None: both flattened."""
    return concatenate([x, values], axis)


def block(arrays: Any) -> Value:
    """An array put together from nested lists of blocks: the innermost lists along the last axis, and so on outward."""
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


def resize(x: ArrayLike, new_shape: int | Sequence[int]) -> Value:
    """The flattened `x`, over and over, in `new_shape`; zeros where `x` has no elements.

    Raises ShapeError for negative extents.
    """
    value, shape = ravel(x), checked_shape("resize", new_shape)
    size = math.prod(shape)
    if not value.size or not size:
        return bind("constant", type=value.type.with_shape(shape), value=value.type.dtype.number(0))
    times = -(-size // value.size)
    return reshaped(cut(tile(value, times), 0, 0, size), shape)
