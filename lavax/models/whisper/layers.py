"""Attention and the feed-forward layer of Whisper's blocks."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.models.activations import activation_of
from lavax.nn.attention import dot_product_attention
from lavax.nn.modules.cache import KeyValueCache
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


class Attention(Module):
    """Attention of [B, T, width] to itself, or to the encoder's result; keys have no bias."""

    query: Linear
    key: Linear
    value: Linear
    out: Linear
    heads: int = field(static=True)

    def __init__(self, width: int, heads: int, *, key: ArrayLike, dtype: Any) -> None:
        keys = random.split(key, 4)
        self.query = Linear(width, width, key=keys[0], dtype=dtype)
        self.key = Linear(width, width, bias=False, key=keys[1], dtype=dtype)
        self.value = Linear(width, width, key=keys[2], dtype=dtype)
        self.out = Linear(width, width, key=keys[3], dtype=dtype)
        self.heads = heads

    def __call__(self, x: Value, *, is_causal: bool = False) -> Value:
        """All tokens see one another, or with `is_causal` those before them."""
        held = self.read(x)
        made = dot_product_attention(self._by_head(self.query(x)), held.keys, held.values, is_causal=is_causal)
        return self._joined(made)

    def read(self, x: Value) -> KeyValueCache:
        """The keys and values of [B, S, width]."""
        return KeyValueCache(self._by_head(self.key(x)), self._by_head(self.value(x)))

    def attend(self, x: Value, held: KeyValueCache) -> Value:
        """Attention to all keys and values of a cache."""
        return self._joined(dot_product_attention(self._by_head(self.query(x)), held.keys, held.values))

    def extend(self, x: Value, cache: KeyValueCache, lengths: Value) -> tuple[Value, KeyValueCache]:
        """Attention to what is cached and, up to each one's own position, to the new tokens, which are then cached."""
        new = self.read(x)
        cache = cache.append(new.keys, new.values, lengths)
        return self._joined(cache.attend(self._by_head(self.query(x)), lengths)), cache

    def _by_head(self, x: Value) -> Value:
        return lnp.reshape(x, (*x.shape[:-1], self.heads, -1))

    def _joined(self, x: Value) -> Value:
        return self.out(lnp.reshape(x, (*x.shape[:-2], -1)))


class FeedForward(Module):
    """Two linear layers with an activation between them."""

    expand: Linear
    contract: Linear
    activation: str = field(static=True)

    def __init__(self, width: int, inner: int, activation: str, *, key: ArrayLike, dtype: Any) -> None:
        keys = random.split(key)
        self.expand = Linear(width, inner, key=keys[0], dtype=dtype)
        self.contract = Linear(inner, width, key=keys[1], dtype=dtype)
        self.activation = activation

    def __call__(self, x: Value) -> Value:
        return self.contract(activation_of(self.activation)(self.expand(x)))
