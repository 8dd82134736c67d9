"""Networks of signals: Conformer, temporal convolutions, and transposed ones in one and three dimensions."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.mixers import attended, normed


def conformer(F: Any, w: Any, x: Any, labels: Any, layers: int = 4, width: int = 256, words: int = 128) -> Any:
    """Halves of two perceptrons around attention and a convolution of each channel by itself; x[b,t,80]."""

    def half(name: str, x: Any) -> Any:
        z = F.silu(F.linear(normed(F, w, f"{name}_n", x), w(f"{name}_up", 4 * width, width)))
        return x + 0.5 * F.linear(z, w(f"{name}_down", width, 4 * width))

    x = F.linear(x, w("in", width, x.shape[2]))
    for layer in range(layers):
        name = f"l{layer}"
        x = half(f"{name}_1", x)
        x = x + attended(F, w, name, normed(F, w, f"{name}_n", x), None, 4)
        z = F.linear(normed(F, w, f"{name}_c", x), w(f"{name}_gated", 2 * width, width))
        z = F.transpose(z[..., :width] * F.sigmoid(z[..., width:]), (0, 2, 1))
        z = F.conv1d(z, w(f"{name}_each", width, 1, 31), padding=15, groups=width)
        z = F.silu(F.batch_norm(z, w(f"{name}_b_scale", width), w(f"{name}_b_bias", width)))
        x = x + F.linear(F.transpose(z, (0, 2, 1)), w(f"{name}_mixed", width, width))
        x = normed(F, w, f"{name}_last", half(f"{name}_2", x))
    return F.cross_entropy(F.linear(x, w("head", words, width)).reshape(-1, words), labels.reshape(-1))


def temporal(F: Any, w: Any, x: Any, y: Any, width: int = 64, layers: int = 8) -> Any:
    """Causal convolutions whose dilation doubles, with weights of norm 1 times a scale."""
    for layer in range(layers):
        before, spread = x, 1 << layer
        for part in range(2):
            name = f"l{layer}p{part}"
            weight = w(name, width, x.shape[1], 3)
            weight = w(f"{name}_scale", width, 1, 1) * weight / F.sqrt(F.sum(weight**2, (1, 2), keepdims=True))
            x = F.conv1d(x, weight, w(f"{name}_bias", width), padding=2 * spread, dilation=spread)
            x = F.relu(x[..., : -2 * spread])
        by = before if before.shape[1] == width else F.conv1d(before, w(f"l{layer}_by", width, before.shape[1], 1))
        x = F.relu(x + by)
    return F.mean((F.conv1d(x, w("head", 1, width, 1)) - y) ** 2)


def vocoder(F: Any, w: Any, x: Any, y: Any, width: int = 256) -> Any:
    """Transposed convolutions from 80 bands to a signal 256 times as long, as in HiFi-GAN."""
    x = F.conv1d(x, w("in", width, 80, 7), w("in_bias", width), padding=3)
    for level, times in enumerate((8, 8, 2, 2)):
        channels = width >> level
        weight = w(f"up{level}", channels, channels // 2, 2 * times)
        x = F.conv_transpose1d(F.leaky_relu(x), weight, w(f"up{level}_bias", channels // 2), times, times // 2)
        for spread in (1, 3):
            z, name = F.leaky_relu(x), f"r{level}_{spread}"
            weight = w(name, channels // 2, channels // 2, 3)
            x = x + F.conv1d(z, weight, w(f"{name}_bias", channels // 2), padding=spread, dilation=spread)
    return F.mean(F.abs(F.tanh(F.conv1d(F.leaky_relu(x), w("head", 1, x.shape[1], 7), padding=3)) - y))


def volume(F: Any, w: Any, x: Any, y: Any) -> Any:
    """Down and up again in three dimensions."""
    for channels in (32, 64, 128):
        weight = w(f"c{channels}", channels, x.shape[1], 3, 3, 3)
        x = F.relu(F.conv3d(x, weight, w(f"c{channels}_bias", channels), stride=2, padding=1))
    for channels in (64, 32, 1):
        weight = w(f"u{channels}", x.shape[1], channels, 4, 4, 4)
        x = F.conv_transpose3d(F.relu(x), weight, w(f"u{channels}_bias", channels), 2, 1)
    return F.mean((x - y) ** 2)


def speech_features(F: Any, w: Any, x: Any, y: Any, width: int = 512) -> Any:
    """wav2vec 2.0's convolutions of a signal [b,1,t], whose steps together are 320 samples."""
    for layer, (size, stride) in enumerate(((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2))):
        x = F.conv1d(x, w(f"c{layer}", width, x.shape[1], size), None, stride=stride)
        if not layer:
            x = F.group_norm(x, width, w("n_scale", width), w("n_bias", width))
        x = F.gelu(x)
    x = normed(F, w, "last", F.transpose(x, (0, 2, 1)))
    return F.mean((F.linear(x, w("out", y.shape[2], width), w("out_bias", y.shape[2])) - y) ** 2)
