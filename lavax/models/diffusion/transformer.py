"""Transformers over the pixels of an image, which attend to the tokens of a text."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.nn.activations import gelu
from lavax.nn.attention import dot_product_attention
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import GroupNorm, LayerNorm
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value


class Attention(Module):
    """Attention of [N, T, features] to itself, or to a context [N, S, context]: [N, T, features]."""

    query: Linear
    key: Linear
    value: Linear
    out: Linear
    heads: int = field(static=True)

    def __init__(
        self,
        features: int,
        context: int,
        heads: int,
        *,
        bias: bool = False,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        if features % heads:
            raise ValueError(f"Attention: {heads} heads do not divide {features} features")
        keys = random.split(key, 4)
        self.query = Linear(features, features, bias, key=keys[0], dtype=dtype)
        self.key = Linear(context, features, bias, key=keys[1], dtype=dtype)
        self.value = Linear(context, features, bias, key=keys[2], dtype=dtype)
        self.out = Linear(features, features, key=keys[3], dtype=dtype)
        self.heads = heads

    def __call__(self, x: Value, context: ArrayLike | None = None) -> Value:
        source = x if context is None else context
        parts = [self._by_head(each) for each in (self.query(x), self.key(source), self.value(source))]
        return self.out(lnp.reshape(dot_product_attention(*parts), x.shape))

    def _by_head(self, x: Value) -> Value:
        return lnp.reshape(x, (*x.shape[:2], self.heads, -1))


class FeedForward(Module):
    """Two linear layers with a gated GELU between them (GEGLU, Shazeer 2020): [..., features] to the same."""

    expand: Linear
    contract: Linear

    def __init__(self, features: int, *, key: ArrayLike, dtype: Any = "float32") -> None:
        for_expand, for_contract = random.split(key)
        self.expand = Linear(features, 8 * features, key=for_expand, dtype=dtype)
        self.contract = Linear(4 * features, features, key=for_contract, dtype=dtype)

    def __call__(self, x: ArrayLike) -> Value:
        content, gate = lnp.split(self.expand(x), 2, axis=-1)
        return self.contract(content * gelu(gate, approximate=False))


class TransformerBlock(Module):
    """Attention to itself, attention to the context, and a feed-forward layer, each added to its input."""

    norm1: LayerNorm
    self_attention: Attention
    norm2: LayerNorm
    cross_attention: Attention
    norm3: LayerNorm
    feed_forward: FeedForward

    def __init__(
        self, features: int, context: int, heads: int, *, key: ArrayLike, dtype: Any = "float32"
    ) -> None:
        keys = random.split(key, 3)
        self.norm1, self.norm2, self.norm3 = (LayerNorm(features, dtype=dtype) for _ in range(3))
        self.self_attention = Attention(features, features, heads, key=keys[0], dtype=dtype)
        self.cross_attention = Attention(features, context, heads, key=keys[1], dtype=dtype)
        self.feed_forward = FeedForward(features, key=keys[2], dtype=dtype)

    def __call__(self, x: Value, context: ArrayLike) -> Value:
        x = x + self.self_attention(self.norm1(x))
        x = x + self.cross_attention(self.norm2(x), context)
        return x + self.feed_forward(self.norm3(x))


class SpatialTransformer(Module):
    """Transformer blocks over the pixels of [N, C, H, W], added to it. Pixels get no embedding of their position.

    The layers before and after the blocks are 1 x 1 convolutions, or with `linear` linear layers: the same function,
    of weights in another shape.
    """

    norm: GroupNorm
    project_in: Conv2d | Linear
    blocks: tuple[TransformerBlock, ...]
    project_out: Conv2d | Linear

    def __init__(
        self,
        channels: int,
        context: int,
        heads: int,
        layers: int,
        *,
        groups: int,
        linear: bool,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        keys = random.split(key, layers + 2)

        def projection(key: Value) -> Conv2d | Linear:
            if linear:
                return Linear(channels, channels, key=key, dtype=dtype)
            return Conv2d(channels, channels, 1, key=key, dtype=dtype)

        self.norm = GroupNorm(groups, channels, 1e-6, dtype=dtype)
        self.project_in = projection(keys[0])
        self.blocks = tuple(TransformerBlock(channels, context, heads, key=each, dtype=dtype) for each in keys[2:])
        self.project_out = projection(keys[1])

    def __call__(self, x: Value, context: ArrayLike) -> Value:
        hidden = _applied(self.project_in, pixels(self.norm(x)))
        for block in self.blocks:
            hidden = block(hidden, context)
        return x + lnp.reshape(lnp.matrix_transpose(_applied(self.project_out, hidden)), x.shape)


def pixels(x: Value) -> Value:
    """[N, C, H, W] as [N, H·W, C]."""
    return lnp.matrix_transpose(lnp.reshape(x, (*x.shape[:2], -1)))


def _applied(layer: Conv2d | Linear, x: Value) -> Value:
    """A linear layer, or a 1 x 1 convolution, of the last axis."""
    if not isinstance(layer, Conv2d):
        return layer(x)
    features, channels, *_ = layer.weight.shape
    made: Value = lnp.matmul(x, lnp.matrix_transpose(lnp.reshape(layer.weight, (features, channels)))) + layer.bias
    return made
