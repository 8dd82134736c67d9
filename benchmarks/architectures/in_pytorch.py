"""The functions that the architectures are made of, in PyTorch."""
from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.nn import functional

conv1d, conv2d, conv3d, conv_transpose2d = (
    functional.conv1d, functional.conv2d, functional.conv3d, functional.conv_transpose2d,
)  # fmt: skip
linear, group_norm, max_pool2d, embedding = (
    functional.linear, functional.group_norm, functional.max_pool2d, functional.embedding,
)  # fmt: skip
relu, relu6, sigmoid, tanh, einsum = torch.relu, functional.relu6, torch.sigmoid, torch.tanh, torch.einsum
gelu, leaky_relu = functional.gelu, partial(functional.leaky_relu, negative_slope=0.2)
cross_entropy, binary_cross_entropy = functional.cross_entropy, functional.binary_cross_entropy_with_logits
attention = functional.scaled_dot_product_attention


def concatenate(arrays: Any, axis: int) -> Any:
    return torch.cat(arrays, axis)


def transpose(x: Any, axes: Any) -> Any:
    return x.permute(axes)


def mean(x: Any, axis: Any) -> Any:
    return x.mean(axis)


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    return functional.layer_norm(x, weight.shape, weight, bias)


def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    """With the statistics of the batch."""
    return functional.batch_norm(x, None, None, weight, bias, training=True)


def segment_sum(x: Any, segments: Any, count: int) -> Any:
    return torch.zeros(count, x.shape[1], device=x.device, dtype=x.dtype).index_add_(0, segments, x)


def lstm(x: Any, inputs: Any, hidden: Any, bias: Any) -> Any:
    """x[t,n,h] -> [t,n,h], by cuDNN."""
    dtype = torch.bfloat16 if torch.is_autocast_enabled() else x.dtype
    start = torch.zeros(1, x.shape[1], hidden.shape[1], device=x.device, dtype=dtype)
    weights = (inputs, hidden, bias, torch.zeros_like(bias))
    return torch.lstm(x, (start, start), weights, True, 1, 0.0, True, False, False)[0]
