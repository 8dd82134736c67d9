"""The functions that the architectures are made of, in lavax."""
from __future__ import annotations

from functools import partial
from typing import Any

import lavax as lx
import lavax.numpy as lnp
from lavax import nn

conv1d, conv2d, conv3d, conv_transpose2d = nn.conv1d, nn.conv2d, nn.conv3d, nn.conv_transpose2d
linear, layer_norm, group_norm, max_pool2d = nn.linear, nn.layer_norm, nn.group_norm, nn.max_pool2d
relu, relu6, sigmoid, tanh, einsum = nn.relu, nn.relu6, nn.sigmoid, lnp.tanh, lnp.einsum
gelu, leaky_relu = partial(nn.gelu, approximate=False), partial(nn.leaky_relu, negative_slope=0.2)
cross_entropy, binary_cross_entropy = nn.cross_entropy, nn.binary_cross_entropy_with_logits
concatenate, transpose, mean, attention = lnp.concatenate, lnp.transpose, lnp.mean, nn.scaled_dot_product_attention


def embedding(ids: Any, table: Any) -> Any:
    return lnp.asarray(table)[ids]


def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    """With the statistics of the batch."""
    return nn.batch_norm(x, *nn.batch_statistics(x), weight, bias)


def segment_sum(x: Any, segments: Any, count: int) -> Any:
    return lx.ops.segment_sum(x, segments, count)


def lstm(x: Any, inputs: Any, hidden: Any, bias: Any) -> Any:
    """x[t,n,h] -> [t,n,h]; the rows of both weights are those of input, forget, cell and output gate."""

    def turn(state: Any, given: Any) -> Any:
        h, cell = state
        i, f, u, o = lnp.split(given + nn.linear(h, hidden), 4, axis=-1)
        cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * lnp.tanh(u)
        h = nn.sigmoid(o) * lnp.tanh(cell)
        return (h, cell), h

    given = nn.linear(x, inputs, bias)
    start = lnp.zeros((x.shape[1], hidden.shape[1]), x.dtype)
    return lx.scan(turn, (start, start), given)[1]
