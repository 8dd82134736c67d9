"""The block of transformers that normalise before each layer: vision transformers, and both towers of CLIP."""
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


class PreNormBlock(Module):
    """Attention and a feed-forward layer, each normalised before and added to its input: [N, T, width] to the same.

    Queries, keys and values have biases if `bias`. Raises ValueError if `heads` does not divide `width`, or lavax has
    no `activation` of that name.
    """

    norm1: LayerNorm
    query: Linear
    key: Linear
    value: Linear
    out: Linear
    norm2: LayerNorm
    expand: Linear
    contract: Linear
    heads: int = field(static=True)
    activation: str = field(static=True)
    is_causal: bool = field(static=True)

    def __init__(
        self,
        width: int,
        heads: int,
        inner: int,
        activation: str,
        eps: float,
        bias: bool = True,
        is_causal: bool = False,
        *,
        key: ArrayLike,
        dtype: Any,
    ) -> None:
        activation_of(activation)  # an unknown one is named now
        if width % heads:
            raise ValueError(f"config.json: num_attention_heads={heads} must divide hidden_size={width}")
        keys = random.split(key, 6)
        self.norm1, self.norm2 = (LayerNorm(width, eps, dtype=dtype) for _ in range(2))
        self.query, self.key, self.value = (Linear(width, width, bias, key=each, dtype=dtype) for each in keys[:3])
        self.out = Linear(width, width, key=keys[3], dtype=dtype)
        self.expand = Linear(width, inner, key=keys[4], dtype=dtype)
        self.contract = Linear(inner, width, key=keys[5], dtype=dtype)
        self.heads, self.activation, self.is_causal = heads, activation, is_causal

    def __call__(self, x: Value) -> Value:
        normal, by_head = self.norm1(x), (*x.shape[:-1], self.heads, -1)
        query, key, value = (lnp.reshape(layer(normal), by_head) for layer in (self.query, self.key, self.value))
        attended = dot_product_attention(query, key, value, is_causal=self.is_causal)
        x = x + self.out(lnp.reshape(attended, x.shape))
        return x + self.contract(activation_of(self.activation)(self.expand(self.norm2(x))))
