"""Normalisations."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import nn
from lavax.onnx.operators.operator import REQUIRED, Call, Operator, converted


def _by_channel(x: Any, rank: int) -> Any:
    return x.reshape(-1, *([1] * (rank - 2)))


def _batch_norm(call: Call, x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    used, spread = mean, variance
    if call.training_mode:
        axes = tuple(axis for axis in range(x.ndim) if axis != 1)
        used, spread = lnp.mean(x, axis=axes), lnp.var(x, axis=axes)
    factor = converted(scale, spread.dtype) / lnp.sqrt(spread + call.epsilon)
    shift = converted(bias, spread.dtype) - used * factor
    if call.training_mode:  # centred first: the mean of the data may be far from 0
        centred = (x - _by_channel(converted(used, x.dtype), x.ndim)) * _by_channel(factor, x.ndim)
        made = converted(centred + _by_channel(bias, x.ndim), x.dtype)
        kept = call.momentum
        return made, mean * kept + used * (1 - kept), variance * kept + spread * (1 - kept)
    return converted(x * _by_channel(factor, x.ndim) + _by_channel(shift, x.ndim), x.dtype)


def _instance_norm(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    axes = tuple(range(2, x.ndim))
    centred = x - lnp.mean(x, axis=axes, keepdims=True)
    spread = lnp.sqrt(lnp.mean(centred * centred, axis=axes, keepdims=True) + call.epsilon)
    return centred / spread * _by_channel(scale, x.ndim) + _by_channel(bias, x.ndim)


def _wide(call: Call, x: Any) -> Any:
    """The input in the precision of `stash_type`: float32 unless it is wider, or the input's own."""
    return converted(x, "float32") if call.stash_type == 1 and x.dtype.itemsize < 4 else x


def layer_norm(call: Call, x: Any, scale: Any, bias: Any = None) -> Any:
    """Ba et al. 2016, over the axes from `axis`; also the mean and the inverse standard deviation."""
    wide = _wide(call, x)
    axes = tuple(range(call.axis % x.ndim, x.ndim))
    mean = lnp.mean(wide, axis=axes, keepdims=True)
    centred = wide - mean
    inverse = 1 / lnp.sqrt(lnp.mean(centred * centred, axis=axes, keepdims=True) + call.epsilon)
    normal = converted(centred * inverse, x.dtype)
    made = normal * scale if bias is None else normal * scale + bias
    return (made, mean, inverse)[: max(call.outputs, 1)]


def rms_norm(call: Call, x: Any, scale: Any) -> Any:
    """Zhang and Sennrich 2019, over the axes from `axis`."""
    wide = _wide(call, x)
    axes = tuple(range(call.axis % x.ndim, x.ndim))
    root = lnp.sqrt(lnp.mean(wide * wide, axis=axes, keepdims=True) + call.epsilon)
    return converted(wide / root, x.dtype) * scale


def _group_norm(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    groups = call.num_groups
    wide = _wide(call, x).reshape(x.shape[0], groups, -1)
    centred = wide - lnp.mean(wide, axis=2, keepdims=True)
    spread = lnp.sqrt(lnp.mean(centred * centred, axis=2, keepdims=True) + call.epsilon)
    normal = converted(centred / spread, x.dtype)
    if scale.shape[0] == groups != x.shape[1]:  # version 18: a number for each group
        return (normal * scale.reshape(-1, 1) + bias.reshape(-1, 1)).reshape(x.shape)
    return normal.reshape(x.shape) * _by_channel(scale, x.ndim) + _by_channel(bias, x.ndim)


def _lrn(call: Call, x: Any) -> Any:
    before = (call.size - 1) // 2
    squares = nn.sum_pool(
        x * x, window_shape=(call.size,), strides=1, padding=[(before, call.size - 1 - before)], axes=(1,)
    )
    return x / (call.bias + call.alpha / call.size * squares) ** call.beta


def _lp_norm(call: Call, x: Any) -> Any:
    if call.p == 1:
        length = lnp.sum(lnp.abs(x), axis=call.axis, keepdims=True)
    else:
        length = lnp.sqrt(lnp.sum(x * x, axis=call.axis, keepdims=True))
    return lnp.where(length == 0, 0, x / lnp.where(length == 0, 1, length)).astype(x.dtype)


def _mean_variance(call: Call, x: Any) -> Any:
    centred = x - lnp.mean(x, axis=call.axes, keepdims=True)
    return centred / (lnp.sqrt(lnp.mean(centred * centred, axis=call.axes, keepdims=True)) + 1e-9)


_EPSILON = {"epsilon": 1e-5}
LAYER_NORM = {**_EPSILON, "axis": -1, "stash_type": 1}

OPERATORS = (
    Operator(
        "BatchNormalization", _batch_norm, {**_EPSILON, "momentum": 0.9, "training_mode": 0, "spatial": 1}, since=9
    ),
    Operator("GroupNormalization", _group_norm, {**_EPSILON, "num_groups": REQUIRED, "stash_type": 1}),
    Operator("InstanceNormalization", _instance_norm, _EPSILON, since=6),
    Operator("LRN", _lrn, {"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": REQUIRED}),
    Operator("LayerNormalization", layer_norm, LAYER_NORM),
    Operator("LpNormalization", _lp_norm, {"axis": -1, "p": 2}),
    Operator("MeanVarianceNormalization", _mean_variance, {"axes": (0, 2, 3)}),
    Operator("RMSNormalization", rms_norm, LAYER_NORM),
)
