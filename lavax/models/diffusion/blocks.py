"""What a U-Net has at one resolution: residual blocks, transformers, and a change of resolution."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.models.diffusion.residual import ResidualBlock, doubled
from lavax.models.diffusion.transformer import SpatialTransformer
from lavax.models.diffusion.unet_config import UNetConfig
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.module import Module
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


@dataclass(frozen=True)
class Level:
    """Settings of a U-Net at one resolution. `transformers` is the number of layers in each, 0 where there are none."""

    channels: int
    layers: int
    heads: int
    context: int
    transformers: int


def level(config: UNetConfig, index: int, attends: bool) -> Level:
    """The settings of `config` at the resolution `index`, counted from the highest."""
    return Level(
        config.block_out_channels[index],
        config.per_level("layers_per_block")[index],
        config.per_level("attention_head_dim")[index],
        config.per_level("cross_attention_dim")[index],
        config.per_level("transformer_layers_per_block")[index] if attends else 0,
    )


def _residual(config: UNetConfig, before: int, after: int, key: ArrayLike, dtype: Any) -> ResidualBlock:
    groups, eps = config.norm_num_groups, config.norm_eps
    return ResidualBlock(before, after, config.time_width, groups=groups, eps=eps, key=key, dtype=dtype)


def _transformers(config: UNetConfig, at: Level, count: int, key: ArrayLike, dtype: Any) -> Any:
    """`count` transformers, or none at a resolution without."""
    if not at.transformers:
        return ()
    settings: dict[str, Any] = dict(groups=config.norm_num_groups, linear=config.use_linear_projection, dtype=dtype)
    return tuple(
        SpatialTransformer(at.channels, at.context, at.heads, at.transformers, key=each, **settings)
        for each in random.split(key, count)
    )


class DownBlock(Module):
    """Residual blocks, each with its transformer, and a convolution of stride 2 except at the lowest resolution.

    Its result is followed by all that the blocks on the way up concatenate with theirs.
    """

    residuals: tuple[ResidualBlock, ...]
    transformers: tuple[SpatialTransformer, ...]
    downsample: Conv2d | None

    def __init__(
        self, config: UNetConfig, at: Level, channels: int, last: bool, *, key: ArrayLike, dtype: Any = "float32"
    ) -> None:
        for_transformers, for_downsample, *keys = random.split(key, 2 + at.layers)
        widths = [channels] + [at.channels] * at.layers
        self.residuals = tuple(
            _residual(config, before, at.channels, key, dtype) for before, key in zip(widths, keys, strict=False)
        )
        self.transformers = _transformers(config, at, at.layers, for_transformers, dtype)
        padding = config.downsample_padding
        self.downsample = (
            None if last else Conv2d(at.channels, at.channels, 3, 2, padding, key=for_downsample, dtype=dtype)
        )

    def __call__(self, x: Value, time: Value, context: ArrayLike) -> tuple[Value, list[Value]]:
        kept = []
        for index, residual in enumerate(self.residuals):
            x = residual(x, time)
            x = self.transformers[index](x, context) if self.transformers else x
            kept.append(x)
        if self.downsample is not None:
            x = self.downsample(x)
            kept.append(x)
        return x, kept


class MiddleBlock(Module):
    """A residual block, a transformer, a residual block, at the lowest resolution."""

    residuals: tuple[ResidualBlock, ...]
    transformers: tuple[SpatialTransformer, ...]

    def __init__(self, config: UNetConfig, at: Level, *, key: ArrayLike, dtype: Any = "float32") -> None:
        for_transformers, *keys = random.split(key, 3)
        self.residuals = tuple(_residual(config, at.channels, at.channels, each, dtype) for each in keys)
        self.transformers = _transformers(config, at, 1, for_transformers, dtype)

    def __call__(self, x: Value, time: Value, context: ArrayLike) -> Value:
        x = self.residuals[0](x, time)
        x = self.transformers[0](x, context)
        return self.residuals[1](x, time)


class UpBlock(Module):
    """Residual blocks of the result so far and one kept on the way down, each with its transformer.

    Except at the highest resolution, the result is enlarged to that of what is kept next, and convolved.
    """

    residuals: tuple[ResidualBlock, ...]
    transformers: tuple[SpatialTransformer, ...]
    upsample: Conv2d | None

    def __init__(
        self,
        config: UNetConfig,
        at: Level,
        channels: int,
        kept: tuple[int, ...],
        last: bool,
        *,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        for_transformers, for_upsample, *keys = random.split(key, 2 + len(kept))
        widths = [channels] + [at.channels] * at.layers
        self.residuals = tuple(
            _residual(config, before + more, at.channels, key, dtype)
            for before, more, key in zip(widths, kept, keys, strict=True)
        )
        self.transformers = _transformers(config, at, len(kept), for_transformers, dtype)
        self.upsample = None if last else Conv2d(at.channels, at.channels, 3, padding=1, key=for_upsample, dtype=dtype)

    def __call__(self, x: Value, kept: list[Value], time: Value, context: ArrayLike) -> Value:
        """`kept` holds what was kept on the way down, and loses what is used here: the last ones."""
        for index, residual in enumerate(self.residuals):
            x = residual(lnp.concatenate([x, kept.pop()], axis=1), time)
            x = self.transformers[index](x, context) if self.transformers else x
        if self.upsample is None:
            return x
        height, width = kept[-1].shape[2:]
        return self.upsample(doubled(x)[:, :, :height, :width])
