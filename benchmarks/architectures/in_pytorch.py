"""The functions that the architectures are made of, in PyTorch."""
from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.nn import functional

conv1d, conv2d, conv3d = functional.conv1d, functional.conv2d, functional.conv3d
conv_transpose1d, conv_transpose2d, conv_transpose3d = (
    functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d,
)  # fmt: skip
linear, group_norm, max_pool2d, embedding = (
    functional.linear, functional.group_norm, functional.max_pool2d, functional.embedding,
)  # fmt: skip
relu, relu6, sigmoid, silu, softplus = torch.relu, functional.relu6, torch.sigmoid, functional.silu, functional.softplus
tanh, exp, sin, cos, sqrt, abs = torch.tanh, torch.exp, torch.sin, torch.cos, torch.sqrt, torch.abs
einsum, argmin, clip, roll, tile, complex = (
    torch.einsum, torch.argmin, torch.clip, torch.roll, torch.tile, torch.complex,
)  # fmt: skip
rfft, irfft, rfft2, cumsum, logsumexp = torch.fft.rfft, torch.fft.irfft, torch.fft.rfft2, torch.cumsum, torch.logsumexp
top_k, softmax = torch.topk, partial(torch.softmax, dim=-1)
gelu, leaky_relu = functional.gelu, partial(functional.leaky_relu, negative_slope=0.2)
cross_entropy, binary_cross_entropy = functional.cross_entropy, functional.binary_cross_entropy_with_logits
attention, inf = functional.scaled_dot_product_attention, torch.inf


def concatenate(arrays: Any, axis: int) -> Any:
    return torch.cat(arrays, axis)


def transpose(x: Any, axes: Any) -> Any:
    return x.permute(axes)


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return x.sum(axis, keepdim=keepdims)


def mean(x: Any, axis: Any = None) -> Any:
    return x.mean(axis)


def max(x: Any, axis: int) -> Any:
    return x.amax(axis)


def argsort(x: Any) -> Any:
    return torch.argsort(x, stable=True)


def irfft2(x: Any, sizes: tuple[int, int]) -> Any:
    return torch.fft.irfft2(x, s=sizes)


def one_hot(ids: Any, count: int) -> Any:
    """Zeros for ids that are none of those below `count`."""
    return (ids[..., None] == torch.arange(count, device=ids.device)).float()


def constant(x: Any) -> Any:
    return x.detach()


def zeros(shape: tuple[int, ...], like: Any) -> Any:
    return torch.zeros(shape, dtype=like.dtype, device=like.device)


def arange(count: int, like: Any) -> Any:
    return torch.arange(count, device=like.device)


def cast_as(x: Any, like: Any) -> Any:
    return x.to(like.dtype)


def wide(x: Any) -> Any:
    return x if x.dtype == torch.float64 else x.float()


def whole(x: Any) -> Any:
    return x.long()


def twice_as_large(x: Any) -> Any:
    """Each pixel four times."""
    return functional.interpolate(x, scale_factor=2, mode="nearest")


def rms_norm(x: Any, weight: Any) -> Any:
    return functional.rms_norm(x, weight.shape, weight, 1e-6)


def biased_attention(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return attention(q, k, v, attn_mask=None if bias is None else bias.to(q.dtype))


def segment_max(x: Any, segments: Any, count: int) -> Any:
    start = torch.full((count, *x.shape[1:]), -torch.inf, device=x.device, dtype=x.dtype)
    return start.scatter_reduce(0, segments.reshape(-1, *[1] * (x.ndim - 1)).expand_as(x), x, "amax")


def standardized(x: Any) -> Any:
    """Along the last axis."""
    return functional.layer_norm(x, x.shape[-1:])


def where(condition: Any, x: Any, y: float) -> Any:
    return x.masked_fill(~condition, y)


def embedding_sums(ids: Any, table: Any) -> Any:
    """Of the ids in each row."""
    return functional.embedding_bag(ids, table, mode="sum")


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    return functional.layer_norm(x, weight.shape, weight, bias)


def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    """With the statistics of the batch."""
    return functional.batch_norm(x, None, None, weight, bias, training=True)


def segment_sum(x: Any, segments: Any, count: int) -> Any:
    return torch.zeros(count, *x.shape[1:], device=x.device, dtype=x.dtype).index_add_(0, segments, x)


def lstm(x: Any, inputs: Any, hidden: Any, bias: Any) -> Any:
    """x[t,n,h] -> [t,n,h], by cuDNN."""
    dtype = torch.bfloat16 if torch.is_autocast_enabled() else x.dtype
    start = torch.zeros(1, x.shape[1], hidden.shape[1], device=x.device, dtype=dtype)
    weights = (inputs, hidden, bias, torch.zeros_like(bias))
    return torch.lstm(x, (start, start), weights, True, 1, 0.0, True, False, False)[0]


def selective_scan(x: Any, step: Any, rates: Any, b: Any, c: Any) -> Any:
    """Mamba's, in float32, with an associative scan by doubling the steps that a term has taken."""
    decay, states = torch.exp(step[..., None] * rates), (step * x)[..., None] * b[:, :, None]
    taken = 1
    while taken < states.shape[1]:
        states = torch.cat([states[:, :taken], decay[:, taken:] * states[:, :-taken] + states[:, taken:]], 1)
        decay = torch.cat([decay[:, :taken], decay[:, taken:] * decay[:, :-taken]], 1)
        taken *= 2
    return (states * c[:, :, None]).sum(3).to(x.dtype)


def ctc(logits: Any, targets: Any) -> Any:
    """The mean loss of logits [n,t,c] of steps that all count."""
    batch, steps = logits.shape[:2]
    logs = torch.log_softmax(logits.float(), -1).permute(1, 0, 2)
    return functional.ctc_loss(logs, targets, (steps,) * batch, (targets.shape[1],) * batch)


def gradient(function: Any, x: Any) -> Any:
    """Of the sum of the function's results."""
    with torch.enable_grad():
        x = x if x.requires_grad else x.detach().requires_grad_()
        return torch.autograd.grad(function(x).sum(), x, create_graph=True)[0]


def repeated(step: Any, x: Any, count: int) -> Any:
    for _ in range(count):
        x = step(x)
    return x


def folded(turn: Any, start: Any, given: Any) -> Any:
    """`turn(state, row)` for all rows of what is given."""
    for row in given:
        start = turn(start, row)
    return start


def fixed_point(turn: Any, given: Any, turns: int) -> Any:
    """z = turn(z, *given) from zeros of the last array's shape; its derivative solves a like equation."""
    with torch.no_grad():
        z = repeated(lambda z: turn(z, *given), torch.zeros_like(given[-1]), turns)
    start = z.detach().requires_grad_()
    again, z = turn(start, *given), turn(z, *given)

    def solved(cotangent: Any) -> Any:
        v = cotangent
        for _ in range(turns):
            v = torch.autograd.grad(again, start, v, retain_graph=True)[0] + cotangent
        return v

    if z.requires_grad:
        z.register_hook(solved)
    return z
