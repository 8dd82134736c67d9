"""Vision transformers: Dosovitskiy et al., "An Image is Worth 16x16 Words" (2021)."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.image.resize import resize
from lavax.models.config import ImageClassifierConfig
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.models.tensors import Tensors, with_prefix
from lavax.models.vision.pre_norm_block import PreNormBlock
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

_CLASSIFIER = "ViTForImageClassification"
_DEVIATION = 0.02  # of the class token and the positions at first


@dataclass(frozen=True)
class ViTConfig(ImageClassifierConfig):
    """Settings of a `ViT`, by the names of its config.json; by default those of ViT-B/16."""

    model_type: str = "vit"
    architectures: tuple[str, ...] = (_CLASSIFIER,)
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    image_size: int | tuple[int, int] = 224
    patch_size: int | tuple[int, int] = 16
    qkv_bias: bool = True


class PatchEmbedding(Module):
    """Images [N, channels, H, W] as tokens [N, 1 + patches, width]: a class token, then the patches row by row.

    The learned positions are of images of `image_size`. For others they are interpolated (bicubic, as PyTorch does).
    Pixels that fill no patch at the right and the lower edge are left out.
    """

    projection: Conv2d
    class_token: Any
    positions: Any
    grid: tuple[int, int] = field(static=True)

    def __init__(
        self,
        channels: int,
        width: int,
        image_size: int | tuple[int, int],
        patch_size: int | tuple[int, int],
        bias: bool = True,
        axes_before: tuple[int, ...] = (),
        *,
        key: ArrayLike,
        dtype: Any,
    ) -> None:
        """`axes_before` stand before those of the class token and the positions, where files have them."""
        keys, (height, length) = random.split(key, 3), _pair(patch_size)
        self.grid = (_pair(image_size)[0] // height, _pair(image_size)[1] // length)
        count = 1 + math.prod(self.grid)
        self.projection = Conv2d(
            channels, width, (height, length), (height, length), bias=bias, key=keys[0], dtype=dtype
        )
        token = (1, width) if axes_before else (width,)
        self.class_token = _DEVIATION * random.normal(keys[1], (*axes_before, *token), dtype)
        self.positions = _DEVIATION * random.normal(keys[2], (*axes_before, count, width), dtype)

    def __call__(self, images: ArrayLike) -> Value:
        given, (_, channels, height, length) = as_value(images), self.projection.weight.shape
        if given.ndim != 4 or given.shape[1] != channels or given.shape[2] < height or given.shape[3] < length:
            raise shape_error(
                f"PatchEmbedding: images are [N, {channels}, H, W] of at least {height} x {length} pixels, got "
                f"{given.type}"
            )
        patches = self.projection(given)
        count, width, *grid = patches.shape
        tokens = lnp.swapaxes(lnp.reshape(patches, (count, width, -1)), 1, 2)
        first = lnp.broadcast_to(lnp.reshape(self.class_token, (1, 1, width)), (count, 1, width))
        return lnp.concatenate([first, tokens], axis=1) + self._positions(grid[0], grid[1])

    def _positions(self, height: int, length: int) -> Value:
        """Positions [1 + height · length, width] of the class token and a grid of patches."""
        width = self.positions.shape[-1]
        learned = lnp.reshape(self.positions, (-1, width))
        if (height, length) == self.grid:
            return learned
        places = lnp.reshape(learned[1:], (*self.grid, width))
        made = resize(places, (height, length, width), "cubic-pytorch", antialias=False)
        return lnp.concatenate([learned[:1], lnp.reshape(made, (-1, width))])


class ViT(PretrainedModel):
    """transformers' `ViTForImageClassification`, and `ViTModel` without its pooling layer.

        logits = model(images)         # [N, 3, H, W] to [N, classes]
        hidden = model.hidden(images)  # [N, 1 + patches, hidden_size]: the class token, then the patches row by row

    H and W may differ from `image_size`: positions are interpolated.
    """

    patches: PatchEmbedding
    blocks: tuple[PreNormBlock, ...]
    norm: LayerNorm
    classifier: Linear | None

    def __init__(self, config: ViTConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys, width = random.split(key, 3), config.hidden_size
        self.config = config
        self.patches = PatchEmbedding(
            config.num_channels, width, config.image_size, config.patch_size, axes_before=(1,), key=keys[0], dtype=dtype
        )
        self.blocks = tuple(
            PreNormBlock(
                width,
                config.num_attention_heads,
                config.intermediate_size,
                config.hidden_act,
                config.layer_norm_eps,
                config.qkv_bias,
                key=each,
                dtype=dtype,
            )
            for each in random.split(keys[1], config.num_hidden_layers)
        )
        self.norm = LayerNorm(width, config.layer_norm_eps, dtype=dtype)
        classifies = _CLASSIFIER in config.architectures
        self.classifier = Linear(width, config.classes, key=keys[2], dtype=dtype) if classifies else None

    def __call__(self, images: ArrayLike) -> Value:
        if self.classifier is None:
            raise ValueError("ViT: this model has no classifier; `model.hidden(images)` gives its hidden states")
        return self.classifier(self.hidden(images)[:, 0])

    def hidden(self, images: ArrayLike) -> Value:
        """The normalised hidden states [N, 1 + patches, hidden_size]."""
        x = self.patches(images)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    """Height and width; one number stands for both."""
    return (size, size) if isinstance(size, int) else size


def _prepared(tensors: Tensors, config: ViTConfig) -> Tensors:
    """Files of models without a classifier have no prefix."""
    return with_prefix(tensors, "vit.", r"classifier\.")


FAMILY = Family(
    ViTConfig,
    ViT,
    (
        (r"^patches\.projection\.", "vit.embeddings.patch_embeddings.projection."),
        (r"^patches\.class_token$", "vit.embeddings.cls_token"),
        (r"^patches\.positions$", "vit.embeddings.position_embeddings"),
        (r"^norm\.", "vit.layernorm."),
        (r"^blocks\.", "vit.encoder.layer."),
        (r"\.norm1\.", ".layernorm_before."),
        (r"\.norm2\.", ".layernorm_after."),
        (r"\.(query|key|value)\.", r".attention.attention.\1."),
        (r"\.out\.", ".attention.output.dense."),
        (r"\.expand\.", ".intermediate.dense."),
        (r"\.contract\.", ".output.dense."),
    ),
    prepared=_prepared,
    optional=r"^vit\.(pooler\.|embeddings\.mask_token$)",
)
