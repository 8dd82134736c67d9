"""Layers of one array: linear and bilinear maps, and tables of embeddings."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.nn.linear import bilinear, embedding, linear
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = ["Bilinear", "Embedding", "Linear"]


class Linear(Module):
    """x·weightᵀ + bias on the last axis: [..., in_features] to [..., out_features]; any leading axes, or none.

    `weight` is [out_features, in_features] as in PyTorch and Equinox, `bias` [out_features], or None without one. Both
    are drawn uniformly from ±1/√in_features.
    """

    weight: Any
    bias: Any

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, *, key: ArrayLike, dtype: Any = "float32"
    ) -> None:
        bound = max(in_features, 1) ** -0.5
        for_weight, for_bias = random.split(key)
        self.weight = random.uniform(for_weight, (out_features, in_features), dtype, -bound, bound)
        self.bias = random.uniform(for_bias, (out_features,), dtype, -bound, bound) if bias else None

    def __call__(self, x: ArrayLike) -> Value:
        return linear(x, self.weight, self.bias)


class Bilinear(Module):
    """`nn.bilinear`: [..., in1_features] and [..., in2_features] to [..., out_features].

    `weight` is [out_features, in1_features, in2_features], `bias` [out_features] or None; both are drawn uniformly from
    ±1/√in1_features.
    """

    weight: Any
    bias: Any

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        bound = max(in1_features, 1) ** -0.5
        for_weight, for_bias = random.split(key)
        self.weight = random.uniform(for_weight, (out_features, in1_features, in2_features), dtype, -bound, bound)
        self.bias = random.uniform(for_bias, (out_features,), dtype, -bound, bound) if bias else None

    def __call__(self, x1: ArrayLike, x2: ArrayLike) -> Value:
        return bilinear(x1, x2, self.weight, self.bias)


class Embedding(Module):
    """Rows of a table by their index: integers [...] to [..., features].

    `weight` is [count, features], drawn from the normal distribution. `attend` gives the products with all rows, for
    models whose output layer is the same table. The row `padding_idx`, of tokens that fill batches, starts at 0 and
    gets no gradients.
    """

    weight: Any
    padding_idx: int | None = field(static=True, default=None)

    def __init__(
        self, count: int, features: int, padding_idx: int | None = None, *, key: ArrayLike, dtype: Any = "float32"
    ) -> None:
        weight = random.normal(key, (count, features), dtype)
        if padding_idx is not None:
            if not -count <= padding_idx < count:
                raise ValueError(f"Embedding: padding_idx={padding_idx} is none of {count} rows")
            weight = lnp.where(lnp.arange(count)[:, None] == padding_idx % count, 0.0, weight)
        self.weight, self.padding_idx = weight, padding_idx

    def __call__(self, indices: ArrayLike) -> Value:
        return embedding(indices, self.weight, self.padding_idx)

    def attend(self, x: ArrayLike) -> Value:
        """x·weightᵀ: [..., features] to [..., count]."""
        return lnp.matmul(x, lnp.matrix_transpose(self.weight))
