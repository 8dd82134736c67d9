"""CLIP's text encoder: what Stable Diffusion reads of a prompt."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.base.quick_dataclasses import dataclass
from lavax.models.config import Config
from lavax.models.family import Family
from lavax.models.pretrained import PretrainedModel
from lavax.models.tensors import Tensors, with_prefix
from lavax.models.vision.pre_norm_block import PreNormBlock
from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

WITH_PROJECTION = "CLIPTextModelWithProjection"
# Older configurations say 2 for the token that ends a text, where it is the greatest of all tokens.
_WRONG_END = 2


@dataclass(frozen=True)
class CLIPTextConfig(Config):
    """Settings of a `clip_text_model`, by the names of its config.json; the defaults are those of transformers."""

    model_type: str = "clip_text_model"
    architectures: tuple[str, ...] = ("CLIPTextModel",)
    vocab_size: int = 49408
    hidden_size: int = 512
    intermediate_size: int = 2048
    projection_dim: int = 512
    num_hidden_layers: int = 12
    num_attention_heads: int = 8
    max_position_embeddings: int = 77
    hidden_act: str = "quick_gelu"
    layer_norm_eps: float = 1e-5
    eos_token_id: int = 49407


class CLIPText(PretrainedModel):
    """transformers' `CLIPTextModel`, and `CLIPTextModelWithProjection` (Radford et al. 2021).

        hidden = model(tokens)                  # [N, T] to [N, T, hidden_size]
        vectors = model.pooled(tokens, hidden)  # [N, hidden_size], or with the projection [N, projection_dim]

    T is at most `max_position_embeddings`.
    """

    tokens: Embedding
    positions: Embedding
    blocks: tuple[PreNormBlock, ...]
    norm: LayerNorm
    projection: Linear | None

    def __init__(self, config: CLIPTextConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        keys, width = random.split(key, 4), config.hidden_size
        projected = WITH_PROJECTION in config.architectures
        self.config = config
        self.tokens = Embedding(config.vocab_size, width, key=keys[0], dtype=dtype)
        self.positions = Embedding(config.max_position_embeddings, width, key=keys[1], dtype=dtype)
        self.blocks = tuple(
            PreNormBlock(
                width,
                config.num_attention_heads,
                config.intermediate_size,
                config.hidden_act,
                config.layer_norm_eps,
                is_causal=True,
                key=each,
                dtype=dtype,
            )
            for each in random.split(keys[2], config.num_hidden_layers)
        )
        self.norm = LayerNorm(width, config.layer_norm_eps, dtype=dtype)
        self.projection = Linear(width, config.projection_dim, False, key=keys[3], dtype=dtype) if projected else None

    def __call__(self, tokens: ArrayLike) -> Value:
        return self.norm(self.blocks[-1](self.before_last(tokens)))

    def before_last(self, tokens: ArrayLike) -> Value:
        """The hidden states that the last block gets, which Stable Diffusion XL reads: [N, T, hidden_size]."""
        given, longest = as_value(tokens), self.config.max_position_embeddings
        if given.ndim != 2 or given.shape[1] > longest:
            raise shape_error(f"CLIPText: tokens are [N, T] with T at most {longest}, got {given.type}")
        x = self.tokens(given) + self.positions(lnp.arange(given.shape[1], dtype="int32"))
        for block in self.blocks[:-1]:
            x = block(x)
        return x

    def pooled(self, tokens: ArrayLike, hidden: ArrayLike) -> Value:
        """The vectors of texts: those of the first token that ends each, projected if the model has a projection."""
        given, end = as_value(tokens), self.config.eos_token_id
        places = lnp.argmax(given if end == _WRONG_END else given == end, axis=1)
        found = lnp.take_along_axis(as_value(hidden), places[:, None, None], axis=1, mode="promise_in_bounds")[:, 0]
        return found if self.projection is None else self.projection(found)


def _prepared(tensors: Tensors, config: CLIPTextConfig) -> Tensors:
    """Some versions of transformers leave out the prefix of all but the projection."""
    return with_prefix(tensors, "text_model.", r"text_projection\.")


# What files call the layers of a block, in both towers.
BLOCK_NAMES = (
    (r"\.norm(1|2)\.", r".layer_norm\1."),
    (r"\.(q|k|v)(?:uery|ey|alue)\.", r".self_attn.\1_proj."),
    (r"\.out\.", ".self_attn.out_proj."),
    (r"\.expand\.", ".mlp.fc1."),
    (r"\.contract\.", ".mlp.fc2."),
)

FAMILY = Family(
    CLIPTextConfig,
    CLIPText,
    (
        (r"^tokens\.", "text_model.embeddings.token_embedding."),
        (r"^positions\.", "text_model.embeddings.position_embedding."),
        (r"^norm\.", "text_model.final_layer_norm."),
        (r"^projection\.", "text_projection."),
        (r"^blocks\.", "text_model.encoder.layers."),
        *BLOCK_NAMES,
    ),
    prepared=_prepared,
    optional=r"\.position_ids$",
)
