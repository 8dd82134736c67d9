"""A U-Net that predicts noise: residual blocks that know the time, attention at low resolution."""
from __future__ import annotations

import math
from typing import Any


def _norm(F: Any, w: Any, name: str, x: Any) -> Any:
    return F.group_norm(x, 32, w(f"{name}_scale", x.shape[1]), w(f"{name}_bias", x.shape[1]))


def _conv(F: Any, w: Any, name: str, x: Any, channels: int, size: int = 3, stride: int = 1) -> Any:
    weight = w(name, channels, x.shape[1], size, size)
    return F.conv2d(x, weight, w(f"{name}_bias", channels), stride=stride, padding=size // 2)


def _residual(F: Any, w: Any, name: str, x: Any, time: Any, channels: int) -> Any:
    z = _conv(F, w, f"{name}_1", F.silu(_norm(F, w, f"{name}_n1", x)), channels)
    z = z + F.linear(time, w(f"{name}_t", channels, time.shape[1]), w(f"{name}_t_bias", channels))[:, :, None, None]
    z = _conv(F, w, f"{name}_2", F.silu(_norm(F, w, f"{name}_n2", z)), channels)
    return z + (x if x.shape[1] == channels else _conv(F, w, f"{name}_by", x, channels, 1))


def _attention(F: Any, w: Any, name: str, x: Any) -> Any:
    batch, channels, rows, columns = x.shape
    mixed = _conv(F, w, f"{name}_qkv", _norm(F, w, f"{name}_n", x), 3 * channels, 1)
    split = F.transpose(mixed.reshape(batch, 3, 4, channels // 4, rows * columns), (1, 0, 2, 4, 3))
    found = F.transpose(F.attention(split[0], split[1], split[2]), (0, 1, 3, 2)).reshape(x.shape)
    return x + _conv(F, w, f"{name}_out", found, channels, 1)


def denoiser(F: Any, w: Any, images: Any, times: Any, noise: Any, width: int = 128) -> Any:
    """Three resolutions of two blocks each, as in DDPM."""
    half = width // 2
    angles = times[:, None] * F.exp(F.wide(F.arange(half, times)) * (-math.log(10000) / half))
    time = F.cast_as(F.concatenate([F.sin(angles), F.cos(angles)], 1), images)
    time = F.silu(F.linear(time, w("t1", 4 * width, width), w("t1_bias", 4 * width)))
    time = F.silu(F.linear(time, w("t2", 4 * width, 4 * width), w("t2_bias", 4 * width)))
    x = _conv(F, w, "in", images, width)
    kept = [x]
    for level in range(3):
        for number in range(2):
            x = _residual(F, w, f"down{level}{number}", x, time, width << min(level, 1))
            x = _attention(F, w, f"down{level}{number}_a", x) if level else x
            kept.append(x)
        if level < 2:
            x = _conv(F, w, f"less{level}", x, x.shape[1], 3, 2)
            kept.append(x)
    x = _residual(F, w, "middle", x, time, x.shape[1])
    for level in reversed(range(3)):
        for number in range(3):
            x = F.concatenate([x, kept.pop()], 1)
            x = _residual(F, w, f"up{level}{number}", x, time, width << min(level, 1))
            x = _attention(F, w, f"up{level}{number}_a", x) if level else x
        x = _conv(F, w, f"more{level}", F.twice_as_large(x), x.shape[1]) if level else x
    return F.mean((_conv(F, w, "out", F.silu(_norm(F, w, "last", x)), images.shape[1]) - noise) ** 2)
