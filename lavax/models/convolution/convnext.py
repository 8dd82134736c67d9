"""ConvNeXt (Liu et al. 2022) as an image classifier: a convolution net in the proportions of a vision transformer.

ConvNeXt V2 (Woo et al. 2023) has another norm in the middle of its blocks.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.linalg.norms import vector_norm
from lavax.models.activations import activation_of
from lavax.models.config import ImageClassifierConfig
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.dropout import dropout
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

_WINDOW = 7  # of the depthwise convolutions
_EXPANSION = 4  # channels in the middle of a block over those of its ends
_EPS = 1e-6  # of all layer norms but the last, whose eps is a setting


@dataclass(frozen=True)
class ConvNextConfig(ImageClassifierConfig):
    """Settings of a `ConvNext`, by the names of its config.json; by default those of ConvNeXt-T."""

    model_type: str = "convnext"
    patch_size: int | tuple[int, int] = 4
    hidden_sizes: tuple[int, ...] = (96, 192, 384, 768)
    depths: tuple[int, ...] = (3, 3, 9, 3)
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    layer_scale_init_value: float = 1e-6
    drop_path_rate: float = 0.0

    has_response_norm: ClassVar[bool] = False

    @property
    def least_pixels(self) -> tuple[int, int]:
        """Height and width of the smallest images, of which the last stage has one pixel left."""
        size, halved = self.patch_size, 2 ** (len(self.depths) - 1)
        height, width = (size, size) if isinstance(size, int) else size
        return height * halved, width * halved

    def to_json(self) -> dict[str, Any]:
        """What config.json holds for it; there the stages are also counted."""
        return {**super().to_json(), "num_stages": len(self.depths)}

    def drop_rate(self, number: int) -> float:
        """The probability that training leaves out block `number` of all: it rises linearly to `drop_path_rate`."""
        return self.drop_path_rate * number / max(sum(self.depths) - 1, 1)


@dataclass(frozen=True)
class ConvNextV2Config(ConvNextConfig):
    """Settings of a ConvNeXt V2, whose blocks have response norms and no layer scale; by default those of V2-T."""

    model_type: str = "convnextv2"
    layer_scale_init_value: float = 0.0

    has_response_norm: ClassVar[bool] = True


def _channels_last(x: Value) -> Value:
    return lnp.transpose(x, (0, 2, 3, 1))


def _channels_first(x: Value) -> Value:
    return lnp.transpose(x, (0, 3, 1, 2))


class ResponseNorm(Module):
    """Channels scaled by how strong each is in the image, compared with the others: [N, H, W, channels] to the same.

    Global response normalization (Woo et al. 2023). `weight` and `bias` are [1, 1, 1, channels], as files have them.
    """

    weight: Any
    bias: Any

    def __init__(self, channels: int, *, dtype: Any) -> None:
        self.weight, self.bias = (lnp.zeros((1, 1, 1, channels), dtype) for _ in range(2))

    def __call__(self, x: Value) -> Value:
        strengths = vector_norm(x, axis=(1, 2), keepdims=True)
        relative = strengths / (lnp.mean(strengths, axis=-1, keepdims=True) + _EPS)
        made: Value = self.weight * (x * relative) + self.bias + x
        return made


class Block(Module):
    """A depthwise convolution and a multilayer perceptron of the channels, added to the input (figure 4)."""

    depthwise: Conv2d
    norm: LayerNorm
    widen: Linear
    response: ResponseNorm | None
    narrow: Linear
    scale: Any  # [channels]; None if the configuration has no layer scale
    activation: str = field(static=True)
    drop_rate: float = field(static=True)

    def __init__(self, config: ConvNextConfig, channels: int, number: int, *, key: ArrayLike, dtype: Any) -> None:
        for_depthwise, for_widen, for_narrow = random.split(key, 3)
        inner, start = _EXPANSION * channels, config.layer_scale_init_value
        self.depthwise = Conv2d(
            channels, channels, _WINDOW, padding=_WINDOW // 2, groups=channels, key=for_depthwise, dtype=dtype
        )
        self.norm = LayerNorm(channels, _EPS, dtype=dtype)
        self.widen = Linear(channels, inner, key=for_widen, dtype=dtype)
        self.response = ResponseNorm(inner, dtype=dtype) if config.has_response_norm else None
        self.narrow = Linear(inner, channels, key=for_narrow, dtype=dtype)
        self.scale = lnp.full((channels,), start, dtype) if start > 0 else None
        self.activation, self.drop_rate = config.hidden_act, config.drop_rate(number)

    def __call__(self, x: Value, key: ArrayLike | None) -> Value:
        hidden = self.norm(_channels_last(self.depthwise(x)))
        hidden = activation_of(self.activation)(self.widen(hidden))
        hidden = self.narrow(hidden if self.response is None else self.response(hidden))
        hidden = _channels_first(hidden if self.scale is None else hidden * self.scale)
        # Stochastic depth (Huang et al. 2016): the block is there for an image as a whole, or is not.
        return x + (hidden if key is None else dropout(hidden, self.drop_rate, key, shared_axes=(1, 2, 3)))


class Patches(Module):
    """A convolution whose windows do not overlap, and layer norm over the channels: after it, or before."""

    convolution: Conv2d
    norm: LayerNorm
    norm_first: bool = field(static=True)

    def __init__(
        self, before: int, after: int, size: int | tuple[int, int], norm_first: bool, *, key: ArrayLike, dtype: Any
    ) -> None:
        self.convolution = Conv2d(before, after, size, size, key=key, dtype=dtype)
        self.norm = LayerNorm(before if norm_first else after, _EPS, dtype=dtype)
        self.norm_first = norm_first

    def __call__(self, x: Value) -> Value:
        if self.norm_first:
            return self.convolution(_channels_first(self.norm(_channels_last(x))))
        return _channels_first(self.norm(_channels_last(self.convolution(x))))


class Stage(Module):
    """Blocks of one width and resolution; all stages but the first halve the resolution before."""

    downsampling: Patches | None
    blocks: tuple[Block, ...]

    def __init__(self, config: ConvNextConfig, number: int, *, keys: Iterator[Any], dtype: Any) -> None:
        sizes, first = config.hidden_sizes, sum(config.depths[:number])
        self.downsampling = (
            Patches(sizes[number - 1], sizes[number], 2, True, key=next(keys), dtype=dtype) if number else None
        )
        self.blocks = tuple(
            Block(config, sizes[number], first + position, key=next(keys), dtype=dtype)
            for position in range(config.depths[number])
        )


class ConvNext(PretrainedModel):
    """Images [N, 3, H, W] to logits [N, classes].

        logits = model(images)                 # all blocks
        logits = model(images, key=key)        # in training: stochastic depth, by the `drop_path_rate` of the model
    """

    stem: Patches
    stages: tuple[Stage, ...]
    norm: LayerNorm
    classifier: Linear

    def __init__(self, config: ConvNextConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        if len(config.hidden_sizes) != len(config.depths):
            raise ValueError(
                f"ConvNext: hidden_sizes and depths have an entry for each stage, got {config.hidden_sizes} and "
                f"{config.depths}"
            )
        activation_of(config.hidden_act)  # an unknown one is named now
        keys = iter(random.split(key, 2 + len(config.depths) + sum(config.depths)))
        sizes = config.hidden_sizes
        self.config = config
        self.stem = Patches(config.num_channels, sizes[0], config.patch_size, False, key=next(keys), dtype=dtype)
        self.stages = tuple(Stage(config, number, keys=keys, dtype=dtype) for number in range(len(sizes)))
        self.norm = LayerNorm(sizes[-1], config.layer_norm_eps, dtype=dtype)
        self.classifier = Linear(sizes[-1], config.classes, key=next(keys), dtype=dtype)

    def __call__(self, images: ArrayLike, *, key: ArrayLike | None = None) -> Value:
        count = sum(self.config.depths)
        keys = iter([None] * count if key is None else random.split(key, count))
        x = self.stem(self.config.images_of("ConvNext", images, self.config.least_pixels))
        for stage in self.stages:
            x = x if stage.downsampling is None else stage.downsampling(x)
            for block in stage.blocks:
                x = block(x, next(keys))
        return self.classifier(self.norm(lnp.mean(x, axis=(2, 3))))


def names(prefix: str) -> tuple[tuple[str, str], ...]:
    """What files call the weights; `prefix` is the "model_type"."""
    return (
        (r"^stem\.convolution\.", f"{prefix}.embeddings.patch_embeddings."),
        (r"^stem\.norm\.", f"{prefix}.embeddings.layernorm."),
        (r"^stages\.", f"{prefix}.encoder.stages."),
        (r"\.downsampling\.norm\.", ".downsampling_layer.0."),
        (r"\.downsampling\.convolution\.", ".downsampling_layer.1."),
        (r"\.blocks\.(\d+)\.", r".layers.\1."),
        (r"\.depthwise\.", ".dwconv."),
        (r"\.widen\.", ".pwconv1."),
        (r"\.response\.", ".grn."),
        (r"\.narrow\.", ".pwconv2."),
        (r"\.scale$", ".layer_scale_parameter"),
        (r"\.norm\.", ".layernorm."),
        (r"^norm\.", f"{prefix}.layernorm."),
    )


FAMILY = Family(ConvNextConfig, ConvNext, names("convnext"))
