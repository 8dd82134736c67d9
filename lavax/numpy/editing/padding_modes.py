"""Padding of one axis with values computed from its own elements."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from lavax.ir.types import TensorType, int32
from lavax.numpy._core.broadcasting import spread
from lavax.numpy._core.movement import cut
from lavax.numpy._core.operands import cast
from lavax.numpy.arrays.creation import iota
from lavax.numpy.arrays.joining import concatenate
from lavax.numpy.arrays.rearranging import flip
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, subtract
from lavax.numpy.elementwise.rounding import round
from lavax.numpy.reductions.reductions import max as max_over
from lavax.numpy.reductions.reductions import mean
from lavax.numpy.reductions.reductions import min as min_over
from lavax.tracer import bind
from lavax.tracer.values.value import Value

Mode: TypeAlias = Literal[
    "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap", "empty"
]


def _positions(extent: int, pair: tuple[int, int], mode: str) -> np.ndarray:
    """The positions from which the elements of the padded axis are read."""
    places = np.arange(-pair[0], extent + pair[1])
    if mode == "edge" or extent == 1:
        return places.clip(0, extent - 1)
    if mode == "wrap":
        return places % extent
    if mode == "symmetric":
        places = places % (2 * extent)
        return np.minimum(places, 2 * extent - 1 - places)
    places = places % (2 * extent - 2)
    return np.minimum(places, 2 * extent - 2 - places)


def _read_at(value: Value, axis: int, pair: tuple[int, int], mode: str) -> Value:
    """The axis read at other positions, as runs of neighbours, which are slices."""
    places = _positions(value.shape[axis], pair, mode)
    parts, start = [], 0
    while start < len(places):
        end, step = start + 1, 0
        while end < len(places) and abs(places[end] - places[end - 1]) <= 1:
            by = int(places[end] - places[end - 1])
            if end - start > 1 and by != step:
                break
            step, end = by, end + 1
        parts.append(_run(value, axis, int(places[start]), step, end - start))
        start = end
    return concatenate(parts, axis)


def _run(value: Value, axis: int, first: int, step: int, count: int) -> Value:
    if step == 0:
        shape = tuple(count if d == axis else extent for d, extent in enumerate(value.shape))
        return spread(cut(value, axis, first, first + 1), shape)
    if step > 0:
        return cut(value, axis, first, first + count)
    return flip(cut(value, axis, first - count + 1, first + 1), axis)


def _odd(value: Value, axis: int, pair: tuple[int, int], mode: str) -> Value:
    """Mirrored about the value of the last element, repeatedly if needed."""
    before, after = pair
    while before or after:
        extent = value.shape[axis]
        most = max(extent - 1, 1) if mode == "reflect" else extent
        now = (min(before, most), min(after, most))
        mirrored = _read_at(value, axis, now, mode)
        edges = [cut(value, axis, 0, 1), cut(value, axis, extent - 1, extent)]
        low = subtract(multiply(edges[0], 2), cut(mirrored, axis, 0, now[0]))
        high = subtract(multiply(edges[1], 2), cut(mirrored, axis, now[0] + extent, sum(now) + extent))
        value = concatenate([low, value, high], axis)
        before, after = before - now[0], after - now[1]
    return value


def _line(value: Value, axis: int, width: int) -> Value:
    kind = TensorType(tuple(width if d == axis else 1 for d in range(value.ndim)), int32)
    return iota(kind, axis)


def _linear_ramp(value: Value, axis: int, pair: tuple[int, int], given: tuple[Any, Any]) -> Value:
    extent = value.shape[axis]
    parts = [value]
    for width, end, at_start in ((pair[0], given[0], True), (pair[1], given[1], False)):
        if not width:
            continue
        edge = cut(value, axis, 0, 1) if at_start else cut(value, axis, extent - 1, extent)
        steps = _line(value, axis, width)
        share = divide(cast(steps, mean(edge).type.dtype), float(width))
        ramp = add(end, multiply(subtract(edge, end), share))
        ramp = cast(ramp, value.type.dtype)
        parts = [ramp, *parts] if at_start else [*parts, flip(ramp, axis)]
    return concatenate(parts, axis)


def _median(value: Value, axis: int, *, keepdims: bool) -> Value:
    ordered = bind("sort", value, axis=axis)
    extent = value.shape[axis]
    low, high = (extent - 1) // 2, extent // 2
    return multiply(add(cut(ordered, axis, low, low + 1), cut(ordered, axis, high, high + 1)), 0.5)


_STATISTICS: dict[str, Callable[..., Value]] = {
    "maximum": max_over,
    "minimum": min_over,
    "mean": mean,
    "median": _median,
}


def _statistic(value: Value, axis: int, pair: tuple[int, int], given: tuple[Any, Any], mode: str) -> Value:
    extent = value.shape[axis]
    parts = [value]
    for width, length, at_start in ((pair[0], given[0], True), (pair[1], given[1], False)):
        if not width:
            continue
        count = extent if length is None else min(int(length), extent)
        part = cut(value, axis, 0, count) if at_start else cut(value, axis, extent - count, extent)
        found = _STATISTICS[mode](part, axis, keepdims=True)
        found = cast(round(found) if value.type.dtype.is_integer else found, value.type.dtype)
        fill = spread(found, tuple(width if d == axis else n for d, n in enumerate(value.shape)))
        parts = [fill, *parts] if at_start else [*parts, fill]
    return concatenate(parts, axis)


def padded_axis(
    value: Value, axis: int, pair: tuple[int, int], mode: Mode, given: tuple[Any, Any], odd: bool
) -> Value:
    """`value` with elements added before and after along `axis`, in a mode other than "constant" and "empty"."""
    if mode in _STATISTICS:
        return _statistic(value, axis, pair, given, mode)
    if mode == "linear_ramp":
        return _linear_ramp(value, axis, pair, given)
    if odd and mode in ("reflect", "symmetric"):
        return _odd(value, axis, pair, mode)
    return _read_at(value, axis, pair, mode)


MODES: tuple[str, ...] = (
    "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap", "empty",
)
