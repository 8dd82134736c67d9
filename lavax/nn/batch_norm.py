"""Batch normalisation, as functions (Ioffe and Szegedy 2015)."""
from __future__ import annotations

import lavax.numpy as lnp
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy._core.promotion import averaging
from lavax.tracer.values.value import Value

__all__ = ["batch_norm", "batch_statistics"]


def _per_channel(x: Value, given: ArrayLike, name: str) -> Value:
    value = cast(as_floating(given), averaging(x.type.dtype))
    if value.shape != (x.shape[1],):
        count = x.shape[1]
        raise shape_error(f"batch_norm: {name} must be [{count}], one for each channel of {x.type}, got {value.type}")
    return lnp.reshape(value, (-1, *(1 for _ in x.shape[2:])))


def _channels(name: str, x: ArrayLike) -> Value:
    value = as_floating(x)
    if value.ndim < 2:
        raise shape_error(f"{name}: x is [N, C, ...], got {value.type}")
    return value


def batch_statistics(x: ArrayLike) -> tuple[Value, Value]:
    """Mean and variance [C] of the channels of `x` [N, C, ...], over all other axes.

    The variance divides by the number of elements. Both are float32 for 16-bit inputs.
    """
    value = _channels("batch_statistics", x)
    wide = cast(value, averaging(value.type.dtype))
    axes = (0, *range(2, wide.ndim))
    mean = lnp.mean(wide, axis=axes, keepdims=True)
    variance = lnp.mean(lnp.square(wide - mean), axis=axes)
    return lnp.reshape(mean, (-1,)), variance


def batch_norm(
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Value:
    """(x - mean) / √(variance + eps) · weight + bias, with one number [C] for each channel of `x` [N, C, ...].

    Statistics are those of `batch_statistics`, or running ones. 16-bit inputs are computed in float32.
    """
    if isinstance(eps, bool):
        raise TypeError(f"batch_norm: eps is a number, got {eps}; in training, give what batch_statistics returns")
    value = _channels("batch_norm", x)
    wide = cast(value, averaging(value.type.dtype))
    scale = lnp.rsqrt(_per_channel(value, variance, "variance") + eps)
    if weight is not None:
        scale = scale * _per_channel(value, weight, "weight")
    made = (wide - _per_channel(value, mean, "mean")) * scale
    if bias is not None:
        made = made + _per_channel(value, bias, "bias")
    return cast(made, value.type.dtype)
