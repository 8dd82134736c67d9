"""Layers that normalise, with their learned scale and offset."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.nn.modules.module import Module, field
from lavax.nn.normalization import group_norm, layer_norm, rms_norm
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

__all__ = ["GroupNorm", "LayerNorm", "RMSNorm"]


class LayerNorm(Module):
    """`nn.layer_norm` over the last axis: [..., features] to [..., features]. `weight` starts at 1, `bias` at 0."""

    weight: Any
    bias: Any
    eps: float = field(static=True)

    def __init__(self, features: int, eps: float = 1e-5, bias: bool = True, *, dtype: Any = "float32") -> None:
        self.weight = lnp.ones(features, dtype)
        self.bias = lnp.zeros(features, dtype) if bias else None
        self.eps = eps

    def __call__(self, x: ArrayLike) -> Value:
        return layer_norm(x, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """`nn.rms_norm` over the last axis: [..., features] to [..., features]. `weight` starts at 1."""

    weight: Any
    eps: float = field(static=True)

    def __init__(self, features: int, eps: float = 1e-6, *, dtype: Any = "float32") -> None:
        self.weight = lnp.ones(features, dtype)
        self.eps = eps

    def __call__(self, x: ArrayLike) -> Value:
        return rms_norm(x, self.weight, self.eps)


class GroupNorm(Module):
    """`nn.group_norm`: [N, channels, ...] to the same. `weight` starts at 1, `bias` at 0."""

    weight: Any
    bias: Any
    groups: int = field(static=True)
    eps: float = field(static=True)

    def __init__(self, groups: int, channels: int, eps: float = 1e-5, *, dtype: Any = "float32") -> None:
        self.weight = lnp.ones(channels, dtype)
        self.bias = lnp.zeros(channels, dtype)
        self.groups, self.eps = groups, eps

    def __call__(self, x: ArrayLike) -> Value:
        return group_norm(x, self.groups, self.weight, self.bias, self.eps)
