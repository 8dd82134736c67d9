"""Convolution blocks of U-Nets and autoencoders: residual blocks, and changes of resolution."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax import random
from lavax.nn.activations import silu
from lavax.nn.modules.convolution import Conv2d
from lavax.nn.modules.linear import Linear
from lavax.nn.modules.module import Module
from lavax.nn.modules.normalization import GroupNorm
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.values.value import Value


class ResidualBlock(Module):
    """x + conv(silu(norm(conv(silu(norm(x))) + time))): [N, in_channels, H, W] to [N, out_channels, H, W].

    The embedding of the time, [N, time_width], is projected to one number a channel; without `time_width` there is
    none. Where the numbers of channels differ, `shortcut` is a 1 x 1 convolution of x.
    """

    norm1: GroupNorm
    conv1: Conv2d
    time_projection: Linear | None
    norm2: GroupNorm
    conv2: Conv2d
    shortcut: Conv2d | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        time_width: int | None = None,
        *,
        groups: int,
        eps: float,
        bias: bool = True,
        key: ArrayLike,
        dtype: Any = "float32",
    ) -> None:
        keys = random.split(key, 4)
        self.norm1 = GroupNorm(groups, in_channels, eps, dtype=dtype)
        self.conv1 = Conv2d(in_channels, out_channels, 3, padding=1, bias=bias, key=keys[0], dtype=dtype)
        self.time_projection = Linear(time_width, out_channels, key=keys[1], dtype=dtype) if time_width else None
        self.norm2 = GroupNorm(groups, out_channels, eps, dtype=dtype)
        self.conv2 = Conv2d(out_channels, out_channels, 3, padding=1, bias=bias, key=keys[2], dtype=dtype)
        changes = in_channels != out_channels
        self.shortcut = Conv2d(in_channels, out_channels, 1, bias=bias, key=keys[3], dtype=dtype) if changes else None

    def __call__(self, x: ArrayLike, time: Value | None = None) -> Value:
        hidden = self.conv1(silu(self.norm1(x)))
        if self.time_projection is not None and time is not None:
            hidden = hidden + lnp.expand_dims(self.time_projection(silu(time)), (2, 3))
        hidden = self.conv2(silu(self.norm2(hidden)))
        return hidden + (x if self.shortcut is None else self.shortcut(x))


def doubled(x: ArrayLike) -> Value:
    """Each pixel as 2 x 2: [N, C, H, W] to [N, C, 2H, 2W]. A broadcast: its kernel has no index of its own to read."""
    given = as_value(x)
    count, channels, height, width = given.shape
    spaced = lnp.reshape(given, (count, channels, height, 1, width, 1))
    repeated = lnp.broadcast_to(spaced, (count, channels, height, 2, width, 2))
    return lnp.reshape(repeated, (count, channels, 2 * height, 2 * width))
