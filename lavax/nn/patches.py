"""Sliding patches of images as columns of a matrix, and their sum back into images."""
from __future__ import annotations

import math

import lavax.numpy as lnp
from lavax.nn.convolution import conv, conv_transpose
from lavax.nn.spatial_convolution import from_zero
from lavax.nn.windows import PerAxis, per_axis, span_of
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = ["fold", "unfold"]


def _windows(window: tuple[int, ...], channels: int, dtype: object) -> Value:
    """The kernel [C·h·w, 1, h, w] of a depthwise convolution, each of whose features is one element of the window."""
    size = math.prod(window)
    each = lnp.reshape(lnp.eye(size, dtype=dtype), (size, 1, *window))
    return lnp.tile(each, (channels, 1, 1, 1))


def unfold(
    x: ArrayLike, kernel_size: PerAxis, dilation: PerAxis = 1, padding: PerAxis = 0, stride: PerAxis = 1
) -> Value:
    """The patches of [N, C, H, W] as columns, [N, C·h·w, patches]; arguments are those of `conv2d`."""
    value = as_floating(x)
    if value.ndim != 4:
        raise shape_error(f"unfold: x is [N, C, H, W], got {value.type}")
    count, channels = value.shape[:2]
    window = per_axis("unfold", "kernel_size", kernel_size, 2)
    pads = from_zero("unfold", "padding", padding, 2)
    kernel = _windows(window, channels, value.dtype)
    made = conv(value, kernel, stride, pads, rhs_dilation=dilation, feature_group_count=channels)
    return lnp.reshape(made, (count, kernel.shape[0], -1))


def fold(
    x: ArrayLike,
    output_size: PerAxis,
    kernel_size: PerAxis,
    dilation: PerAxis = 1,
    padding: PerAxis = 0,
    stride: PerAxis = 1,
) -> Value:
    """The images [N, C, H, W] of `output_size` to which the columns [N, C·h·w, patches] of `unfold` add up.

    Elements that several patches share are summed: it is the transpose of `unfold`. Raises ShapeError if the number of
    columns is another.
    """
    value = as_floating(x)
    window = per_axis("fold", "kernel_size", kernel_size, 2)
    size = per_axis("fold", "output_size", output_size, 2)
    steps, spread = per_axis("fold", "stride", stride, 2), per_axis("fold", "dilation", dilation, 2)
    pads = from_zero("fold", "padding", padding, 2)
    spans = [span_of(extent, step) for extent, step in zip(window, spread, strict=True)]
    room = [n + 2 * pad - span for n, pad, span in zip(size, pads, spans, strict=True)]
    counts = [space // step + 1 for space, step in zip(room, steps, strict=True)]
    area = math.prod(window)
    if value.ndim != 3 or value.shape[1] % area or value.shape[2] != math.prod(counts):
        raise shape_error(f"fold: x is [N, C·{area}, {math.prod(counts)}] for images of {list(size)}, got {value.type}")
    channels = value.shape[1] // area
    images = lnp.reshape(value, (value.shape[0], value.shape[1], *counts))
    around = [
        (span - 1 - pad, span - 1 - pad + space % step)
        for span, pad, space, step in zip(spans, pads, room, steps, strict=True)
    ]
    kernel = _windows(window, channels, value.dtype)
    return conv_transpose(images, kernel, steps, around, spread, transpose_kernel=True, feature_group_count=channels)
