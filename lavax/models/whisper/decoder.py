"""Whisper's decoder: text from the encoder's result, token by token."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.models.whisper.config import WhisperConfig
from lavax.models.whisper.layers import Attention, FeedForward
from lavax.nn.modules.cache import KeyValueCache
from lavax.nn.modules.linear import Embedding
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


class WhisperCache(Module):
    """What the decoder keeps: keys and values of each layer's own tokens and of the encoder's result.

    `lengths`, int32 [B], counts the tokens so far.
    """

    own: tuple[KeyValueCache, ...]
    heard: tuple[KeyValueCache, ...]
    lengths: Any


class DecoderBlock(Module):
    """Attention to the tokens before, to what was heard, and a feed-forward layer, each added to its input."""

    attention_norm: LayerNorm
    attention: Attention
    cross_attention_norm: LayerNorm
    cross_attention: Attention
    feed_forward_norm: LayerNorm
    feed_forward: FeedForward

    def __init__(self, config: WhisperConfig, *, key: ArrayLike, dtype: Any) -> None:
        width, heads, activation = config.d_model, config.decoder_attention_heads, config.activation_function
        keys = random.split(key, 3)
        self.attention_norm = LayerNorm(width, dtype=dtype)
        self.attention = Attention(width, heads, key=keys[0], dtype=dtype)
        self.cross_attention_norm = LayerNorm(width, dtype=dtype)
        self.cross_attention = Attention(width, heads, key=keys[1], dtype=dtype)
        self.feed_forward_norm = LayerNorm(width, dtype=dtype)
        self.feed_forward = FeedForward(width, config.decoder_ffn_dim, activation, key=keys[2], dtype=dtype)

    def __call__(self, x: Value, encoded: Value) -> Value:
        x = x + self.attention(self.attention_norm(x), is_causal=True)
        return self._heard(x, self.cross_attention.read(encoded))

    def extend(
        self, x: Value, own: KeyValueCache, heard: KeyValueCache, lengths: Value
    ) -> tuple[Value, KeyValueCache]:
        """The same for tokens that follow those cached in `own`."""
        attended, own = self.attention.extend(self.attention_norm(x), own, lengths)
        return self._heard(x + attended, heard), own

    def _heard(self, x: Value, heard: KeyValueCache) -> Value:
        x = x + self.cross_attention.attend(self.cross_attention_norm(x), heard)
        return x + self.feed_forward(self.feed_forward_norm(x))


class WhisperDecoder(Module):
    """`decoder(ids, encoded)`: integers [B, T] and [B, S, d_model] to hidden states [B, T, d_model]."""

    tokens: Embedding
    positions: Embedding
    blocks: tuple[DecoderBlock, ...]
    norm: LayerNorm
    longest: int = field(static=True)

    def __init__(self, config: WhisperConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        width = config.d_model
        keys = random.split(key, config.decoder_layers + 2)
        self.tokens = Embedding(config.vocab_size, width, key=keys[0], dtype=dtype)
        self.positions = Embedding(config.max_target_positions, width, key=keys[1], dtype=dtype)
        self.blocks = tuple(
            DecoderBlock(config, key=keys[2 + layer], dtype=dtype) for layer in range(config.decoder_layers)
        )
        self.norm = LayerNorm(width, dtype=dtype)
        self.longest = config.max_target_positions

    def __call__(self, ids: ArrayLike, encoded: ArrayLike) -> Value:
        given = self._checked(ids)
        x = self.tokens(given) + self.positions(lnp.arange(given.shape[1], dtype="int32"))
        for block in self.blocks:
            x = block(x, as_value(encoded))
        return self.norm(x)

    def empty_cache(self, encoded: ArrayLike, length: int, dtype: Any = None) -> WhisperCache:
        """Room for `length` tokens in each row, and the keys and values of the encoder's result."""
        heard = as_value(encoded)
        batch, width = heard.shape[0], heard.shape[-1]
        kind = self.norm.weight.dtype if dtype is None else dtype
        heads = [block.attention.heads for block in self.blocks]
        own = tuple(KeyValueCache.zeros(batch, length, count, width // count, kind) for count in heads)
        read = tuple(block.cross_attention.read(heard) for block in self.blocks)
        return WhisperCache(own, read, lnp.zeros(batch, "int32"))

    def extend(self, ids: ArrayLike, cache: WhisperCache) -> tuple[Value, WhisperCache]:
        """The states [B, T, d_model] of T more tokens in each row, and the cache with them."""
        given = self._checked(ids)
        places = lnp.expand_dims(cache.lengths, 1) + lnp.arange(given.shape[1], dtype="int32")
        x, filled = self.tokens(given) + self.positions(places), []
        for block, own, heard in zip(self.blocks, cache.own, cache.heard, strict=True):
            x, own = block.extend(x, own, heard, cache.lengths)
            filled.append(own)
        return self.norm(x), cache.replace(own=tuple(filled), lengths=cache.lengths + given.shape[1])

    def _checked(self, ids: ArrayLike) -> Value:
        given = as_value(ids)
        if given.ndim != 2 or given.shape[1] > self.longest:
            raise shape_error(f"Whisper: ids are [B, T] with T up to {self.longest}, got {given.type}")
        return given
