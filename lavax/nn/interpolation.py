"""Resizing of [N, C, ...] with PyTorch's conventions, and the exchange of channels with pixels."""
from __future__ import annotations

import math
from collections.abc import Sequence

import lavax.numpy as lnp
from lavax.image.kernels import KERNELS
from lavax.image.sampling import (
    MOST_READ,
    among_neighbours,
    between_neighbours,
    centres,
    contracted,
    nearest,
    reached,
    weights_within,
)
from lavax.nn.spatial_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast, own
from lavax.numpy._core.promotion import averaging
from lavax.tracer.values.value import Value

__all__ = ["channel_shuffle", "interpolate", "pixel_shuffle", "pixel_unshuffle"]

# PyTorch's modes -> the number of spatial axes they are for, and the kernel.
_KERNELS = {"linear": (1, "linear"), "bilinear": (2, "linear"), "trilinear": (3, "linear"), "bicubic": (2, "cubic")}
_MODES = ("nearest", "nearest-exact", "area", *_KERNELS)
_AREA = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)


def interpolate(
    x: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    antialias: bool = False,
) -> Value:
    """`x` [N, C, ...] resized along its one to three spatial axes, as by PyTorch's `interpolate`.

    Give `size`, or `scale_factor`: a number, or one for each axis; sizes are rounded down. Modes are "nearest",
    "nearest-exact", "area" (means), "linear" of one axis, "bilinear" and "bicubic" of two, and "trilinear" of three.
    With `align_corners`, centres of corner pixels coincide; else images fill the same frame. `antialias` widens the
    kernels of "bilinear" and "bicubic" along axes that shrink. Enlarging "nearest" by whole factors is a broadcast. All
    but the nearest modes compute in float32 at least. Raises ShapeError or ValueError for arguments that do not fit.
    """
    value = as_value(x)
    count = value.ndim - 2
    if not 1 <= count <= 3:
        raise shape_error(f"interpolate: x is [N, C, ...] with one to three spatial axes, got {value.type}")
    if mode not in _MODES:
        raise ValueError(f"interpolate: the mode is one of {', '.join(_MODES)}; got {mode!r}")
    sizes, factors = _sizes(value, count, size, scale_factor)
    if mode == "area":
        return _AREA[count - 1](value, sizes)
    if mode.startswith("nearest"):
        for axis, (wanted, factor) in enumerate(zip(sizes, factors, strict=True), 2):
            value = _nearest(value, axis, wanted, factor, mode == "nearest-exact")
        return own(value)
    axes, name = _KERNELS[mode]
    if axes != count:
        raise ValueError(f"interpolate: mode {mode!r} is for {axes} spatial axes, {value.type} has {count}")
    if antialias and align_corners:
        raise ValueError("interpolate: antialias and align_corners exclude each other")
    given = as_floating(value)
    made = cast(given, averaging(given.type.dtype))
    for axis, (wanted, factor) in enumerate(zip(sizes, factors, strict=True), 2):
        if wanted != value.shape[axis] or (factor is not None and factor != 1):
            made = _resampled(made, axis, wanted, factor, name, align_corners, antialias)
    return cast(made, given.type.dtype)


def _sizes(
    x: Value, count: int, size: int | Sequence[int] | None, scale_factor: float | Sequence[float] | None
) -> tuple[list[int], list[float | None]]:
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give either size or scale_factor")
    given = size if scale_factor is None else scale_factor
    each = list(given) if isinstance(given, Sequence) else [given] * count
    if len(each) != count:
        raise ValueError(f"interpolate: one number, or one for each of {count} spatial axes, got {given}")
    if scale_factor is None:
        sizes, factors = [int(n) for n in each if n is not None], [None] * count
        found: list[float | None] = list(factors)
    else:
        found = [float(factor) for factor in each if factor is not None]
        sizes = [math.floor(n * float(f)) for n, f in zip(x.shape[2:], each, strict=True) if f is not None]
    if min(sizes) < 1 or 0 in x.shape[2:]:
        raise shape_error(f"interpolate: {x.type} cannot become {sizes}: every axis needs a pixel")
    return sizes, found


