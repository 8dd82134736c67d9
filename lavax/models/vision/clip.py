"""CLIP: Radford et al., "Learning Transferable Visual Models From Natural Language Supervision" (2021)."""
from __future__ import annotations

import dataclasses
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.models.config import Config, Settings
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.models.vision.clip_text import BLOCK_NAMES, WITH_PROJECTION, CLIPText, CLIPTextConfig
from lavax.models.vision.pre_norm_block import PreNormBlock
from lavax.models.vision.vit import PatchEmbedding
from lavax.nn.contrastive import clip_loss, normalize
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

_NONE = Settings({})


@dataclass(frozen=True)
class CLIPVisionConfig(Config):
    """Settings of CLIP's vision tower, by the names of "vision_config"; the defaults are those of transformers."""

    model_type: str = "clip_vision_model"
    hidden_size: int = 768
    intermediate_size: int = 3072
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    num_channels: int = 3
    image_size: int = 224
    patch_size: int = 32
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5


@dataclass(frozen=True)
class CLIPConfig(Config):
    """Settings of a `CLIP`, by the names of its config.json."""

    model_type: str = "clip"
    text_config: Settings = _NONE
    vision_config: Settings = _NONE
    # Older files have these, which then count.
    text_config_dict: Settings | None = None
    vision_config_dict: Settings | None = None
    projection_dim: int = 512
    logit_scale_init_value: float = 2.6592

    @property
    def text(self) -> CLIPTextConfig:
        """The settings of the text tower, which ends with the projection."""
        given = self.text_config if self.text_config_dict is None else self.text_config_dict
        return dataclasses.replace(
            CLIPTextConfig.from_json(given), architectures=(WITH_PROJECTION,), projection_dim=self.projection_dim
        )

    @property
    def vision(self) -> CLIPVisionConfig:
        """The settings of the vision tower."""
        return CLIPVisionConfig.from_json(
            self.vision_config if self.vision_config_dict is None else self.vision_config_dict
        )


class CLIPVision(Module):
    """The vision tower: images [N, 3, H, W] to hidden states [N, 1 + patches, hidden_size]."""

    patches: PatchEmbedding
    norm_before: LayerNorm
    blocks: tuple[PreNormBlock, ...]
    norm_after: LayerNorm
    projection: Linear

    def __init__(self, config: CLIPVisionConfig, features: int, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys, width = random.split(key, 3), config.hidden_size
        self.patches = PatchEmbedding(
            config.num_channels, width, config.image_size, config.patch_size, bias=False, key=keys[0], dtype=dtype
        )
        self.norm_before, self.norm_after = (LayerNorm(width, config.layer_norm_eps, dtype=dtype) for _ in range(2))
        self.blocks = tuple(
            PreNormBlock(
                width,
                config.num_attention_heads,
                config.intermediate_size,
                config.hidden_act,
                config.layer_norm_eps,
                key=each,
                dtype=dtype,
            )
            for each in random.split(keys[1], config.num_hidden_layers)
        )
        self.projection = Linear(width, features, False, key=keys[2], dtype=dtype)

    def __call__(self, images: ArrayLike) -> Value:
        x = self.norm_before(self.patches(images))
        for block in self.blocks:
            x = block(x)
        return x

    def pooled(self, hidden: Value) -> Value:
        """The projected vectors [N, features] of images: those of their class tokens."""
        return self.projection(self.norm_after(hidden[:, 0]))


class CLIP(PretrainedModel):
    """transformers' `CLIPModel`: texts and images as vectors of one space.

        texts = model.encode_text(ids)           # [N, T] to [N, projection_dim]
        images = model.encode_image(images)      # [M, 3, H, W] to [M, projection_dim]
        per_text, per_image = model(ids, images) # logits [N, M] and [M, N]
        loss = model.loss(ids, images)           # of N texts, each of which belongs to the image of its row

    Ids end with the token `eos_token_id`; what follows it does not count. H and W may differ from `image_size`.
    """

    text: CLIPText
    vision: CLIPVision
    logit_scale: Any  # the logarithm of what multiplies cosines

    def __init__(self, config: CLIPConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys = random.split(key)
        self.config = config
        self.text = CLIPText(config.text, key=keys[0], dtype=dtype)
        self.vision = CLIPVision(config.vision, config.projection_dim, key=keys[1], dtype=dtype)
        self.logit_scale = lnp.full((), config.logit_scale_init_value, dtype)

    def __call__(self, ids: ArrayLike, images: ArrayLike) -> tuple[Value, Value]:
        texts, pictures = normalize(self.encode_text(ids), axis=-1), normalize(self.encode_image(images), axis=-1)
        per_text = lnp.matmul(texts, lnp.matrix_transpose(pictures)) * lnp.exp(self.logit_scale)
        return per_text, lnp.matrix_transpose(per_text)

    def encode_text(self, ids: ArrayLike) -> Value:
        """The vectors [N, projection_dim] of texts [N, T]; their lengths are not 1."""
        return self.text.pooled(ids, self.text(ids))

    def encode_image(self, images: ArrayLike) -> Value:
        """The vectors [N, projection_dim] of images [N, 3, H, W]; their lengths are not 1."""
        return self.vision.pooled(self.vision(images))

    def loss(self, ids: ArrayLike, images: ArrayLike) -> Value:
        """The mean of finding each text's image and each image's text among those of the batch: `nn.clip_loss`."""
        return clip_loss(self.encode_image(images), self.encode_text(ids), lnp.exp(self.logit_scale))


FAMILY = Family(
    CLIPConfig,
    CLIP,
    (
        (r"^text\.projection\.", "text_projection."),
        (r"^text\.tokens\.", "text_model.embeddings.token_embedding."),
        (r"^text\.positions\.", "text_model.embeddings.position_embedding."),
        (r"^text\.norm\.", "text_model.final_layer_norm."),
        (r"^vision\.projection\.", "visual_projection."),
        (r"^vision\.patches\.projection\.", "vision_model.embeddings.patch_embedding."),
        (r"^vision\.patches\.class_token$", "vision_model.embeddings.class_embedding"),
        (r"^vision\.patches\.positions$", "vision_model.embeddings.position_embedding.weight"),
        (r"^vision\.norm_before\.", "vision_model.pre_layrnorm."),  # as files spell it
        (r"^vision\.norm_after\.", "vision_model.post_layernorm."),
        (r"^(text|vision)\.blocks\.", r"\1_model.encoder.layers."),
        *BLOCK_NAMES,
    ),
    optional=r"\.position_ids$",
)
