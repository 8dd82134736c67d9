"""Elements in another order along axes: reversed, rotated, rolled."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.axes import Axis, normal_axes, normal_axis
from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import cut, reshaped, rows, transposed
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy._core.shape_arguments import as_shape
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.manipulation import ravel, swapaxes
from lavax.numpy.elementwise.arithmetic import subtract
from lavax.numpy.elementwise.rounding import remainder
from lavax.tracer import bind, with_weak
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.tracing.tracer import Tracer
from lavax.tracer.values.value import Value

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]


def flip(m: ArrayLike, axis: Axis = None) -> Value:
    """`m` with the order of elements along `axis` (None: all axes) reversed."""
    value = as_value(m)
    axes = tuple(sorted(normal_axes("flip", axis, value.type)))
    return with_weak(bind("flip", value, axes=axes), value.weak) if axes else own(value)


def fliplr(m: ArrayLike) -> Value:
    """`m` reversed along axis 1. Raises ShapeError below rank 2."""
    return flip(m, 1)


def flipud(m: ArrayLike) -> Value:
    """`m` reversed along axis 0. Raises ShapeError for a scalar."""
    return flip(m, 0)


def rot90(m: ArrayLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Value:
    """`m` rotated `k` times by a right angle, from the first of `axes` towards the second."""
    value = as_value(m)
    first, second = normal_axes("rot90", tuple(axes), value.type)
    turns = whole_number("k", k) % 4
    if turns == 0:
        return own(value)
    if turns == 2:
        return flip(value, (first, second))
    if turns == 1:
        return swapaxes(flip(value, second), first, second)
    return flip(swapaxes(value, first, second), second)


def roll(a: ArrayLike, shift: ArrayLike | Sequence[ArrayLike], axis: Axis = None) -> Value:
    """`a` with elements shifted by `shift` along `axis`, the last ones to the front; None: flattened.

    Shifts may be traced. Raises ShapeError if shifts and axes differ in number, or there is no such axis.
    """
    return _rolled_along(a, _data_of(shift), axis)


def _data_of(shift: ArrayLike | Sequence[ArrayLike]) -> Any:
    """Known shifts as an array, which is an argument of the program that moves elements."""
    if isinstance(shift, (Value, np.ndarray)):
        return shift
    several = shift if isinstance(shift, Sequence) else [shift]
    if any(isinstance(each, Value) for each in several):
        return shift
    numbers = [whole_number("shift", each) for each in several]
    fits = numbers and -int32.highest <= min(numbers) and max(numbers) <= int32.highest
    return np.array(numbers, np.int32) if fits else shift


@one_program("axis")
def _rolled_along(a: ArrayLike, shift: ArrayLike | Sequence[ArrayLike], axis: Axis) -> Value:
    value = as_value(a)
    if axis is None:
        return reshaped(_rolled_along(ravel(value), shift, 0), value.shape)
    axes = [normal_axis("roll", one, value.type) for one in as_shape(axis, "axis")]
    shifts = _shifts(shift)
    if 1 not in (len(axes), len(shifts)) and len(axes) != len(shifts):
        raise shape_error(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    if not axes or not shifts:
        return own(value)
    count = max(len(axes), len(shifts))
    for one, by in zip(axes * (count // len(axes)), shifts * (count // len(shifts)), strict=True):
        value = _rolled(value, one, by)
    return value


def _shifts(shift: ArrayLike | Sequence[ArrayLike]) -> tuple[int | Value, ...]:
    """Known shifts as integers, traced ones as int32."""
    several: Sequence[Any]
    if isinstance(shift, (Value, np.ndarray)):
        several = [shift] if shift.ndim == 0 else rows(shift) if isinstance(shift, Value) else list(shift)
    else:
        several = shift if isinstance(shift, Sequence) else [shift]
    return tuple(_traced_shift(each) if isinstance(each, Tracer) else whole_number("shift", each) for each in several)


def _traced_shift(shift: Tracer) -> Value:
    if not shift.type.dtype.is_integer or shift.ndim:
        raise dtype_error(f"roll: a shift is an integer, got {shift.type}")
    return cast(shift, int32)


def _rolled(value: Value, axis: int, shift: int | Value) -> Value:
    extent = value.shape[axis]
    if isinstance(shift, Value):
        return _rolled_by_traced(value, axis, shift) if value.type.size else value
    start = -shift % extent if extent else 0
    if not start:
        return own(value)
    return bind("concatenate", cut(value, axis, start, extent), cut(value, axis, 0, start), axis=axis)


def _rolled_by_traced(value: Value, axis: int, shift: Value) -> Value:
    """Element k comes from k - shift, counted around."""
    extent = value.shape[axis]
    places = remainder(subtract(iota(TensorType((extent,), int32), 0), remainder(shift, extent)), extent)
    found = bind("gather", value, places, axes=(axis,))
    return transposed(found, [*range(1, axis + 1), 0, *range(axis + 1, value.ndim)])