def _nearest(x: Value, axis: int, size: int, factor: float | None, centred: bool) -> Value:
    extent = x.shape[axis]
    if factor is None or extent * factor == size:
        return nearest(x, axis, size, centred)
    # A factor that does not fill the last pixel is used as it is.
    places = (lnp.arange(size, dtype="float32") + (0.5 if centred else 0.0)) * (1 / factor)
    return lnp.take(x, lnp.minimum(lnp.astype(lnp.floor(places), "int32"), extent - 1), axis=axis)


def _resampled(
    x: Value, axis: int, size: int, factor: float | None, kernel: str, align_corners: bool, antialias: bool
) -> Value:
    extent = x.shape[axis]
    scale = size / extent if factor is None else factor
    if align_corners:
        places = lnp.arange(size, dtype=x.dtype) * ((extent - 1) / (size - 1) if size > 1 else 0.0)
    else:
        places = centres(size, scale, 0.0, x.dtype)
    if kernel == "linear" and (scale >= 1 or not antialias):
        found: Value = between_neighbours(x, axis, lnp.clip(places, 0.0, extent - 1.0))
        return found
    if antialias:
        width = max(1 / scale, 1.0)
        if reached(KERNELS[kernel], width) <= MOST_READ:
            return among_neighbours(x, axis, places, KERNELS[kernel], width)  # type: ignore[no-any-return]
        return contracted(x, axis, weights_within(extent, places, KERNELS[kernel], width))
    resampled: Value = among_neighbours(x, axis, places, KERNELS["cubic-pytorch"], 1.0, True)
    return resampled


def pixel_shuffle(x: ArrayLike, upscale_factor: int) -> Value:
    """[..., C·r², H, W] to [..., C, H·r, W·r]: groups of r² channels become squares of pixels (Shi et al. 2016)."""
    value, r = as_value(x), upscale_factor
    if value.ndim < 3 or r < 1 or value.shape[-3] % (r * r):
        raise shape_error(f"pixel_shuffle: x is [..., C·{r}², H, W], got {value.type}")
    *batch, channels, height, width = value.shape
    split = lnp.reshape(value, (*batch, channels // (r * r), r, r, height, width))
    moved = lnp.moveaxis(split, (-4, -3), (-3, -1))
    return lnp.reshape(moved, (*batch, channels // (r * r), height * r, width * r))


def pixel_unshuffle(x: ArrayLike, downscale_factor: int) -> Value:
    """[..., C, H·r, W·r] to [..., C·r², H, W]: the inverse of `pixel_shuffle`."""
    value, r = as_value(x), downscale_factor
    if value.ndim < 3 or r < 1 or value.shape[-1] % r or value.shape[-2] % r:
        raise shape_error(f"pixel_unshuffle: x is [..., C, H·{r}, W·{r}], got {value.type}")
    *batch, channels, height, width = value.shape
    split = lnp.reshape(value, (*batch, channels, height // r, r, width // r, r))
    moved = lnp.moveaxis(split, (-3, -1), (-4, -3))
    return lnp.reshape(moved, (*batch, channels * r * r, height // r, width // r))


def channel_shuffle(x: ArrayLike, groups: int) -> Value:
    """[N, groups·C, ...] with channel c of group g as channel c·groups + g (Zhang et al. 2018, "ShuffleNet")."""
    value = as_value(x)
    if value.ndim < 2 or groups < 1 or value.shape[1] % groups:
        raise shape_error(f"channel_shuffle: x is [N, {groups}·C, ...], got {value.type}")
    count, channels, *rest = value.shape
    split = lnp.reshape(value, (count, groups, channels // groups, *rest))
    return lnp.reshape(lnp.swapaxes(split, 1, 2), value.shape)
