"""The encoder of BERT and its relatives: Devlin et al. (2018)."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.ir.types import int32
from lavax.models.encoders.layers import EncoderBlock
from lavax.models.pretrained import PretrainedModel
from lavax.nn.modules.linear import Embedding, Linear
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value


class Encoder(PretrainedModel):
    """An encoder whose tokens all see one another: `hidden = model(ids, mask)`.

    `ids` are integers [B, T], and the result is [B, T, hidden_size]. `mask` [B, T] is true, or not 0, for tokens and
    not for padding; or it holds the numbers of tokens of each row, [B], with the padding after them. Without it, all
    are tokens. `token_types` [B, T] tell the first text of a pair, 0, from the second, 1. There is no dropout.
    """

    tokens: Embedding
    positions: Embedding
    token_types: Embedding | None
    norm: LayerNorm
    blocks: tuple[EncoderBlock, ...]
    pooler: Linear | None

    def __init__(self, config: Any, *, key: ArrayLike, dtype: Any = "float32") -> None:
        config.check()
        width, types = config.hidden_size, config.type_vocab_size
        keys = random.split(key, config.num_hidden_layers + 4)
        self.config = config
        self.tokens = Embedding(config.vocab_size, width, key=keys[0], dtype=dtype)
        self.positions = Embedding(config.max_position_embeddings, width, key=keys[1], dtype=dtype)
        self.token_types = Embedding(types, width, key=keys[2], dtype=dtype) if types else None
        self.norm = LayerNorm(width, config.layer_norm_eps, dtype=dtype)
        self.blocks = tuple(
            EncoderBlock(
                width,
                config.num_attention_heads,
                config.intermediate_size,
                config.hidden_act,
                config.layer_norm_eps,
                key=keys[4 + layer],
                dtype=dtype,
            )
            for layer in range(config.num_hidden_layers)
        )
        self.pooler = Linear(width, width, key=keys[3], dtype=dtype) if config.pools else None

    def __call__(self, ids: ArrayLike, mask: ArrayLike | None = None, token_types: ArrayLike | None = None) -> Value:
        given = as_value(ids)
        if given.ndim != 2 or given.shape[1] > self.config.longest:
            raise shape_error(f"Encoder: ids are [B, T] with T up to {self.config.longest}, got {given.type}")
        visible = None if mask is None else as_mask(mask, given.shape)
        x = self.tokens(given) + self.positions(self._positions(given))
        if self.token_types is not None:
            x = x + self.token_types(lnp.zeros_like(given) if token_types is None else token_types)
        x = self.norm(x)
        for block in self.blocks:
            x = block(x, visible)
        return x

    def pooled(self, hidden: ArrayLike) -> Value:
        """tanh of a linear layer of the first token, for classifiers: [B, T, hidden_size] to [B, hidden_size].

        Raises ValueError if the model was saved without this layer.
        """
        if self.pooler is None:
            raise ValueError("Encoder.pooled: this model has no pooling layer (config: add_pooling_layer is false)")
        return lnp.tanh(self.pooler(as_value(hidden)[:, 0]))

    def _positions(self, ids: Value) -> Value:
        if not self.config.counted_positions:
            return lnp.arange(ids.shape[1])
        padding: int = self.config.pad_token_id
        is_token = cast(ids != padding, int32)
        return lnp.cumsum(is_token, axis=1) * is_token + padding


def as_mask(mask: ArrayLike, shape: tuple[int, ...]) -> Value:
    """Which places hold tokens, bool [B, T], of a mask [B, T] or lengths [B]. Raises ShapeError for other shapes."""
    given = as_value(mask)
    if given.shape == shape:
        return given != 0
    if given.shape == shape[:1] and given.type.dtype.is_integer:
        return lnp.arange(shape[1]) < given[:, None]
    raise shape_error(f"mask: it must be {list(shape)}, or integer lengths {list(shape[:1])}, got {given.type}")
