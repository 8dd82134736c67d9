"""Whisper's encoder: spectrograms of 30 seconds to vectors, 50 a second."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax import random
from lavax.models.whisper.config import WhisperConfig
from lavax.models.whisper.layers import Attention, FeedForward
from lavax.nn.activations import gelu
from lavax.nn.modules.convolution import Conv1d
from lavax.nn.modules.module import Module, field
from lavax.nn.modules.normalization import LayerNorm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value


class EncoderBlock(Module):
    """Attention and a feed-forward layer, each after a normalisation and added to its input."""

    attention_norm: LayerNorm
    attention: Attention
    feed_forward_norm: LayerNorm
    feed_forward: FeedForward

    def __init__(self, config: WhisperConfig, *, key: ArrayLike, dtype: Any) -> None:
        width, activation = config.d_model, config.activation_function
        keys = random.split(key)
        self.attention_norm = LayerNorm(width, dtype=dtype)
        self.attention = Attention(width, config.encoder_attention_heads, key=keys[0], dtype=dtype)
        self.feed_forward_norm = LayerNorm(width, dtype=dtype)
        self.feed_forward = FeedForward(width, config.encoder_ffn_dim, activation, key=keys[1], dtype=dtype)

    def __call__(self, x: Value) -> Value:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class WhisperEncoder(Module):
    """`encoder(spectrograms)`: [B, num_mel_bins, 2·max_source_positions] to [B, max_source_positions, d_model].

    Two convolutions, the second with a stride of 2, sinusoids for positions, and blocks in which all tokens see one
    another, in the dtype of the weights. The positions are not trained.
    """

    first: Conv1d
    second: Conv1d
    positions: Any
    blocks: tuple[EncoderBlock, ...]
    norm: LayerNorm
    config: WhisperConfig = field(static=True)

    def __init__(self, config: WhisperConfig, *, key: ArrayLike, dtype: Any = "float32") -> None:
        config.check()
        width = config.d_model
        keys = random.split(key, config.encoder_layers + 2)
        self.config = config
        self.first = Conv1d(config.num_mel_bins, width, 3, padding=1, key=keys[0], dtype=dtype)
        self.second = Conv1d(width, width, 3, stride=2, padding=1, key=keys[1], dtype=dtype)
        self.positions = lnp.asarray(sinusoids(config.max_source_positions, width), dtype)
        self.blocks = tuple(
            EncoderBlock(config, key=keys[2 + layer], dtype=dtype) for layer in range(config.encoder_layers)
        )
        self.norm = LayerNorm(width, dtype=dtype)

    def __call__(self, spectrograms: ArrayLike) -> Value:
        given, expected = as_value(spectrograms), (self.config.num_mel_bins, self.config.frames)
        if given.ndim != 3 or given.shape[1:] != expected:
            raise shape_error(f"WhisperEncoder: spectrograms are [B, {expected[0]}, {expected[1]}], got {given.type}")
        x = cast(given, as_value(self.positions).type.dtype)
        x = gelu(self.second(gelu(self.first(x), approximate=False)), approximate=False)
        x = lnp.matrix_transpose(x) + stop_gradient(self.positions)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


def sinusoids(length: int, width: int) -> np.ndarray:
    """Sines, then cosines, of positions at frequencies from 1 to 1/10,000: float32 [length, width].

    Vaswani et al., "Attention Is All You Need" (2017), section 3.5, but not interleaved.
    """
    frequencies = np.exp(-math.log(10000) / (width // 2 - 1) * np.arange(width // 2))
    angles = np.arange(length)[:, None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
