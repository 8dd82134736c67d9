"""Layers of one matrix: linear maps and tables of embeddings."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.nn.modules.module import Module
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = ["Embedding", "Linear"]


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
        product = lnp.matmul(x, lnp.matrix_transpose(self.weight))
        return product if self.bias is None else product + self.bias


class Embedding(Module):
    """Rows of a table by their index: integers [...] to [..., features].

    `weight` is [count, features], drawn from the normal distribution. `attend` gives the products with all rows, for
    models whose output layer is the same table.
    """

    weight: Any

    def __init__(self, count: int, features: int, *, key: ArrayLike, dtype: Any = "float32") -> None:
        self.weight = random.normal(key, (count, features), dtype)

    def __call__(self, indices: ArrayLike) -> Value:
        return lnp.take(self.weight, indices, axis=0)

    def attend(self, x: ArrayLike) -> Value:
        """x·weightᵀ: [..., features] to [..., count]."""
        return lnp.matmul(x, lnp.matrix_transpose(self.weight))
