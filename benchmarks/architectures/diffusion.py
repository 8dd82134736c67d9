"""Networks that predict noise, of images, of latents that a text or a class describes, and of actions; and a decoder of
latents."""
from __future__ import annotations

import math
from typing import Any

from benchmarks.architectures.mixers import attended, normed, perceptron


def _norm(F: Any, w: Any, name: str, x: Any) -> Any:
    return F.group_norm(x, 32, w(f"{name}_scale", x.shape[1]), w(f"{name}_bias", x.shape[1]))


def _conv(F: Any, w: Any, name: str, x: Any, channels: int, size: int = 3, stride: int = 1) -> Any:
    weight = w(name, channels, x.shape[1], size, size)
    return F.conv2d(x, weight, w(f"{name}_bias", channels), stride=stride, padding=size // 2)


def _residual(F: Any, w: Any, name: str, x: Any, time: Any, channels: int) -> Any:
    z = _conv(F, w, f"{name}_1", F.silu(_norm(F, w, f"{name}_n1", x)), channels)
    if time is not None:
        z = z + F.linear(time, w(f"{name}_t", channels, time.shape[1]), w(f"{name}_t_bias", channels))[:, :, None, None]
    z = _conv(F, w, f"{name}_2", F.silu(_norm(F, w, f"{name}_n2", z)), channels)
    return z + (x if x.shape[1] == channels else _conv(F, w, f"{name}_by", x, channels, 1))


def _attention(F: Any, w: Any, name: str, x: Any) -> Any:
    batch, channels, rows, columns = x.shape
    mixed = _conv(F, w, f"{name}_qkv", _norm(F, w, f"{name}_n", x), 3 * channels, 1)
    split = F.transpose(mixed.reshape(batch, 3, 4, channels // 4, rows * columns), (1, 0, 2, 4, 3))
    found = F.transpose(F.attention(split[0], split[1], split[2]), (0, 1, 3, 2)).reshape(x.shape)
    return x + _conv(F, w, f"{name}_out", found, channels, 1)


def embedded_time(F: Any, w: Any, times: Any, like: Any, width: int) -> Any:
    """Sines and cosines of the times, mixed by a perceptron: [b, 4 width]."""
    half = width // 2
    angles = times[:, None] * F.exp(F.wide(F.arange(half, times)) * (-math.log(10000) / half))
    time = F.cast_as(F.concatenate([F.sin(angles), F.cos(angles)], 1), like)
    time = F.silu(F.linear(time, w("t1", 4 * width, width), w("t1_bias", 4 * width)))
    return F.silu(F.linear(time, w("t2", 4 * width, 4 * width), w("t2_bias", 4 * width)))


def denoiser(F: Any, w: Any, images: Any, times: Any, noise: Any, width: int = 128) -> Any:
    """Three resolutions of two blocks each, as in DDPM."""
    time = embedded_time(F, w, times, images, width)
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


def _read(F: Any, w: Any, name: str, x: Any, context: Any) -> Any:
    """A layer of a transformer over the pixels, which read each other and then the context."""
    batch, channels = x.shape[:2]
    z = F.transpose(_norm(F, w, f"{name}_n", x).reshape(batch, channels, -1), (0, 2, 1))
    z = F.linear(z, w(f"{name}_in", channels, channels), w(f"{name}_in_bias", channels))
    z = z + attended(F, w, f"{name}_own", normed(F, w, f"{name}_n1", z), None, channels // 64)
    z = z + attended(F, w, f"{name}_cross", normed(F, w, f"{name}_n2", z), context, channels // 64)
    weights = w(f"{name}_up", 8 * channels, channels), w(f"{name}_up_bias", 8 * channels)
    y = F.linear(normed(F, w, f"{name}_n3", z), *weights)
    y = y[..., : 4 * channels] * F.gelu(y[..., 4 * channels :])
    z = z + F.linear(y, w(f"{name}_down", channels, 4 * channels), w(f"{name}_down_bias", channels))
    z = F.linear(z, w(f"{name}_out", channels, channels), w(f"{name}_out_bias", channels))
    return x + F.transpose(z, (0, 2, 1)).reshape(x.shape)


def latent_denoiser(
    F: Any, w: Any, latents: Any, times: Any, context: Any, noise: Any, widths: tuple[int, ...] = (128, 256, 384)
) -> Any:
    """Two blocks at each of three resolutions, the lower two of which read a text, as in Stable Diffusion."""
    time = embedded_time(F, w, times, latents, widths[0])
    x = _conv(F, w, "in", latents, widths[0])
    kept = [x]
    for level, channels in enumerate(widths):
        for number in range(2):
            x = _residual(F, w, f"down{level}{number}", x, time, channels)
            x = _read(F, w, f"down{level}{number}_r", x, context) if level else x
            kept.append(x)
        if level < len(widths) - 1:
            x = _conv(F, w, f"less{level}", x, channels, 3, 2)
            kept.append(x)
    x = _read(F, w, "middle_r", _residual(F, w, "middle", x, time, x.shape[1]), context)
    for level, channels in reversed(list(enumerate(widths))):
        for number in range(3):
            x = _residual(F, w, f"up{level}{number}", F.concatenate([x, kept.pop()], 1), time, channels)
            x = _read(F, w, f"up{level}{number}_r", x, context) if level else x
        x = _conv(F, w, f"more{level}", F.twice_as_large(x), channels) if level else x
    return F.mean((_conv(F, w, "out", F.silu(_norm(F, w, "last", x)), latents.shape[1]) - noise) ** 2)


def latent_decoder(
    F: Any, w: Any, latents: Any, images: Any, widths: tuple[int, ...] = (256, 256, 128, 64)
) -> Any:
    """Latents to images of eight times their sides, as by the decoder of Stable Diffusion's autoencoder."""
    x = _conv(F, w, "in", latents, widths[0])
    x = _residual(F, w, "middle1", x, None, widths[0])
    x = _residual(F, w, "middle2", _attention(F, w, "middle_a", x), None, widths[0])
    for level, channels in enumerate(widths):
        for number in range(2):
            x = _residual(F, w, f"l{level}{number}", x, None, channels)
        if level < len(widths) - 1:
            x = _conv(F, w, f"more{level}", F.twice_as_large(x), channels)
    return F.mean((_conv(F, w, "out", F.silu(_norm(F, w, "last", x)), 3) - images) ** 2)


def diffusion_policy(
    F: Any, w: Any, actions: Any, times: Any, seen: Any, noise: Any, widths: tuple[int, ...] = (128, 256, 512)
) -> Any:
    """Convolutions along 16 actions, whose blocks what is seen scales and shifts, as in robots' policies."""

    def conv(name: str, x: Any, channels: int, size: int = 5, stride: int = 1) -> Any:
        weight = w(name, channels, x.shape[1], size)
        return F.conv1d(x, weight, w(f"{name}_bias", channels), stride=stride, padding=size // 2)

    def bent(name: str, x: Any, channels: int) -> Any:
        x = F.group_norm(conv(name, x, channels), 8, w(f"{name}_n_scale", channels), w(f"{name}_n_bias", channels))
        return x * F.tanh(F.softplus(x))

    def block(name: str, x: Any, channels: int) -> Any:
        z = bent(f"{name}_1", x, channels)
        weights = w(f"{name}_c", 2 * channels, given.shape[1]), w(f"{name}_c_bias", 2 * channels)
        change = F.linear(given, *weights)[..., None]
        z = bent(f"{name}_2", (1 + change[:, :channels]) * z + change[:, channels:], channels)
        return z + (x if x.shape[1] == channels else conv(f"{name}_by", x, channels, 1))

    given = F.concatenate([embedded_time(F, w, times, actions, widths[0]), seen], 1)
    given = given * F.tanh(F.softplus(given))
    x, kept = actions, []
    for level, channels in enumerate(widths):
        x = block(f"down{level}1", block(f"down{level}0", x, channels), channels)
        kept.append(x)
        x = conv(f"less{level}", x, channels, 3, 2) if level < len(widths) - 1 else x
    x = block("middle", x, widths[-1])
    for level, channels in reversed(list(enumerate(widths[:-1]))):
        weight = w(f"more{level}", x.shape[1], channels, 4)
        x = F.conv_transpose1d(x, weight, w(f"more{level}_bias", channels), 2, 1)
        x = block(f"up{level}1", block(f"up{level}0", F.concatenate([x, kept[level]], 1), channels), channels)
    return F.mean((conv("out", bent("last", x, widths[0]), actions.shape[1], 1) - noise) ** 2)


def diffusion_transformer(
    F: Any, w: Any, latents: Any, times: Any, labels: Any, noise: Any, layers: int = 12, width: int = 384
) -> Any:
    """DiT-S/2: tokens of 2 x 2 places of a latent, whose noise is predicted."""
    batch, channels, rows, columns = latents.shape
    patches = F.conv2d(latents, w("patches", width, channels, 2, 2), w("patches_bias", width), stride=2)
    x = F.transpose(patches.reshape(batch, width, -1), (0, 2, 1)) + w("positions", 1, rows * columns // 4, width)
    given = embedded_time(F, w, times, latents, width // 4)
    given = F.silu(F.linear(given, w("time", width, width)) + F.embedding(labels, w("classes", 1001, width)))

    def changes(name: str, count: int) -> Any:
        change = F.linear(given, w(name, count * width, width), w(f"{name}_bias", count * width))[:, None]
        return [change[..., part * width : (part + 1) * width] for part in range(count)]

    for layer in range(layers):
        name = f"l{layer}"
        shift, scale, gate, last_shift, last_scale, last_gate = changes(f"{name}_c", 6)
        x = x + gate * attended(F, w, name, F.standardized(x) * (1 + scale) + shift, None, width // 64)
        x = x + last_gate * perceptron(F, w, name, F.standardized(x) * (1 + last_scale) + last_shift, 4 * width)
    shift, scale = changes("last_c", 2)
    x = F.linear(F.standardized(x) * (1 + scale) + shift, w("out", 4 * channels, width), w("out_bias", 4 * channels))
    x = F.transpose(x.reshape(batch, rows // 2, columns // 2, 2, 2, channels), (0, 5, 1, 3, 2, 4))
    return F.mean((x.reshape(latents.shape) - noise) ** 2)
