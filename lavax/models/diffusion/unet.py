"""The U-Net of Stable Diffusion 1, 2 and XL: the noise in latent images, given their time and a text."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.models.diffusion.blocks import DownBlock, MiddleBlock, UpBlock, level
from lavax.models.diffusion.time_embedding import TimeEmbedding, sinusoids
from lavax.models.diffusion.unet_config import DOWN_BLOCKS, UP_BLOCKS, UNetConfig
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.nn.activations import silu
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.normalization import GroupNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value


class UNet(PretrainedModel):
    """diffusers' `UNet2DConditionModel` (Rombach et al. 2022, High-Resolution Image Synthesis with Latent Diffusion).

        noise = unet(latents, times, context)

    `latents` are [N, in_channels, H, W], `times` a number or [N], `context` [N, tokens, cross_attention_dim]; the
    result is [N, out_channels, H, W] in the dtype of the latents, whatever that of the weights is. Models of Stable
    Diffusion XL also take `pooled`, the text as one vector, [N, features], and `sizes` [N, 6]: height and width before
    cropping, top and left of the crop, height and width wanted, in pixels.
    """

    conv_in: Conv2d
    time_embedding: TimeEmbedding
    added_embedding: TimeEmbedding | None
    down: tuple[DownBlock, ...]
    middle: MiddleBlock
    up: tuple[UpBlock, ...]
    norm_out: GroupNorm
    conv_out: Conv2d

    def __init__(self, config: UNetConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        config.check()
        channels = config.block_out_channels
        keys = random.split(key, 7)
        self.config = config
        self.conv_in = Conv2d(config.in_channels, channels[0], 3, padding=1, key=keys[0], dtype=dtype)
        self.time_embedding = TimeEmbedding(channels[0], config.time_width, key=keys[1], dtype=dtype)
        self.added_embedding = (
            TimeEmbedding(_needed(config, "projection_class_embeddings_input_dim"), config.time_width, key=keys[2],
                          dtype=dtype) if config.addition_embed_type else None
        )
        self.down = tuple(_down_blocks(config, keys[3], dtype))
        self.middle = MiddleBlock(config, level(config, len(channels) - 1, True), key=keys[4], dtype=dtype)
        self.up = tuple(_up_blocks(config, keys[5], dtype))
        self.norm_out = GroupNorm(config.norm_num_groups, channels[0], config.norm_eps, dtype=dtype)
        self.conv_out = Conv2d(channels[0], config.out_channels, 3, padding=1, key=keys[6], dtype=dtype)

    def __call__(
        self,
        latents: ArrayLike,
        times: ArrayLike,
        context: ArrayLike,
        *,
        pooled: ArrayLike | None = None,
        sizes: ArrayLike | None = None,
    ) -> Value:
        given = as_value(latents)
        if given.ndim != 4 or given.shape[1] != self.config.in_channels:
            raise shape_error(f"UNet: latents are [N, {self.config.in_channels}, H, W], got {given.type}")
        dtype = as_value(self.conv_in.weight).type.dtype
        x, context = cast(given, dtype), cast(as_value(context), dtype)
        if context.ndim != 3 or context.shape[0] != given.shape[0]:
            raise shape_error(f"UNet: the context of {given.type} is [{given.shape[0]}, T, D], got {context.type}")
        time = self._time(x, times, pooled, sizes)
        x = self.conv_in(2 * x - 1 if self.config.center_input_sample else x)
        kept = [x]
        for down in self.down:
            x, more = down(x, time, context)
            kept += more
        x = self.middle(x, time, context)
        for up in self.up:
            x = up(x, kept, time, context)
        return cast(self.conv_out(silu(self.norm_out(x))), given.type.dtype)

    def _time(
        self, latents: Value, times: ArrayLike, pooled: ArrayLike | None, sizes: ArrayLike | None
    ) -> Value:
        """The embedding of the times, and of what is added to it: [N, time_width]."""
        count, dtype = latents.shape[0], latents.type.dtype
        each = lnp.broadcast_to(as_value(times), (count,))
        made = self.time_embedding(cast(self._sinusoids(each, self.config.block_out_channels[0]), dtype))
        if self.added_embedding is None:
            return made
        if pooled is None or sizes is None:
            raise ValueError("UNet: a model with addition_embed_type 'text_time' needs pooled= and sizes=")
        width = _needed(self.config, "addition_time_embed_dim")
        of_sizes = lnp.reshape(self._sinusoids(lnp.ravel(sizes), width), (count, -1))
        added = lnp.concatenate([cast(as_value(pooled), dtype), cast(of_sizes, dtype)], axis=-1)
        return made + self.added_embedding(added)

    def _sinusoids(self, values: ArrayLike, width: int) -> Value:
        config = self.config
        return sinusoids(values, width, cosines_first=config.flip_sin_to_cos, shift=config.freq_shift)


def _needed(config: UNetConfig, name: str) -> int:
    value: int | None = getattr(config, name)
    if value is None:
        raise ValueError(f"UNetConfig: addition_embed_type {config.addition_embed_type!r} needs {name}")
    return value


def _down_blocks(config: UNetConfig, key: ArrayLike, dtype: Any) -> list[DownBlock]:
    count = len(config.block_out_channels)
    before = (config.block_out_channels[0], *config.block_out_channels)
    return [
        DownBlock(config, level(config, index, DOWN_BLOCKS[kind]), before[index], index == count - 1, key=each,
                  dtype=dtype)
        for index, (kind, each) in enumerate(zip(config.down_block_types, random.split(key, count), strict=True))
    ]


def _up_blocks(config: UNetConfig, key: ArrayLike, dtype: Any) -> list[UpBlock]:
    """From the lowest resolution up; each takes one more of what was kept than a block on the way down has layers."""
    channels = config.block_out_channels
    kept = _kept_channels(config)
    made: list[UpBlock] = []
    x = channels[-1]
    for index, key_of_block in zip(reversed(range(len(channels))), random.split(key, len(channels)), strict=True):
        at = level(config, index, UP_BLOCKS[config.up_block_types[len(made)]])
        used = tuple(kept.pop() for _ in range(at.layers + 1))
        made.append(UpBlock(config, at, x, used, index == 0, key=key_of_block, dtype=dtype))
        x = at.channels
    return made


def _kept_channels(config: UNetConfig) -> list[int]:
    """Channels of what the way down keeps, in order."""
    channels, layers = config.block_out_channels, config.per_level("layers_per_block")
    kept = [channels[0]]
    for index, width in enumerate(channels):
        kept += [width] * (layers[index] + (index < len(channels) - 1))
    return kept


_TRANSFORMER_NAMES = (
    (r"\.transformers\.", ".attentions."),
    (r"\.project_(in|out)\.", r".proj_\1."),
    (r"(attentions\.\d+)\.blocks\.", r"\1.transformer_blocks."),
    (r"\.self_attention\.", ".attn1."),
    (r"\.cross_attention\.", ".attn2."),
    (r"\.query\.", ".to_q."),
    (r"\.key\.", ".to_k."),
    (r"\.value\.", ".to_v."),
    (r"(attn[12])\.out\.", r"\1.to_out.0."),
    (r"\.feed_forward\.expand\.", ".ff.net.0.proj."),
    (r"\.feed_forward\.contract\.", ".ff.net.2."),
)
RESIDUAL_NAMES = (
    (r"\.residuals\.", ".resnets."),
    (r"\.time_projection\.", ".time_emb_proj."),
    (r"\.shortcut\.", ".conv_shortcut."),
    (r"\.(down|up)sample\.", r".\1samplers.0.conv."),
)

FAMILY = Family(
    UNetConfig,
    UNet,
    (
        (r"^(down|up)\.", r"\1_blocks."),
        (r"^middle\.", "mid_block."),
        (r"^norm_out\.", "conv_norm_out."),
        (r"^added_embedding\.", "add_embedding."),
        (r"embedding\.first\.", "embedding.linear_1."),
        (r"embedding\.second\.", "embedding.linear_2."),
        *RESIDUAL_NAMES,
        *_TRANSFORMER_NAMES,
    ),
)
