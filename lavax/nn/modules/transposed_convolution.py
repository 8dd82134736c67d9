"""Transposed convolution layers, channels first as in PyTorch."""
from __future__ import annotations

import math
from typing import Any, ClassVar

from lavax import random
from lavax.nn.modules.module import Module, field
from lavax.nn.spatial_convolution import check_output_padding, from_zero, spread_convolved
from lavax.nn.windows import PerAxis, per_axis
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvTranspose(Module):
    """The gradient of a convolution by its input, as a layer: it enlarges [N, in_channels, ...] by `stride`.

    `weight` is [in_channels, out_channels / groups, ...]. An axis of extent n becomes (n - 1)·stride - 2·padding +
    dilation·(kernel_size - 1) + output_padding + 1.
    """

    _axes: ClassVar[int]

    weight: Any
    bias: Any
    stride: tuple[int, ...] = field(static=True)
    padding: tuple[int, ...] = field(static=True)
    output_padding: tuple[int, ...] = field(static=True)
    dilation: tuple[int, ...] = field(static=True)
    groups: int = field(static=True)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: PerAxis,
        stride: PerAxis = 1,
        padding: PerAxis = 0,
        output_padding: PerAxis = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: PerAxis = 1,
        *,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        name, count = type(self).__name__, self._axes
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: groups={groups} must divide in_channels={in_channels} and {out_channels=}")
        window = per_axis(name, "kernel_size", kernel_size, count)
        bound = max(out_channels // groups * math.prod(window), 1) ** -0.5
        for_weight, for_bias = random.split(key)
        shape = (in_channels, out_channels // groups, *window)
        self.weight = random.uniform(for_weight, shape, dtype, -bound, bound)
        self.bias = random.uniform(for_bias, (out_channels,), dtype, -bound, bound) if bias else None
        self.stride = per_axis(name, "stride", stride, count)
        self.dilation = per_axis(name, "dilation", dilation, count)
        self.padding = from_zero(name, "padding", padding, count)
        self.output_padding = from_zero(name, "output_padding", output_padding, count)
        self.groups = groups
        check_output_padding(name, self.output_padding, self.stride, self.dilation)

    def __call__(self, x: ArrayLike) -> Value:
        settings = self.stride, self.padding, self.output_padding, self.groups, self.dilation
        return spread_convolved(type(self).__name__, self._axes, x, self.weight, self.bias, *settings)


class ConvTranspose1d(_ConvTranspose, init=False):
    """Transposed convolution along one axis: [N, in_channels, L] to [N, out_channels, L']; as in PyTorch."""

    _axes = 1


class ConvTranspose2d(_ConvTranspose, init=False):
    """Transposed convolution along two axes: [N, in_channels, H, W] to [N, out_channels, H', W']; as in PyTorch."""

    _axes = 2


class ConvTranspose3d(_ConvTranspose, init=False):
    """Transposed convolution along three axes: [N, in_channels, D, H, W] to [N, out_channels, D', H', W']."""

    _axes = 3
