"""The autoencoder of latent diffusion: images of an eighth of the size, with 4 channels, and back."""
from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType
from lavax.models.config import Config
from lavax.models.diffusion.residual import ResidualBlock, doubled
from lavax.models.diffusion.settings import refuse_other_values
from lavax.models.diffusion.transformer import Attention, pixels
from lavax.models.diffusion.unet import RESIDUAL_NAMES
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.models.tensors import Tensors
from lavax.nn.activations import silu
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.module import Module
from lavax.nn.modules.normalization import GroupNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

_EPS = 1e-6  # of all normalisation, which config.json does not say

_FIXED: Mapping[str, tuple[Any, ...]] = {
    "act_fn": ("silu", "swish"),
    "latents_mean": (None,),
    "latents_std": (None,),
    "mid_block_add_attention": (True,),
}


@dataclass(frozen=True)
class AutoencoderConfig(Config):
    """Settings of an `AutoencoderKL`, by the names of its config.json; the defaults are those of diffusers."""

    _class_name: str = "AutoencoderKL"
    in_channels: int = 3
    out_channels: int = 3
    down_block_types: tuple[str, ...] = ("DownEncoderBlock2D",)
    up_block_types: tuple[str, ...] = ("UpDecoderBlock2D",)
    block_out_channels: tuple[int, ...] = (64,)
    layers_per_block: int = 1
    latent_channels: int = 4
    norm_num_groups: int = 32
    scaling_factor: float = 0.18215
    shift_factor: float | None = None
    use_quant_conv: bool = True
    use_post_quant_conv: bool = True

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The configuration of config.json. Raises ValueError for a setting that this model does not have."""
        made = super().from_json(data)
        refuse_other_values(made, _FIXED)
        return made

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.block_out_channels)
        for name, kind in (("down_block_types", "DownEncoderBlock2D"), ("up_block_types", "UpDecoderBlock2D")):
            if getattr(self, name) != (kind,) * count:
                raise ValueError(f"AutoencoderConfig: {name} must be {kind!r} for each of {count} resolutions")


STABLE_DIFFUSION_AUTOENCODER = AutoencoderConfig(
    down_block_types=("DownEncoderBlock2D",) * 4,
    up_block_types=("UpDecoderBlock2D",) * 4,
    block_out_channels=(128, 256, 512, 512),
    layers_per_block=2,
)


class _Level(Module):
    """Residual blocks, and a change of the resolution, except at the last level."""

    residuals: tuple[ResidualBlock, ...]
    downsample: Conv2d | None
    upsample: Conv2d | None

    def __init__(
        self,
        config: AutoencoderConfig,
        before: int,
        after: int,
        layers: int,
        *,
        down: bool = False,
        up: bool = False,
        key: ArrayLike,
        dtype: Any,
    ) -> None:
        for_change, *keys = random.split(key, 1 + layers)
        widths = [before] + [after] * layers
        self.residuals = tuple(
            ResidualBlock(width, after, groups=config.norm_num_groups, eps=_EPS, key=each, dtype=dtype)
            for width, each in zip(widths, keys, strict=False)
        )
        at_end = ((0, 1), (0, 1))  # one row and one column after the image: the first window begins at its corner
        self.downsample = Conv2d(after, after, 3, 2, at_end, key=for_change, dtype=dtype) if down else None
        self.upsample = Conv2d(after, after, 3, padding=1, key=for_change, dtype=dtype) if up else None

    def __call__(self, x: Value) -> Value:
        for residual in self.residuals:
            x = residual(x)
        if self.downsample is not None:
            x = self.downsample(x)
        return x if self.upsample is None else self.upsample(doubled(x))


class _Middle(Module):
    """A residual block, attention of all pixels to each other with one head, a residual block."""

    residuals: tuple[ResidualBlock, ...]
    norm: GroupNorm
    attention: Attention

    def __init__(self, config: AutoencoderConfig, channels: int, *, key: ArrayLike, dtype: Any) -> None:
        for_attention, *keys = random.split(key, 3)
        groups = config.norm_num_groups
        self.residuals = tuple(
            ResidualBlock(channels, channels, groups=groups, eps=_EPS, key=each, dtype=dtype) for each in keys
        )
        self.norm = GroupNorm(groups, channels, _EPS, dtype=dtype)
        self.attention = Attention(channels, channels, 1, bias=True, key=for_attention, dtype=dtype)

    def __call__(self, x: Value) -> Value:
        x = self.residuals[0](x)
        x = x + lnp.reshape(lnp.matrix_transpose(self.attention(pixels(self.norm(x)))), x.shape)
        return self.residuals[1](x)


class Encoder(Module):
    """Images [N, in_channels, H, W] to means and logarithms of variances [N, 2·latent_channels, H/8, W/8]."""

    conv_in: Conv2d
    down: tuple[_Level, ...]
    middle: _Middle
    norm_out: GroupNorm
    conv_out: Conv2d

    def __init__(self, config: AutoencoderConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        channels = config.block_out_channels
        for_in, for_out, for_middle, *keys = random.split(key, 3 + len(channels))
        self.conv_in = Conv2d(config.in_channels, channels[0], 3, padding=1, key=for_in, dtype=dtype)
        self.down = tuple(
            _Level(config, channels[max(index - 1, 0)], width, config.layers_per_block,
                   down=index < len(channels) - 1, key=each, dtype=dtype)
            for index, (width, each) in enumerate(zip(channels, keys, strict=True))
        )
        self.middle = _Middle(config, channels[-1], key=for_middle, dtype=dtype)
        self.norm_out = GroupNorm(config.norm_num_groups, channels[-1], _EPS, dtype=dtype)
        self.conv_out = Conv2d(channels[-1], 2 * config.latent_channels, 3, padding=1, key=for_out, dtype=dtype)

    def __call__(self, images: ArrayLike) -> Value:
        x = self.conv_in(images)
        for down in self.down:
            x = down(x)
        return self.conv_out(silu(self.norm_out(self.middle(x))))


class Decoder(Module):
    """Latent images [N, latent_channels, H/8, W/8] to images [N, out_channels, H, W]."""

    conv_in: Conv2d
    middle: _Middle
    up: tuple[_Level, ...]
    norm_out: GroupNorm
    conv_out: Conv2d

    def __init__(self, config: AutoencoderConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        channels = config.block_out_channels[::-1]
        for_in, for_out, for_middle, *keys = random.split(key, 3 + len(channels))
        self.conv_in = Conv2d(config.latent_channels, channels[0], 3, padding=1, key=for_in, dtype=dtype)
        self.middle = _Middle(config, channels[0], key=for_middle, dtype=dtype)
        self.up = tuple(
            _Level(config, channels[max(index - 1, 0)], width, config.layers_per_block + 1,
                   up=index < len(channels) - 1, key=each, dtype=dtype)
            for index, (width, each) in enumerate(zip(channels, keys, strict=True))
        )
        self.norm_out = GroupNorm(config.norm_num_groups, channels[-1], _EPS, dtype=dtype)
        self.conv_out = Conv2d(channels[-1], config.out_channels, 3, padding=1, key=for_out, dtype=dtype)

    def __call__(self, latents: ArrayLike) -> Value:
        x = self.middle(self.conv_in(latents))
        for up in self.up:
            x = up(x)
        return self.conv_out(silu(self.norm_out(x)))


class Autoencoder(PretrainedModel):
    """diffusers' `AutoencoderKL`. Images have values from -1 to 1; latents are scaled as the U-Net takes them.
    Results have the dtype of the weights.

        images = autoencoder.decode(latents)
        latents = autoencoder.encode(images, key)
    """

    encoder: Encoder
    decoder: Decoder
    after_encoder: Conv2d | None
    before_decoder: Conv2d | None

    def __init__(self, config: AutoencoderConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys, channels = random.split(key, 4), config.latent_channels
        self.config = config
        self.encoder = Encoder(config, key=keys[0], dtype=dtype)
        self.decoder = Decoder(config, key=keys[1], dtype=dtype)
        self.after_encoder = (
            Conv2d(2 * channels, 2 * channels, 1, key=keys[2], dtype=dtype) if config.use_quant_conv else None
        )
        self.before_decoder = (
            Conv2d(channels, channels, 1, key=keys[3], dtype=dtype) if config.use_post_quant_conv else None
        )

    def moments(self, images: ArrayLike) -> tuple[Value, Value]:
        """The mean of the latents of images [N, in_channels, H, W], and the logarithm of their variance, unscaled."""
        given, multiple = as_value(images), 2 ** (len(self.config.block_out_channels) - 1)
        if given.ndim != 4 or given.shape[1] != self.config.in_channels or any(n % multiple for n in given.shape[2:]):
            raise shape_error(
                f"Autoencoder: images are [N, {self.config.in_channels}, H, W] with H and W multiples of {multiple}, "
                f"got {given.type}"
            )
        made = self.encoder(cast(given, self._dtype))
        mean, log_variance = lnp.split(made if self.after_encoder is None else self.after_encoder(made), 2, axis=1)
        return mean, lnp.clip(log_variance, -30.0, 20.0)

    def encode(self, images: ArrayLike, key: ArrayLike | None = None) -> Value:
        """Latents of images: drawn from their distribution with `key`, else its mean."""
        made, log_variance = self.moments(images)
        if key is not None:
            noise = cast(random.normal(key, made.shape), made.type.dtype)
            made = made + lnp.exp(0.5 * log_variance) * noise
        scaled: Value = (made - (self.config.shift_factor or 0.0)) * self.config.scaling_factor
        return scaled

    def decode(self, latents: ArrayLike) -> Value:
        """The images of latents [N, latent_channels, H, W]. Values may be a little beyond -1 and 1."""
        given = as_value(latents)
        if given.ndim != 4 or given.shape[1] != self.config.latent_channels:
            raise shape_error(f"Autoencoder: latents are [N, {self.config.latent_channels}, H, W], got {given.type}")
        x = cast(given / self.config.scaling_factor + (self.config.shift_factor or 0.0), self._dtype)
        return self.decoder(x if self.before_decoder is None else self.before_decoder(x))

    @property
    def _dtype(self) -> DType:
        return as_value(self.decoder.conv_in.weight).type.dtype


# Older files name the layers of attention so; matrices in them may be 1 x 1 convolutions.
_OLD_NAMES = {"query": "to_q", "key": "to_k", "value": "to_v", "proj_attn": "to_out.0"}
_OLD = re.compile(rf"(mid_block\.attentions\.0)\.({'|'.join(_OLD_NAMES)})\.")


def _renamed(tensors: Tensors, config: AutoencoderConfig) -> Tensors:
    made = {}
    for name, tensor in tensors.items():
        new = _OLD.sub(lambda found: f"{found[1]}.{_OLD_NAMES[found[2]]}.", name)
        made[new] = tensor[:, :, 0, 0] if ".attentions." in new and tensor.ndim == 4 else tensor
    return made


FAMILY = Family(
    AutoencoderConfig,
    Autoencoder,
    (
        (r"^after_encoder\.", "quant_conv."),
        (r"^before_decoder\.", "post_quant_conv."),
        (r"\.norm_out\.", ".conv_norm_out."),
        (r"\.(down|up)\.", r".\1_blocks."),
        (r"\.middle\.norm\.", ".middle.attentions.0.group_norm."),
        (r"\.middle\.attention\.", ".middle.attentions.0."),
        (r"\.middle\.", ".mid_block."),
        (r"\.query\.", ".to_q."),
        (r"\.key\.", ".to_k."),
        (r"\.value\.", ".to_v."),
        (r"\.out\.", ".to_out.0."),
        *RESIDUAL_NAMES,
    ),
    prepared=_renamed,
)
