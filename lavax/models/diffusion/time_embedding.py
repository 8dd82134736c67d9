"""The time of a noisy image as a vector."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.ir.types import float32
from lavax.nn.activations import silu
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value


def sinusoids(
    times: ArrayLike, width: int, *, cosines_first: bool = True, shift: float = 0, period: float = 10000.0
) -> Value:
    """Cosines and sines of `times` [N] at width / 2 falling frequencies: float32 [N, width].

    Frequency k is period^(-k / (width / 2 - shift)), as in Denoising Diffusion Probabilistic Models (Ho et al. 2020).
    """
    half = width // 2
    frequencies = lnp.exp(lnp.arange(half, dtype=float32) * (-math.log(period) / (half - shift)))
    angles = lnp.expand_dims(cast(as_value(times), float32), -1) * frequencies
    parts = [lnp.cos(angles), lnp.sin(angles)]
    return lnp.concatenate(parts if cosines_first else parts[::-1], axis=-1)


class TimeEmbedding(Module):
    """Two linear layers with SiLU between them: [N, features] to [N, width]."""

    first: Linear
    second: Linear

    def __init__(self, features: int, width: int, *, key: ArrayLike, dtype: Any = "float32") -> None:
        for_first, for_second = random.split(key)
        self.first = Linear(features, width, key=for_first, dtype=dtype)
        self.second = Linear(width, width, key=for_second, dtype=dtype)

    def __call__(self, x: ArrayLike) -> Value:
        return self.second(silu(self.first(x)))
