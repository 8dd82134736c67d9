"""MLP-Mixer and Perceiver: tokens mix by products, or are read by few latents."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.library import CLASSES


def normed(F: Any, w: Any, name: str, x: Any) -> Any:
    """Layer norm along the last axis."""
    return F.layer_norm(x, w(f"{name}_scale", x.shape[-1]), w(f"{name}_bias", x.shape[-1]))


def perceptron(F: Any, w: Any, name: str, x: Any, inner: int) -> Any:
    """Two products along the last axis, and GELU between them."""
    width = x.shape[-1]
    x = F.gelu(F.linear(x, w(f"{name}_up", inner, width), w(f"{name}_up_bias", inner)))
    return F.linear(x, w(f"{name}_down", width, inner), w(f"{name}_down_bias", width))


def attended(F: Any, w: Any, name: str, x: Any, of: Any, heads: int, bias: Any = None) -> Any:
    """What `x` [b,t,d] reads of [b,s,e], or of itself: heads' attention, with a bias [heads,t,s] or [b,heads,t,s]."""
    width, of = x.shape[-1], x if of is None else of

    def split(part: str, given: Any) -> Any:
        mixed = F.linear(given, w(f"{name}_{part}", width, given.shape[-1]))
        return F.transpose(mixed.reshape(*given.shape[:2], heads, width // heads), (0, 2, 1, 3))

    found = F.biased_attention(split("q", x), split("k", of), split("v", of), bias)
    return F.linear(F.transpose(found, (0, 2, 1, 3)).reshape(x.shape), w(f"{name}_out", width, width))


def mlp_mixer(F: Any, w: Any, images: Any, labels: Any, layers: int = 12, width: int = 768) -> Any:
    """Mixer-B/16."""
    patches = F.conv2d(images, w("patches", width, 3, 16, 16), w("patches_bias", width), stride=16)
    x = F.transpose(patches.reshape(patches.shape[0], width, -1), (0, 2, 1))
    for layer in range(layers):
        y = F.transpose(normed(F, w, f"l{layer}_n1", x), (0, 2, 1))
        x = x + F.transpose(perceptron(F, w, f"l{layer}_tokens", y, width // 2), (0, 2, 1))
        x = x + perceptron(F, w, f"l{layer}_channels", normed(F, w, f"l{layer}_n2", x), 4 * width)
    return F.cross_entropy(F.linear(F.mean(normed(F, w, "last", x), 1), w("head", CLASSES, width)), labels)


def perceiver(F: Any, w: Any, x: Any, labels: Any, latents: int = 256, width: int = 512, layers: int = 6) -> Any:
    """Latents read 4,096 inputs twice, and mix among themselves after each time."""
    x = normed(F, w, "n_in", x)
    z = w("latents", 1, latents, width) + F.zeros((x.shape[0], latents, width), x)
    for time in range(2):
        z = z + attended(F, w, f"read{time}", normed(F, w, f"read{time}_n", z), x, 1)
        z = z + perceptron(F, w, f"read{time}", normed(F, w, f"read{time}_n2", z), width)
        for layer in range(layers):
            name, y = f"t{time}l{layer}", normed(F, w, f"t{time}l{layer}_n1", z)
            z = z + attended(F, w, name, y, None, 8)
            z = z + perceptron(F, w, name, normed(F, w, f"{name}_n2", z), width)
    return F.cross_entropy(F.linear(F.mean(z, 1), w("head", CLASSES, width)), labels)
