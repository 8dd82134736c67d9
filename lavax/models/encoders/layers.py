"""The block of BERT-style encoders: attention among all tokens and a feed-forward layer, normalised after each."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.models.activations import activation_of
from lavax.nn.attention import dot_product_attention
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


class SelfAttention(Module):
    """Attention of [B, T, width] to its own tokens, where `visible` [B, T] is true."""

    query: Linear
    key: Linear
    value: Linear
    out: Linear
    heads: int = field(static=True)

    def __init__(self, width: int, heads: int, *, key: ArrayLike, dtype: Any) -> None:
        keys = random.split(key, 4)
        self.query, self.key, self.value, self.out = (Linear(width, width, key=each, dtype=dtype) for each in keys)
        self.heads = heads

    def __call__(self, x: Value, visible: Value | None) -> Value:
        shape = (*x.shape[:-1], self.heads, -1)
        query, key, value = (lnp.reshape(layer(x), shape) for layer in (self.query, self.key, self.value))
        mask = None if visible is None else visible[:, None, None, :]
        return self.out(lnp.reshape(dot_product_attention(query, key, value, mask=mask), x.shape))


class EncoderBlock(Module):
    """[B, T, width] to the same."""

    attention: SelfAttention
    attention_norm: LayerNorm
    expand: Linear
    contract: Linear
    feed_forward_norm: LayerNorm
    activation: str = field(static=True)

    def __init__(
        self, width: int, heads: int, inner: int, activation: str, eps: float, *, key: ArrayLike, dtype: Any
    ) -> None:
        keys = random.split(key, 3)
        self.attention = SelfAttention(width, heads, key=keys[0], dtype=dtype)
        self.attention_norm = LayerNorm(width, eps, dtype=dtype)
        self.expand = Linear(width, inner, key=keys[1], dtype=dtype)
        self.contract = Linear(inner, width, key=keys[2], dtype=dtype)
        self.feed_forward_norm = LayerNorm(width, eps, dtype=dtype)
        self.activation = activation

    def __call__(self, x: Value, visible: Value | None = None) -> Value:
        x = self.attention_norm(x + self.attention(x, visible))
        return self.feed_forward_norm(x + self.contract(activation_of(self.activation)(self.expand(x))))
