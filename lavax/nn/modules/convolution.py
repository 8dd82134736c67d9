"""Convolution layers, channels first as in PyTorch."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from lavax import random
from lavax.nn.modules.module import Module, field
from lavax.nn.spatial_convolution import PADDING_MODES, PaddingMode, convolved
from lavax.nn.windows import Padding, PerAxis, per_axis
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = ["Conv1d", "Conv2d", "Conv3d"]


class _Conv(Module):
    """`nn.conv2d` and its like with `weight` [out_channels, in_channels / groups, ...] and `bias` [out_channels].

    `padding_mode` says what `padding` puts around the input: "zeros", "reflect" (its inner elements, mirrored),
    "replicate" (its outermost element) or "circular" (the elements at its other end).
    """

    _axes: ClassVar[int]

    weight: Any
    bias: Any
    stride: tuple[int, ...] = field(static=True)
    padding: Any = field(static=True)
    dilation: tuple[int, ...] = field(static=True)
    groups: int = field(static=True)
    padding_mode: PaddingMode = field(static=True)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: Padding = 0,
        dilation: PerAxis = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: PaddingMode = "zeros",
        *,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        name, count = type(self).__name__, self._axes
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: groups={groups} must divide in_channels={in_channels} and {out_channels=}")
        if padding_mode not in PADDING_MODES:
            raise ValueError(f"{name}: padding_mode is one of {', '.join(PADDING_MODES)}; got {padding_mode!r}")
        window = per_axis(name, "kernel_size", kernel_size, count)
        bound = max(in_channels // groups * math.prod(window), 1) ** -0.5
        for_weight, for_bias = random.split(key)
        shape = (out_channels, in_channels // groups, *window)
        self.weight = random.uniform(for_weight, shape, dtype, -bound, bound)
        self.bias = random.uniform(for_bias, (out_channels,), dtype, -bound, bound) if bias else None
        self.stride = per_axis(name, "stride", stride, count)
        self.padding = padding if isinstance(padding, (int, str)) else tuple(map(_hashable, padding))
        self.dilation = per_axis(name, "dilation", dilation, count)
        self.groups, self.padding_mode = groups, padding_mode

    def __call__(self, x: ArrayLike) -> Value:
        settings = self.stride, self.padding, self.dilation, self.groups, self.padding_mode
        return convolved(type(self).__name__, self._axes, x, self.weight, self.bias, *settings)


def _hashable(pad: int | Sequence[int]) -> int | tuple[int, ...]:
    return pad if isinstance(pad, int) else tuple(pad)


class Conv1d(_Conv, init=False):
    """Convolution along one axis: [N, in_channels, L] to [N, out_channels, L']. Arguments as in `nn.conv1d`."""

    _axes = 1


class Conv2d(_Conv, init=False):
    """Convolution along two axes: [N, in_channels, H, W] to [N, out_channels, H', W']. Arguments as in `nn.conv2d`."""

    _axes = 2


class Conv3d(_Conv, init=False):
    """Convolution along three axes: [N, in_channels, D, H, W] to [N, out_channels, D', H', W'].

    Arguments as in `nn.conv3d`.
    """

    _axes = 3
