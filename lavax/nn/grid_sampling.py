"""Images read at positions of a grid, as in spatial transformers (Jaderberg et al. 2015)."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import lavax.numpy as lnp
from lavax.nn.reduced import widened
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.tracer.values.value import Value

__all__ = ["affine_grid", "grid_sample"]

Border = Literal["zeros", "border", "reflection"]
_MODES = ("bilinear", "nearest")
_BORDERS = ("zeros", "border", "reflection")


def affine_grid(theta: ArrayLike, size: Sequence[int], align_corners: bool = False) -> Value:
    """The positions [N, H, W, 2] of the pixels of images of `size` (N, C, H, W) under affine maps `theta` [N, 2, 3].

    Positions are (x, y) from -1 to 1; these are the centres of corner pixels with `align_corners`, else their outer
    edges.
    """
    maps = widened(theta)
    if len(size) != 4 or maps.shape != (size[0], 2, 3):
        raise shape_error(f"affine_grid: theta is [N, 2, 3] and size (N, C, H, W), got {maps.type} and {tuple(size)}")
    rows, columns = (_places(extent, align_corners) for extent in size[2:])
    x, y = lnp.broadcast_arrays(columns[None, :], rows[:, None])
    points = lnp.stack([x, y, lnp.ones_like(x)], axis=-1)
    return lnp.einsum("hwk,njk->nhwj", points, maps)


def _places(extent: int, align_corners: bool) -> Value:
    if align_corners:
        return lnp.linspace(-1.0, 1.0, extent) if extent > 1 else lnp.zeros(1)
    return (2 * lnp.arange(extent, dtype="float32") + 1) / extent - 1


def grid_sample(
    x: ArrayLike,
    grid: ArrayLike,
    mode: Literal["bilinear", "nearest"] = "bilinear",
    padding_mode: Border = "zeros",
    align_corners: bool = False,
) -> Value:
    """`x` [N, C, H, W] at the positions `grid` [N, h, w, 2] of `affine_grid`: [N, C, h, w], in the dtype of `x`.

    Between pixels `mode` interpolates, or takes the nearest. Outside the image, pixels are 0 with `padding_mode`
    "zeros", those of the border, or those mirrored at it ("reflection"). Raises ShapeError or ValueError for arguments
    that do not fit.
    """
    given, points = as_floating(x), widened(grid)
    if given.ndim != 4 or points.ndim != 4 or points.shape[0] != given.shape[0] or points.shape[3] != 2:
        raise shape_error(f"grid_sample: x is [N, C, H, W] and grid [N, h, w, 2], got {given.type} and {points.type}")
    if mode not in _MODES or padding_mode not in _BORDERS:
        raise ValueError(
            f"grid_sample: mode is one of {', '.join(_MODES)} and padding_mode of {', '.join(_BORDERS)}, "
            f"got {mode!r} and {padding_mode!r}"
        )
    images = widened(given)
    column, row = (
        _inside(_in_pixels(points[..., axis], extent, align_corners), extent, padding_mode, align_corners)
        for axis, extent in enumerate((given.shape[3], given.shape[2]))
    )
    if mode == "nearest":
        made = _pixels(images, lnp.round(row), lnp.round(column))
    else:
        top, left = lnp.floor(row), lnp.floor(column)
        down, right = row - top, column - left
        made = sum(
            (
                lnp.expand_dims(of_row * of_column, 1) * _pixels(images, top + below, left + after)
                for below, of_row in ((0, 1 - down), (1, down))
                for after, of_column in ((0, 1 - right), (1, right))
            ),
            lnp.zeros(()),
        )
    return cast(made, given.type.dtype)


def _in_pixels(place: Value, extent: int, align_corners: bool) -> Value:
    """From -1 … 1 to numbers of pixels."""
    return (place + 1) * (0.5 * (extent - 1)) if align_corners else ((place + 1) * extent - 1) * 0.5


def _inside(place: Value, extent: int, padding_mode: Border, align_corners: bool) -> Value:
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, span = (0.0, float(extent - 1)) if align_corners else (-0.5, float(extent))
        if span == 0:
            return lnp.zeros_like(place)
        turned = lnp.abs(lnp.mod(place - low + span, 2 * span) - span)
        place = turned + low
    return lnp.clip(place, 0.0, extent - 1.0)


def _pixels(images: Value, row: Value, column: Value) -> Value:
    """The pixels [N, C, h, w] at whole numbers [N, h, w]; 0 outside."""
    count, channels, height, width = images.shape
    is_inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    place = lnp.clip(row, 0, height - 1) * width + lnp.clip(column, 0, width - 1)
    flat = lnp.reshape(images, (count, channels, height * width))
    index = lnp.reshape(lnp.astype(lnp.where(is_inside, place, 0.0), "int32"), (count, 1, -1))
    found = lnp.take_along_axis(flat, lnp.broadcast_to(index, (count, channels, index.shape[2])), axis=2)
    result: Value = lnp.where(lnp.expand_dims(is_inside, 1), lnp.reshape(found, (count, channels, *row.shape[1:])), 0.0)
    return result
