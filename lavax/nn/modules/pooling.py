"""Pooling as layers, so that it stands in a Sequential; the functions are in lavax.nn.spatial_pooling."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from lavax.nn import spatial_pooling as functions
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]


class _MaxPool(Module):
    _function: ClassVar[Callable[..., Value]]

    kernel_size: Any = field(static=True)
    stride: Any = field(static=True, default=None)
    padding: Any = field(static=True, default=0)
    dilation: Any = field(static=True, default=1)
    ceil_mode: bool = field(static=True, default=False)

    def __call__(self, x: ArrayLike) -> Value:
        pool = type(self)._function
        return pool(x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class _AvgPool(Module):
    _function: ClassVar[Callable[..., Value]]

    kernel_size: Any = field(static=True)
    stride: Any = field(static=True, default=None)
    padding: Any = field(static=True, default=0)
    ceil_mode: bool = field(static=True, default=False)
    count_include_pad: bool = field(static=True, default=True)

    def __call__(self, x: ArrayLike) -> Value:
        pool = type(self)._function
        return pool(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AdaptivePool(Module):
    _function: ClassVar[Callable[..., Value]]

    output_size: Any = field(static=True)

    def __call__(self, x: ArrayLike) -> Value:
        return type(self)._function(x, self.output_size)


class MaxPool1d(_MaxPool):
    """`nn.max_pool1d` as a layer."""

    _function = staticmethod(functions.max_pool1d)


class MaxPool2d(_MaxPool):
    """`nn.max_pool2d` as a layer."""

    _function = staticmethod(functions.max_pool2d)


class MaxPool3d(_MaxPool):
    """`nn.max_pool3d` as a layer."""

    _function = staticmethod(functions.max_pool3d)


class AvgPool1d(_AvgPool):
    """`nn.avg_pool1d` as a layer."""

    _function = staticmethod(functions.avg_pool1d)


class AvgPool2d(_AvgPool):
    """`nn.avg_pool2d` as a layer."""

    _function = staticmethod(functions.avg_pool2d)


class AvgPool3d(_AvgPool):
    """`nn.avg_pool3d` as a layer."""

    _function = staticmethod(functions.avg_pool3d)


class AdaptiveAvgPool1d(_AdaptivePool):
    """`nn.adaptive_avg_pool1d` as a layer."""

    _function = staticmethod(functions.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptivePool):
    """`nn.adaptive_avg_pool2d` as a layer."""

    _function = staticmethod(functions.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptivePool):
    """`nn.adaptive_avg_pool3d` as a layer."""

    _function = staticmethod(functions.adaptive_avg_pool3d)


class AdaptiveMaxPool1d(_AdaptivePool):
    """`nn.adaptive_max_pool1d` as a layer."""

    _function = staticmethod(functions.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptivePool):
    """`nn.adaptive_max_pool2d` as a layer."""

    _function = staticmethod(functions.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptivePool):
    """`nn.adaptive_max_pool3d` as a layer."""

    _function = staticmethod(functions.adaptive_max_pool3d)
