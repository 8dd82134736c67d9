"""Modes for positions outside an array: they are clamped, left out, or read as a number."""
from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any, Literal, TypeAlias

import numpy as np

from lavax.ir.types import DType, TensorType, complex64
from lavax.numpy._core.application import apply
from lavax.numpy._core.dropped_parts import tell_dropped_parts
from lavax.numpy._core.errors import index_error
from lavax.numpy._core.operands import Scalar, scalar_as
from lavax.numpy.elementwise.comparison import where
from lavax.numpy.indexing.advanced_indexing import clamped_positions, is_index_array, known_integers
from lavax.numpy.indexing.masks import axes_used, is_mask, is_truth, parts_of
from lavax.tracer import bind
from lavax.tracer.values.value import Value

Mode: TypeAlias = Literal["promise_in_bounds", "clip", "drop", "fill"] | None
MODES = (None, "promise_in_bounds", "clip", "drop", "fill")


def check_mode(method: str, mode: Mode) -> None:
    """Raises ValueError if there is no such mode."""
    if mode not in MODES:
        names = ", ".join(repr(one) for one in MODES)
        raise ValueError(f"at[].{method}: mode is one of {names}, got {mode!r}")


def leaves_out(mode: Mode) -> bool:
    """Whether this mode ignores positions outside."""
    return mode in ("drop", "fill")


def filling(dtype: DType, fill_value: Scalar | None) -> Scalar:
    """The number read outside; by default NaN, the least signed integer, the greatest unsigned one or True.

    Raises TypeError for a complex number where others are real.
    """
    if fill_value is not None:
        if isinstance(fill_value, complex):
            tell_dropped_parts("fill_value", complex64, dtype, fill_value)
        return scalar_as(fill_value, dtype)
    if dtype.is_inexact:
        return complex(nan) if dtype.is_complex else nan
    if dtype.kind == "bool":
        return True
    limits = np.iinfo(dtype.numpy)
    return int(limits.min if dtype.kind == "int" else limits.max)


def with_margin(array: Value, key: Any, value: Scalar) -> tuple[Value, tuple[Any, ...]]:
    """`array` with one more entry, of `value`, at the end of each axis that has positions, and the key to match.

    Positions outside the array refer to that entry.
    """
    parts = _placed(key, array.type)
    margin = [0] * array.ndim
    for axis, part in parts:
        margin[axis] = int(_has_positions(part))
    widened = array
    if any(margin):
        none = (0,) * array.ndim
        widened = bind("pad", array, low=none, high=tuple(margin), interior=none, value=value)
    return widened, _rebuilt(key, parts, [_marked(part, array.shape[axis], margin[axis]) for axis, part in parts])


def held_inside(key: Any, type: TensorType) -> tuple[Any, ...]:
    """The key with positions outside an axis clamped to it."""
    parts = _placed(key, type)
    return _rebuilt(key, parts, [_clipped(part, type.shape[axis]) for axis, part in parts])


def not_from_the_end(key: Any, type: TensorType, mode: Mode, reads: bool) -> tuple[Any, ...]:
    """The key with negative positions outside the array, where `mode` finds them, in place of counted from the end.

    Raises an IndexError if one is known while tracing, and the mode takes none outside.
    """
    to_first = mode == "clip" or (reads and not leaves_out(mode))
    parts = _placed(key, type)
    return _rebuilt(key, parts, [_not_negative(part, axis, type, mode, to_first) for axis, part in parts])


def _not_negative(part: Any, axis: int, type: TensorType, mode: Mode, to_first: bool) -> Any:
    if not _has_positions(part):
        return part
    outside = 0 if to_first else type.shape[axis]
    if isinstance(part, Value):
        positions = clamped_positions(part)
        return where(apply("less", positions, 0), outside, positions)
    numbers = np.asarray(part)
    if numbers.dtype.kind not in "iu" or not (numbers < 0).any():
        return part
    numbers = known_integers(numbers)
    if mode in (None, "promise_in_bounds"):
        raise index_error(
            f"index {numbers.min()} is outside axis {axis} of {type}: with wrap_negative_indices=False it is not "
            "counted from the end"
        )
    return np.where(numbers < 0, outside, numbers)


def _placed(key: Any, type: TensorType) -> list[tuple[int, Any]]:
    """The first axis of each part that has axes, and the part."""
    parts = parts_of(key)
    axis, placed = 0, []
    for place, part in enumerate(parts):
        if part is Ellipsis:
            axis = type.rank - sum(map(axes_used, parts[place + 1 :]))
        elif part is not None:
            if axis < type.rank:  # a key that is too long is refused when it is read
                placed.append((axis, part))
            axis += axes_used(part)
    return placed


def _rebuilt(key: Any, placed: Sequence[tuple[int, Any]], parts: Sequence[Any]) -> tuple[Any, ...]:
    replaced = iter(parts)
    left = len(parts)
    result = []
    for part in parts_of(key):
        if part is None or part is Ellipsis or not left:
            result.append(part)
        else:
            result.append(next(replaced))
            left -= 1
    return tuple(result)


def _has_positions(part: Any) -> bool:
    """Whether a part of a key holds integers; parts that are not indices are refused when they are read."""
    if isinstance(part, slice) or is_truth(part) or is_mask(part):
        return False
    if isinstance(part, Value):
        return part.type.dtype.is_integer
    return is_index_array(part) or hasattr(part, "__index__")


def _marked(part: Any, extent: int, margin: int) -> Any:
    """Positions counted from the front, with those outside `extent` at `extent`; a slice never reaches the margin."""
    if isinstance(part, slice) or not margin:
        return part
    if isinstance(part, Value):
        position = clamped_positions(part)
        counted = where(apply("less", position, 0), apply("add", position, extent), position)
        outside = apply("or", apply("less", counted, 0), apply("greater_equal", counted, extent))
        return where(outside, extent, counted)
    numbers = np.asarray(part)
    if numbers.dtype.kind not in "iu" and numbers.size:
        return part
    numbers = known_integers(numbers)
    front = np.where(numbers < 0, numbers + extent, numbers)
    return np.where((front < 0) | (front >= extent), extent, front)


def _clipped(part: Any, extent: int) -> Any:
    if not _has_positions(part) or not extent:
        return part
    if isinstance(part, Value):
        return apply("minimum", apply("maximum", clamped_positions(part), -extent), extent - 1)
    numbers = np.asarray(part)
    return np.clip(known_integers(numbers), -extent, extent - 1) if numbers.dtype.kind in "iu" else part
