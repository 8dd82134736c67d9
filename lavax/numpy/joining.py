"""Arrays put together, cut apart and repeated."""
from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from lavax.numpy.axes import Axis, normal_axis
from lavax.numpy.broadcasting import common_dtype
from lavax.numpy.errors import shape_error
from lavax.numpy.manipulation import as_shape, atleast_1d, atleast_2d, ravel, reshaped
from lavax.numpy.operands import ArrayLike, as_value, join_along_new_axis
from lavax.tracer import bind
from lavax.tracer.value import Value

Arrays: TypeAlias = "Sequence[ArrayLike] | Value | np.ndarray"


def _parts(name: str, arrays: Arrays) -> Sequence[ArrayLike]:
    parts: Sequence[ArrayLike] = rows(arrays) if isinstance(arrays, Value) else list(arrays)
    if not parts:
        raise shape_error(f"{name} needs at least one array")
    return parts


def rows(value: Value) -> list[Value]:
    """The entries of `value` along its first axis."""
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


def concatenate(arrays: Arrays, axis: int | None = 0) -> Value:
    """`arrays` one after the other along an axis they have, in their common dtype; None: flattened first.

    Raises ShapeError where they differ in another axis.
    """
    values = common_dtype(_parts("concatenate", arrays))
    if axis is None:
        values, axis = [ravel(value) for value in values], 0
    along = normal_axis("concatenate", axis, values[0].type)
    return values[0] if len(values) == 1 else bind("concatenate", *values, axis=along)


def stack(arrays: Arrays, axis: int = 0) -> Value:
    """`arrays` of one shape side by side along a new axis, in their common dtype."""
    parts = _parts("stack", arrays)
    first = as_value(parts[0]).type
    return join_along_new_axis("stack", parts, normal_axis("stack", axis, first, first.rank + 1))


def hstack(arrays: Arrays) -> Value:
    """`arrays` side by side: along axis 1, or along axis 0 if they have just one axis."""
    values = [atleast_1d(array) for array in _parts("hstack", arrays)]
    return concatenate(values, 0 if values[0].ndim == 1 else 1)


def vstack(arrays: Arrays) -> Value:
    """`arrays` on top of each other: along axis 0, where an array of one axis is a row."""
    return concatenate([atleast_2d(array) for array in _parts("vstack", arrays)], 0)


def split(x: ArrayLike, indices_or_sections: int | Iterable[int], axis: int = 0) -> list[Value]:
    """`x` cut along `axis` into so many equal parts, or before the given positions.

    Raises ShapeError where the extent is not a multiple of the number of parts.
    """
    value = as_value(x)
    along = normal_axis("split", axis, value.type)
    extent = value.shape[along]
    if isinstance(indices_or_sections, Iterable):
        return _cut_at(value, along, indices_or_sections)
    parts = operator.index(indices_or_sections)
    if parts < 1 or extent % parts:
        raise shape_error(f"split: axis {along} of {value.type} does not make {parts} equal parts")
    return _cut_at(value, along, range(extent // parts, extent, extent // parts) if extent else [0] * (parts - 1))


def array_split(x: ArrayLike, indices_or_sections: int | Iterable[int], axis: int = 0) -> list[Value]:
    """As `split`, but the first parts are longer by one where the extent is no multiple of their number."""
    value = as_value(x)
    along = normal_axis("array_split", axis, value.type)
    if isinstance(indices_or_sections, Iterable):
        return _cut_at(value, along, indices_or_sections)
    parts = operator.index(indices_or_sections)
    if parts < 1:
        raise shape_error(f"array_split: {parts} is not a number of parts")
    each, longer = divmod(value.shape[along], parts)
    return _cut_at(value, along, [part * each + min(part, longer) for part in range(1, parts)])


def _cut_at(value: Value, axis: int, positions: Iterable[int]) -> list[Value]:
    extent = value.shape[axis]
    ends = [slice(operator.index(position)).indices(extent)[1] for position in positions]
    return [
        cut(value, axis, start, max(start, end)) for start, end in zip([0, *ends], [*ends, extent], strict=True)
    ]


def roll(x: ArrayLike, shift: int | Sequence[int], axis: Axis = None) -> Value:
    """`x` with elements moved on by `shift` along `axis`, those at the end to the front; None: flattened."""
    value = as_value(x)
    if axis is None:
        return reshaped(roll(ravel(value), shift, 0), value.shape)
    axes = [normal_axis("roll", one, value.type) for one in as_shape(axis)]
    shifts = as_shape(shift)
    if 1 not in (len(axes), len(shifts)) and len(axes) != len(shifts):
        raise shape_error(f"roll: {len(shifts)} shifts for {len(axes)} axes")
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


def repeat(x: ArrayLike, repeats: int, axis: int | None = None) -> Value:
    """`x` with each element `repeats` times in a row along `axis`; None: flattened first."""
    value = as_value(x)
    if axis is None:
        value, axis = ravel(value), 0
    along = normal_axis("repeat", axis, value.type)
    times = operator.index(repeats)
    if times < 0:
        raise shape_error(f"repeat: {times} is not a number of repetitions")
    before, extent, after = value.shape[:along], value.shape[along], value.shape[along + 1 :]
    kept = tuple(d + (d > along) for d in range(value.ndim))
    spread = bind("broadcast", value, type=value.type.with_shape((*before, extent, times, *after)), axes=kept)
    return reshaped(spread, (*before, extent * times, *after))


def tile(x: ArrayLike, reps: int | Sequence[int]) -> Value:
    """`x` as a tile laid `reps` times along each axis; both are aligned at the last axis."""
    value = as_value(x)
    times = as_shape(reps)
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
