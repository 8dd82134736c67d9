"""Normalisation, as functions; statistics are those of float32 sums, also for low-precision inputs."""
from __future__ import annotations

from collections.abc import Sequence

import lavax.numpy as lnp
from lavax.ir.types import bfloat16, float16, float32
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = ["group_norm", "layer_norm", "rms_norm"]


def _affine(normal: Value, weight: ArrayLike | None, bias: ArrayLike | None) -> Value:
    scaled = normal if weight is None else normal * weight
    return scaled if bias is None else scaled + bias


def _widened(x: Value) -> Value:
    """Statistics need float32 at least."""
    return cast(x, float32) if x.type.dtype in (float16, bfloat16) else x


def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
    axis: int | Sequence[int] = -1,
) -> Value:
    """(x - mean) / √(variance + eps) · weight + bias, over `axis` (Ba, Kiros and Hinton 2016).

    The variance divides by the number of elements. `weight` and `bias` broadcast to `x`; None leaves them out.
    """
    given = as_value(x)
    wide = _widened(given)
    centred = wide - lnp.mean(wide, axis=axis, keepdims=True)
    normal = centred * lnp.rsqrt(lnp.mean(lnp.square(centred), axis=axis, keepdims=True) + eps)
    return _affine(cast(normal, given.type.dtype), weight, bias)


def rms_norm(
    x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-6, axis: int | Sequence[int] = -1
) -> Value:
    """x / √(mean of squares + eps) · weight, over `axis` (Zhang and Sennrich 2019)."""
    given = as_value(x)
    wide = _widened(given)
    normal = wide * lnp.rsqrt(lnp.mean(lnp.square(wide), axis=axis, keepdims=True) + eps)
    return _affine(cast(normal, given.type.dtype), weight, None)


def group_norm(
    x: ArrayLike, groups: int, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-5
) -> Value:
    """`layer_norm` within each of `groups` equal groups of channels (Wu and He 2018).

    `x` is [N, C, ...], `weight` and `bias` are [C]. Raises ValueError if `groups` does not divide C.
    """
    given = as_value(x)
    count, channels, *window = given.shape
    if groups < 1 or channels % groups:
        raise ValueError(f"group_norm: {groups} groups do not divide the {channels} channels of {given.type}")
    normal = lnp.reshape(layer_norm(lnp.reshape(given, (count, groups, -1)), eps=eps), given.shape)
    per_channel = (channels, *(1 for _ in window))
    return _affine(
        normal,
        None if weight is None else lnp.reshape(weight, per_channel),
        None if bias is None else lnp.reshape(bias, per_channel),
    )
