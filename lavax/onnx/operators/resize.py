"""Resize in all its modes: each axis is read at a few taps for each element of the result, one axis after another."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.onnx.operators.operator import Call, Operator, converted
from lavax.onnx.reading.modernizing import FIRST_NEAREST

_ROUNDINGS: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "round_prefer_floor": lambda x, scale: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x, scale: np.floor(x + 0.5),
    "floor": lambda x, scale: np.floor(x),
    "ceil": lambda x, scale: np.ceil(x),
    FIRST_NEAREST: lambda x, scale: np.ceil(x) if scale < 1 else np.floor(x),
}


def _resize(call: Call, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None) -> Any:
    axes = tuple(range(x.ndim)) if call.axes is None else tuple(axis % x.ndim for axis in call.axes)
    factors, extents = _extents(call, x, axes, scales, sizes)
    region = None if roi is None or not roi.size else call.known(roi, "roi").reshape(2, -1)
    made = converted(x, "float32") if call.mode != "nearest" else x
    outside: Any = False
    for number, axis in enumerate(axes):
        if factors[number] == 1 and extents[number] == x.shape[axis] and call.coordinate_transformation_mode != (
            "tf_crop_and_resize"
        ):
            continue
        bounds = (0.0, 1.0) if region is None else (float(region[0, number]), float(region[1, number]))
        places = _places(call, x.shape[axis], extents[number], factors[number], bounds)
        index, weights = _taps(call, places, x.shape[axis], factors[number])
        made = _read(made, axis, index, weights)
        if call.coordinate_transformation_mode == "tf_crop_and_resize":
            beyond = (places < 0) | (places > x.shape[axis] - 1)
            outside = outside | beyond.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    if outside is not False and outside.any():
        made = lnp.where(outside, call.extrapolation_value, made)
    if call.antialias and x.dtype.kind in "iu":
        made = lnp.round(made)
    return converted(made, x.dtype)


def _extents(call: Call, x: Any, axes: tuple[int, ...], scales: Any, sizes: Any) -> tuple[list[float], list[int]]:
    """The scale of each axis, and how long it becomes."""
    own = [x.shape[axis] for axis in axes]
    if sizes is not None and sizes.size:
        wanted = list(call.integers(sizes, "sizes"))
        if call.keep_aspect_ratio_policy == "stretch":
            return [new / old for new, old in zip(wanted, own, strict=True)], wanted
        pick = min if call.keep_aspect_ratio_policy == "not_larger" else max
        scale = pick(new / old for new, old in zip(wanted, own, strict=True))
        return [scale] * len(axes), [int(np.floor(scale * old + 0.5)) for old in own]
    if scales is None or not scales.size:
        raise call.error("neither scales nor sizes are given")
    factors = [float(factor) for factor in call.known(scales, "scales").reshape(-1)]
    if len(factors) != len(axes) or min(factors) <= 0:
        raise call.error(f"scales are {len(axes)} positive numbers, got {factors}")
    return factors, [int(np.floor(factor * old)) for factor, old in zip(factors, own, strict=True)]


def _places(call: Call, old: int, new: int, scale: float, bounds: tuple[float, float]) -> np.ndarray:
    """Where each element of the result lies in the input, in 32 bits: halves are met as other runtimes meet them."""
    at, step = np.arange(new, dtype=np.float32), np.float32(scale)
    length = step * np.float32(old)  # not rounded
    mode = call.coordinate_transformation_mode
    if mode == "asymmetric":
        return at / step
    if mode == "align_corners":
        return np.zeros(new) if length == 1 or new == 1 else at * (old - 1) / (length - 1)
    if mode == "pytorch_half_pixel":
        return (at + 0.5) / step - 0.5 if new > 1 else np.zeros(new)
    if mode == "half_pixel_symmetric":
        adjustment = new / length
        return old / 2 * (1 - adjustment) + (at + 0.5) / step - 0.5
    if mode == "tf_crop_and_resize":
        start, end = bounds
        if new == 1:
            return np.full(1, 0.5 * (start + end) * (old - 1))
        return start * (old - 1) + at * (end - start) * (old - 1) / (new - 1)
    if mode == "tf_half_pixel_for_nn":
        return (at + 0.5) / step
    return (at + 0.5) / step - 0.5


def _cubic(t: np.ndarray, a: float) -> np.ndarray:
    """Cubic convolution (Keys 1981)."""
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _taps(call: Call, places: np.ndarray, extent: int, scale: float) -> tuple[np.ndarray, np.ndarray | None]:
    """The elements [result, taps] that each element of the result is made of, and their weights."""
    if call.mode == "nearest":
        index = _ROUNDINGS[call.nearest_mode](places, scale)
        return np.clip(index, 0, extent - 1)[:, None].astype(np.int64), None
    radius = 1 if call.mode == "linear" else 2
    narrow = min(scale, 1.0) if call.antialias else 1.0
    reach = int(np.ceil(radius / narrow))
    index = np.floor(places)[:, None] + np.arange(1 - reach, reach + 1)
    distance = (places[:, None] - index) * narrow
    if call.mode == "linear":
        weights = np.maximum(1 - np.abs(distance), 0)
    else:
        weights = _cubic(distance, call.cubic_coeff_a)
    if call.exclude_outside:
        weights = np.where((index >= 0) & (index < extent), weights, 0)
    if call.exclude_outside or call.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(index, 0, extent - 1).astype(np.int64), weights


def _read(x: Any, axis: int, index: np.ndarray, weights: np.ndarray | None) -> Any:
    """The weighted sum of elements along an axis."""
    if weights is None:
        return lnp.take(x, index[:, 0], axis=axis)
    total: Any = None
    for tap in range(index.shape[1]):
        if not weights[:, tap].any():
            continue
        shape = [-1 if k == axis else 1 for k in range(x.ndim)]
        term = lnp.take(x, index[:, tap], axis=axis) * weights[:, tap].astype(np.float32).reshape(shape)
        total = term if total is None else total + term
    return total



_ATTRIBUTES = {
    "antialias": 0,
    "axes": None,
    "coordinate_transformation_mode": "half_pixel",
    "cubic_coeff_a": -0.75,
    "exclude_outside": 0,
    "extrapolation_value": 0.0,
    "keep_aspect_ratio_policy": "stretch",
    "mode": "nearest",
    "nearest_mode": "round_prefer_floor",
}

OPERATORS = (
    Operator("Resize", _resize, _ATTRIBUTES, known=(1, 2, 3), since=11),
)
