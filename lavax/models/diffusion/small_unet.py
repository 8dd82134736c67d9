"""A small convolutional U-Net of latent images, the workload that Meganeura's paper trains."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.models.config import Config
from lavax.models.diffusion.residual import ResidualBlock, doubled
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.nn.activations import silu
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.normalization import GroupNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class SmallUNetConfig(Config):
    """Settings of a `SmallUNet`: each of its `levels` has half the resolution and twice the channels of the last."""

    model_type: str = "small_unet"
    in_channels: int = 4
    base_channels: int = 64
    levels: int = 3
    norm_num_groups: int = 16
    norm_eps: float = 1e-5

    @property
    def channels(self) -> tuple[int, ...]:
        """Channels at each level, from the highest resolution."""
        return tuple(self.base_channels * 2**index for index in range(self.levels))


# The training workload: 5,294,080 weights, with latents of [2, 4, 32, 32].
SMALL_TRAINING_UNET = SmallUNetConfig()


class SmallUNet(PretrainedModel):
    """A residual block at each level on the way down and up, and one in the middle; convolutions have no biases.

        noise = unet(latents)

    [N, in_channels, H, W] to the same shape; the height and width must be multiples of 2^(levels - 1). There is no
    attention, and no embedding of the time.
    """

    conv_in: Conv2d
    down: tuple[ResidualBlock, ...]
    downsamples: tuple[Conv2d, ...]
    middle: ResidualBlock
    up: tuple[ResidualBlock, ...]
    norm_out: GroupNorm
    conv_out: Conv2d

    def __init__(self, config: SmallUNetConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        channels, count = config.channels, config.levels
        keys = iter(random.split(key, 3 * count + 2))

        def convolution(before: int, after: int, stride: int = 1) -> Conv2d:
            return Conv2d(before, after, 3, stride, padding=1, bias=False, key=next(keys), dtype=dtype)

        def residual(before: int, after: int) -> ResidualBlock:
            groups, eps = config.norm_num_groups, config.norm_eps
            return ResidualBlock(before, after, groups=groups, eps=eps, bias=False, key=next(keys), dtype=dtype)

        self.config = config
        self.conv_in = convolution(config.in_channels, channels[0])
        self.down = tuple(map(residual, (channels[0], *channels), channels))
        self.downsamples = tuple(convolution(width, width, 2) for width in channels[:-1])
        self.middle = residual(channels[-1], channels[-1])
        below = (*channels[1:], channels[-1])
        self.up = tuple(residual(lower + own, own) for lower, own in zip(below[::-1], channels[::-1], strict=True))
        self.norm_out = GroupNorm(config.norm_num_groups, channels[0], config.norm_eps, dtype=dtype)
        self.conv_out = convolution(channels[0], config.in_channels)

    def __call__(self, latents: ArrayLike) -> Value:
        given, multiple = as_value(latents), 2 ** (self.config.levels - 1)
        if given.ndim != 4 or given.shape[1] != self.config.in_channels or any(n % multiple for n in given.shape[2:]):
            raise shape_error(
                f"SmallUNet: latents are [N, {self.config.in_channels}, H, W] with H and W multiples of {multiple}, "
                f"got {given.type}"
            )
        x, kept = self.conv_in(given), []
        for index, residual in enumerate(self.down):
            x = residual(x)
            kept.append(x)
            x = self.downsamples[index](x) if index < len(self.downsamples) else x
        x = self.middle(x)
        for index, residual in enumerate(self.up):
            x = residual(lnp.concatenate([doubled(x) if index else x, kept.pop()], axis=1))
        return self.conv_out(silu(self.norm_out(x)))


FAMILY = Family(SmallUNetConfig, SmallUNet, ())
