"""Padding at the ends of axes."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike, Scalar, as_value, own, scalar_as
from lavax.numpy.editing.padding_modes import MODES, Mode, padded_axis
from lavax.numpy.functional.along_axis import apply_along_axis
from lavax.tracer import bind
from lavax.tracer.values.value import Value

__all__ = ["pad"]

PadWidth: TypeAlias = int | Sequence[int] | Sequence[Sequence[int]]
PadValues: TypeAlias = Scalar | Sequence[Scalar] | Sequence[Sequence[Scalar]]


def _by_side(name: str, given: Any, rank: int) -> list[tuple[Any, Any]]:
    """(before, after) of each axis from one number, a pair for all axes, or one entry an axis."""
    try:
        numbers = np.asarray(given)
        if numbers.dtype.kind in "SU":
            raise ValueError("strings")
        pairs = np.broadcast_to(numbers, (rank, 2)).tolist()
    except ValueError:
        raise shape_error(
            f"pad: {name} must be a number, a pair, or a pair for each of {rank} axes, got {given!r}"
        ) from None
    return [(before, after) for before, after in pairs]


def pad(
    array: ArrayLike,
    pad_width: PadWidth,
    mode: Mode | Callable[..., ArrayLike] = "constant",
    *,
    constant_values: PadValues = 0,
    end_values: PadValues = 0,
    stat_length: PadWidth | None = None,
    reflect_type: Literal["even", "odd"] = "even",
    **kwargs: Any,
) -> Value:
    """`array` with `pad_width` more elements at the ends of its axes.

    Widths and values are a number, a pair (before, after), or a pair per axis. The modes are NumPy's: "constant"
    (`constant_values`; where the edges of two axes meet, that of the later axis), "edge", "reflect" and "symmetric"
    (mirrored at or beyond the last element; `reflect_type` "odd" about its value), "wrap", "linear_ramp" (to
    `end_values`), "maximum", "minimum", "mean" and "median" (of `stat_length` elements at that end, or all), "empty".

    As a function, `mode(line, widths, axis, kwargs)` returns each line along each axis in turn, which it is given with
    zeros at its ends; lines of arrays are not written to.
    Raises ShapeError for negative widths, and if there is no element to repeat; ValueError for another mode.
    """
    if not callable(mode):
        if mode not in MODES:
            raise ValueError(f"pad: mode {mode!r} is not known; the modes are {', '.join(MODES)}")
        if kwargs:
            raise TypeError(f"pad: {', '.join(kwargs)} is no argument of mode {mode!r}")
    value = as_value(array)
    pairs = _by_side("pad_width", pad_width, value.ndim)
    widths = [(whole_number("pad_width", before), whole_number("pad_width", after)) for before, after in pairs]
    if any(width < 0 for pair in widths for width in pair):
        raise shape_error(f"pad: widths must not be negative, got {pad_width}")
    if callable(mode):
        return _by_function(value, widths, mode, kwargs)
    if mode in ("constant", "empty"):
        return _with_constants(value, widths, 0 if mode == "empty" else constant_values)
    name, given_sides = ("end_values", end_values) if mode == "linear_ramp" else ("stat_length", stat_length)
    sides = [(None, None)] * value.ndim if given_sides is None else _by_side(name, given_sides, value.ndim)
    for axis, (pair, given) in enumerate(zip(widths, sides, strict=True)):
        if any(pair):
            if not value.shape[axis]:
                raise shape_error(f"pad: axis {axis} of {value.type} has no element to repeat")
            value = padded_axis(value, axis, pair, mode, given, reflect_type == "odd")
    return own(value)


def _by_function(
    value: Value, widths: Sequence[tuple[int, int]], mode: Callable[..., ArrayLike], kwargs: dict[str, Any]
) -> Value:
    padded = _with_constants(value, widths, 0)
    for axis, pair in enumerate(widths):
        if padded.size:
            padded = apply_along_axis(mode, axis, padded, pair, axis, kwargs)
    return padded


def _with_constants(value: Value, widths: Sequence[tuple[int, int]], values: PadValues) -> Value:
    sides = [
        (scalar_as(before, value.type.dtype), scalar_as(after, value.type.dtype))
        for before, after in _by_side("constant_values", values, value.ndim)
    ]
    for low, high, fill in _steps(widths, sides):
        value = bind("pad", value, low=low, high=high, interior=(0,) * value.ndim, value=fill)
    return own(value)


def _steps(
    widths: Sequence[tuple[int, int]], sides: Sequence[tuple[Scalar, Scalar]]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Scalar]]:
    """The pads in order, as (low, high, value): one pad if there is one value, else one per side."""
    wanted = [
        (axis, side, width, fill)
        for axis, (pair, fills) in enumerate(zip(widths, sides, strict=True))
        for side, (width, fill) in enumerate(zip(pair, fills, strict=True))
        if width
    ]
    if len({fill for *_, fill in wanted}) == 1:
        low, high = zip(*widths, strict=True)
        yield low, high, wanted[0][3]
        return
    for axis, side, width, fill in wanted:
        one_side = tuple(width if d == axis else 0 for d in range(len(widths)))
        none = (0,) * len(widths)
        yield (none, one_side, fill) if side else (one_side, none, fill)
