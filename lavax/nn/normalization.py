"""Normalisation, as functions; statistics are those of float32 sums, also for low-precision inputs."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

import lavax.numpy as lnp
from lavax.ir.types import bfloat16, float16, float32
from lavax.nn.pooling import avg_pool
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, as_value, cast
from lavax.tracer.values.value import Value

__all__ = ["group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


def _affine(name: str, normal: Value, weight: ArrayLike | None, bias: ArrayLike | None) -> Value:
    if isinstance(weight, (tuple, list)):
        raise TypeError(f"{name}: weight is an array, got {weight}; axes to normalise together are given by axis=")
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
    return _affine("layer_norm", cast(normal, given.type.dtype), weight, bias)


def rms_norm(
    x: ArrayLike, weight: ArrayLike | None = None, eps: float = 1e-6, axis: int | Sequence[int] = -1
) -> Value:
    """x / √(mean of squares + eps) · weight, over `axis` (Zhang and Sennrich 2019)."""
    given = as_value(x)
    wide = _widened(given)
    normal = wide * lnp.rsqrt(lnp.mean(lnp.square(wide), axis=axis, keepdims=True) + eps)
    return _affine("rms_norm", cast(normal, given.type.dtype), weight, None)


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
    in_groups = lnp.reshape(given, (count, groups, channels // groups * prod(window)))
    normal = lnp.reshape(layer_norm(in_groups, eps=eps), given.shape)
    per_channel = (channels, *(1 for _ in window))
    return _affine(
        "group_norm",
        normal,
        None if weight is None else lnp.reshape(weight, per_channel),
        None if bias is None else lnp.reshape(bias, per_channel),
    )


def instance_norm(
    x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-5
) -> Value:
    """`layer_norm` within each channel of each example (Ulyanov et al. 2016).

    `x` is [N, C, ...], `weight` and `bias` are [C].
    """
    given = as_value(x)
    if given.ndim < 3:
        raise shape_error(f"instance_norm: x is [N, C, ...] with a spatial axis at least, got {given.type}")
    return group_norm(given, given.shape[1], weight, bias, eps)


def local_response_norm(
    x: ArrayLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Value:
    """x / (k + alpha · the mean of squares of `size` neighbouring channels)^beta (Krizhevsky et al. 2012, section 3.3).

    `x` is [N, C, ...]. Channels beyond the ends count as zeros. As in PyTorch, size // 2 of the channels come before.
    """
    given = as_value(x)
    if given.ndim < 2 or size < 1:
        raise shape_error(f"local_response_norm: x is [N, C, ...] and size at least 1, got {given.type} and {size}")
    wide = _widened(given)
    padding = (size // 2, (size - 1) // 2)
    squares = avg_pool(lnp.square(wide), (size,), padding=[padding], axes=(1,))
    return cast(wide * lnp.power(k + alpha * squares, -beta), given.type.dtype)
