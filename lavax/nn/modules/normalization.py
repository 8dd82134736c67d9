"""Layers that normalise, with their learned scale and offset."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.nn.modules.module import Module, field
from lavax.nn.normalization import group_norm, instance_norm, layer_norm, rms_norm
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value

__all__ = ["GroupNorm", "InstanceNorm", "LayerNorm", "RMSNorm"]


class LayerNorm(Module):
    """`nn.layer_norm` over the last axis: [..., features] to [..., features]. `weight` starts at 1, `bias` at 0.

    `features` may be a shape, such as (C, H, W): then all these axes are normalised together. Without `affine` there is
    neither weight nor bias.
    """

    weight: Any
    bias: Any
    eps: float = field(static=True)
    shape: tuple[int, ...] = field(static=True)

    def __init__(
        self,
        features: int | Sequence[int],
        eps: float = 1e-5,
        bias: bool = True,
        affine: bool = True,
        *,
        dtype: Any = "float32",
    ) -> None:
        self.shape = _shape(features)
        self.weight = lnp.ones(self.shape, dtype) if affine else None
        self.bias = lnp.zeros(self.shape, dtype) if affine and bias else None
        self.eps = eps

    def __call__(self, x: ArrayLike) -> Value:
        value = _with_shape("LayerNorm", x, self.shape)
        return layer_norm(value, self.weight, self.bias, self.eps, _last_axes(self.shape))


def _shape(features: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(features) if isinstance(features, Sequence) else (features,)


def _last_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


def _with_shape(name: str, x: ArrayLike, shape: tuple[int, ...]) -> Value:
    value = as_value(x)
    if value.shape[-len(shape) :] != shape:
        raise shape_error(f"{name}: x is [..., {', '.join(map(str, shape))}], got {value.type}")
    return value


class RMSNorm(Module):
    """`nn.rms_norm` over the last axis: [..., features] to [..., features]. `weight` starts at 1.

    `features` may be a shape, and `affine` leaves the weight out, as in `LayerNorm`.
    """

    weight: Any
    eps: float = field(static=True)
    shape: tuple[int, ...] = field(static=True)

    def __init__(
        self, features: int | Sequence[int], eps: float = 1e-6, affine: bool = True, *, dtype: Any = "float32"
    ) -> None:
        self.shape = _shape(features)
        self.weight = lnp.ones(self.shape, dtype) if affine else None
        self.eps = eps

    def __call__(self, x: ArrayLike) -> Value:
        return rms_norm(_with_shape("RMSNorm", x, self.shape), self.weight, self.eps, _last_axes(self.shape))


class GroupNorm(Module):
    """`nn.group_norm`: [N, channels, ...] to the same.

    `weight` starts at 1, `bias` at 0; without `affine` there is neither.
    """

    weight: Any
    bias: Any
    groups: int = field(static=True)
    eps: float = field(static=True)

    def __init__(
        self, groups: int, channels: int, eps: float = 1e-5, affine: bool = True, *, dtype: Any = "float32"
    ) -> None:
        self.weight = lnp.ones(channels, dtype) if affine else None
        self.bias = lnp.zeros(channels, dtype) if affine else None
        self.groups, self.eps = groups, eps

    def __call__(self, x: ArrayLike) -> Value:
        return group_norm(x, self.groups, self.weight, self.bias, self.eps)


class InstanceNorm(Module):
    """`nn.instance_norm`: [N, channels, ...] to the same; with `affine`, `weight` starts at 1 and `bias` at 0."""

    weight: Any
    bias: Any
    eps: float = field(static=True)

    def __init__(self, channels: int, eps: float = 1e-5, affine: bool = False, *, dtype: Any = "float32") -> None:
        self.weight = lnp.ones(channels, dtype) if affine else None
        self.bias = lnp.zeros(channels, dtype) if affine else None
        self.eps = eps

    def __call__(self, x: ArrayLike) -> Value:
        return instance_norm(x, self.weight, self.bias, self.eps)
