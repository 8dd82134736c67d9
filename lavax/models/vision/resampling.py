"""Pictures resized to the very pixels that Pillow makes, by which models were trained; on the host, without Pillow."""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lavax.base.quick_dataclasses import dataclass

_BITS = 22  # after the point of a weight: Pillow sums products with 8-bit pixels in 32 bits


@dataclass(frozen=True)
class _Filter:
    """`weight` of distances, which is 0 from `radius` on."""

    radius: float
    weight: Callable[[np.ndarray], np.ndarray]


def _box(x: np.ndarray) -> np.ndarray:
    return ((x > -0.5) & (x <= 0.5)).astype(np.float64)


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(1 - np.abs(x), 0))


def _hamming(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 1, np.sinc(x) * (0.54 + 0.46 * np.cos(np.pi * x)), 0)


def _cubic(x: np.ndarray) -> np.ndarray:
    """Cubic convolution with the slope -0.5 at distance 1 (Keys 1981)."""
    d, slope = np.abs(x), -0.5
    inner = ((slope + 2) * d - (slope + 3)) * d * d + 1
    outer = (((d - 5) * d + 8) * d - 4) * slope
    return np.where(d < 1, inner, np.where(d < 2, outer, 0))


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_FILTERS = {
    "box": _Filter(0.5, _box),
    "bilinear": _Filter(1, _triangle),
    "hamming": _Filter(1, _hamming),
    "bicubic": _Filter(2, _cubic),
    "lanczos": _Filter(3, _lanczos),
}


def resize(pixels: np.ndarray, height: int, width: int, method: str) -> np.ndarray:
    """uint8 [H, W, C] as uint8 [height, width, C], bit for bit as Pillow's `Image.resize`.

    Methods are "nearest", "box", "bilinear", "hamming", "bicubic" and "lanczos". The width changes before the height,
    and pixels are rounded after each. (Pillow 13 begins with the height where that shrinks much more, so there pixels
    may differ by the rounding.) Kernels are widened where a picture shrinks, so that all its pixels count.
    """
    for axis, size in ((1, width), (0, height)):
        if size != pixels.shape[axis]:
            pixels = _along(pixels, axis, size, method)
    return pixels


def _along(pixels: np.ndarray, axis: int, size: int, method: str) -> np.ndarray:
    """`pixels` with `size` of them along `axis`."""
    extent = pixels.shape[axis]
    if method == "nearest":
        step = extent / size
        places = np.add.accumulate(np.array([step * 0.5] + [step] * (size - 1)))
        return np.take(pixels, places.astype(np.int64), axis)
    taken, weights = _windows(extent, size, _FILTERS[method])
    by_place = tuple(size if each == axis else 1 for each in range(pixels.ndim))
    shape = (*pixels.shape[:axis], size, *pixels.shape[axis + 1 :])
    total = np.full(shape, 1 << (_BITS - 1), np.int32)  # a half
    for places, factors in zip(taken, weights, strict=True):
        total += np.take(pixels, places, axis).astype(np.int32) * factors.reshape(by_place)
    return np.asarray(np.clip(total >> _BITS, 0, 255), np.uint8)


def _windows(extent: int, size: int, kernel: _Filter) -> tuple[np.ndarray, np.ndarray]:
    """The pixels that each new one is made of, and their weights in units of 2^-22: int [pixels of a window, size]."""
    scale = extent / size
    wider = max(scale, 1.0)
    radius = kernel.radius * wider
    centres = (np.arange(size) + 0.5) * scale
    firsts = np.maximum((centres - radius + 0.5).astype(np.int64), 0)
    ends = np.minimum((centres + radius + 0.5).astype(np.int64), extent)
    taken = firsts + np.arange(2 * math.ceil(radius) + 1)[:, None]
    weights = np.where(taken < ends, kernel.weight((taken - centres + 0.5) * (1 / wider)), 0.0)
    weights = weights / np.sum(weights, axis=0) * (1 << _BITS)
    return np.minimum(taken, extent - 1), np.trunc(weights + np.copysign(0.5, weights)).astype(np.int32)
