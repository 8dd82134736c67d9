"""The functions that the architectures are made of, in lavax."""
from __future__ import annotations

from functools import partial
from typing import Any

import lavax as lx
import lavax.numpy as lnp
from lavax import nn

conv1d, conv2d, conv3d = nn.conv1d, nn.conv2d, nn.conv3d
conv_transpose1d, conv_transpose2d, conv_transpose3d = nn.conv_transpose1d, nn.conv_transpose2d, nn.conv_transpose3d
linear, layer_norm, group_norm, max_pool2d = nn.linear, nn.layer_norm, nn.group_norm, nn.max_pool2d
relu, relu6, sigmoid, silu, softplus, einsum = nn.relu, nn.relu6, nn.sigmoid, nn.silu, nn.softplus, lnp.einsum
tanh, exp, sin, cos, sqrt, abs = lnp.tanh, lnp.exp, lnp.sin, lnp.cos, lnp.sqrt, lnp.abs
gelu, leaky_relu = partial(nn.gelu, approximate=False), partial(nn.leaky_relu, negative_slope=0.2)
cross_entropy, binary_cross_entropy = nn.cross_entropy, nn.binary_cross_entropy_with_logits
concatenate, transpose, attention = lnp.concatenate, lnp.transpose, nn.scaled_dot_product_attention
biased_attention = attention
mean, sum, max, cumsum, logsumexp = lnp.mean, lnp.sum, lnp.max, lnp.cumsum, nn.logsumexp
argmin, argsort, clip, roll, tile = lnp.argmin, lnp.argsort, lnp.clip, lnp.roll, lnp.tile
rfft, irfft, rfft2, complex = lnp.fft.rfft, lnp.fft.irfft, lnp.fft.rfft2, lx.lax.complex
softmax, one_hot, rms_norm, standardized = nn.softmax, nn.one_hot, nn.rms_norm, nn.layer_norm
where, inf = lnp.where, lnp.inf
constant, top_k = lx.stop_gradient, lx.lax.top_k


def embedding(ids: Any, table: Any) -> Any:
    return lnp.asarray(table)[ids]


def embedding_sums(ids: Any, table: Any) -> Any:
    """Of the ids in each row."""
    return lnp.sum(lnp.asarray(table)[ids], axis=1)


def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    """With the statistics of the batch."""
    return nn.batch_norm(x, *nn.batch_statistics(x), weight, bias)


def irfft2(x: Any, sizes: tuple[int, int]) -> Any:
    return lnp.fft.irfft2(x, s=sizes)


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    return lnp.zeros(shape, like.dtype)


def arange(count: int, like: Any) -> Any:
    return lnp.arange(count)


def cast_as(x: Any, like: Any) -> Any:
    return x.astype(like.dtype)


def wide(x: Any) -> Any:
    return x.astype("float32")


def whole(x: Any) -> Any:
    return x.astype("int32")


def twice_as_large(x: Any) -> Any:
    """Each pixel four times."""
    return nn.interpolate(x, scale_factor=2, mode="nearest")


def segment_max(x: Any, segments: Any, count: int) -> Any:
    return lx.ops.segment_max(x, segments, count)


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


def selective_scan(x: Any, step: Any, rates: Any, b: Any, c: Any) -> Any:
    return nn.selective_scan(x, step, rates, b, c)[0]


def ctc(logits: Any, targets: Any) -> Any:
    """The mean loss of logits [n,t,c] of steps that all count."""
    batch, steps = logits.shape[:2]
    logs = lnp.transpose(nn.log_softmax(logits.astype("float32")), (1, 0, 2))
    return nn.ctc_loss(logs, targets, lnp.full(batch, steps), lnp.full(batch, targets.shape[1]))


def gradient(function: Any, x: Any) -> Any:
    """Of the sum of the function's results."""
    return lx.grad(lambda x: lnp.sum(function(x)))(x)


def repeated(step: Any, x: Any, count: int) -> Any:
    return lx.scan(lambda x, _: (step(x), None), x, None, length=count)[0]


def folded(turn: Any, start: Any, given: Any) -> Any:
    """`turn(state, row)` for all rows of what is given."""
    return lx.scan(lambda state, row: (turn(state, row), None), start, given)[0]


@partial(lx.custom_vjp, nondiff_argnums=(0, 2))
def fixed_point(turn: Any, given: Any, turns: int) -> Any:
    """z = turn(z, *given) from zeros of the last array's shape; its derivative solves a like equation."""
    return lx.fori_loop(0, turns, lambda _, z: turn(z, *given), lnp.zeros_like(given[-1]))


def _found(turn: Any, given: Any, turns: int) -> Any:
    z = fixed_point(turn, given, turns)
    return z, (z, given)


def _derivative(turn: Any, turns: int, kept: Any, cotangent: Any) -> Any:
    z, given = kept
    pull = lx.vjp(lambda z, *given: turn(z, *given), z, *given)[1]
    solved = lx.fori_loop(0, turns, lambda _, v: pull(v)[0] + cotangent, cotangent)
    return (pull(solved)[1:],)


fixed_point.defvjp(_found, _derivative)
