"""Layers that change the number of pixels."""
from __future__ import annotations

from typing import Any

from lavax.nn.interpolation import interpolate, pixel_shuffle, pixel_unshuffle
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = ["PixelShuffle", "PixelUnshuffle", "Upsample"]


class Upsample(Module):
    """`nn.interpolate` as a layer: `Upsample(scale_factor=2)`."""

    size: Any = field(static=True, default=None)
    scale_factor: Any = field(static=True, default=None)
    mode: str = field(static=True, default="nearest")
    align_corners: bool = field(static=True, default=False)

    def __call__(self, x: ArrayLike) -> Value:
        return interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners)


class PixelShuffle(Module):
    """`nn.pixel_shuffle` as a layer."""

    upscale_factor: int = field(static=True)

    def __call__(self, x: ArrayLike) -> Value:
        return pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """`nn.pixel_unshuffle` as a layer."""

    downscale_factor: int = field(static=True)

    def __call__(self, x: ArrayLike) -> Value:
        return pixel_unshuffle(x, self.downscale_factor)
