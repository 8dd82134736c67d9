"""Transformers whose attention has biases of relative positions: T5's encoder, and windows that shift, as in Swin."""
from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.architectures.library import CLASSES
from benchmarks.architectures.mixers import attended, normed, perceptron


def buckets(length: int, count: int = 32, furthest: int = 128) -> np.ndarray:
    """T5's number of the distance from each place to each: exact for near ones, by logarithms for others."""
    distance = np.arange(length)[None] - np.arange(length)[:, None]
    half, exact, far = count // 2, count // 4, np.maximum(np.abs(distance), 1)
    coarse = exact + np.log(far / exact) / np.log(furthest / exact) * (half - exact)
    near = np.where(np.abs(distance) < exact, np.abs(distance), np.minimum(coarse, half - 1).astype(int))
    return (near + half * (distance > 0)).astype(np.int32)


def t5(
    F: Any, w: Any, ids: Any, labels: Any, places: Any, layers: int = 6, width: int = 512, words: int = 32128
) -> Any:
    """The encoder of T5 v1.1 small, which predicts every word."""
    heads, inner = width // 64, 2 * width
    x = F.embedding(ids, w("words", words, width))
    bias = F.transpose(F.embedding(places, w("bias", 32, heads)), (2, 0, 1))
    for layer in range(layers):
        name = f"l{layer}"
        y = F.rms_norm(x, w(f"{name}_n1_scale", width))
        x = x + attended(F, w, name, y, None, heads, bias)
        y = F.rms_norm(x, w(f"{name}_n2_scale", width))
        y = F.gelu(F.linear(y, w(f"{name}_gate", inner, width))) * F.linear(y, w(f"{name}_up", inner, width))
        x = x + F.linear(y, w(f"{name}_down", width, inner))
    logits = F.linear(F.rms_norm(x, w("last_scale", width)), w("head", words, width))
    return F.cross_entropy(logits.reshape(-1, words), labels.reshape(-1))


def offsets(size: int) -> np.ndarray:
    """The number of the distance in two dimensions from each place of a window to each."""
    places = np.stack(np.meshgrid(np.arange(size), np.arange(size), indexing="ij")).reshape(2, -1)
    distance = places[:, :, None] - places[:, None] + size - 1
    return (distance[0] * (2 * size - 1) + distance[1]).astype(np.int32)


def parted(side: int, size: int, shift: int) -> np.ndarray:
    """A large negative number between places of a shifted window that were not neighbours: [windows,s,s]."""
    part = np.digitize(np.arange(side), [side - size, side - shift])
    parts = part[:, None] * 3 + part
    rows = parts.reshape(side // size, size, side // size, size).transpose(0, 2, 1, 3).reshape(-1, size * size)
    return np.where(rows[:, None] == rows[:, :, None], 0, -100).astype(np.float32)


def swin(
    F: Any,
    w: Any,
    images: Any,
    labels: Any,
    places: Any,
    *parts: Any,
    blocks: tuple[int, ...] = (2, 2, 6, 2),
    width: int = 96,
    size: int = 7,
) -> Any:
    """Swin-T; of each stage with shifts, `parts` has the biases between parts of windows."""
    x = F.transpose(F.conv2d(images, w("stem", width, 3, 4, 4), w("stem_bias", width), stride=4), (0, 2, 3, 1))
    for stage, count in enumerate(blocks):
        if stage:
            quarters = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
            x = normed(F, w, f"s{stage}_n", F.concatenate(quarters, 3))
            x = F.linear(x, w(f"s{stage}", x.shape[3] // 2, x.shape[3]))
        batch, side, channels = x.shape[0], x.shape[1], x.shape[3]
        heads, across = channels // 32, side // size
        for block in range(count):
            name, shift = f"s{stage}b{block}", size // 2 if block % 2 and across > 1 else 0
            y = normed(F, w, f"{name}_n1", x)
            y = F.roll(y, (-shift, -shift), (1, 2)) if shift else y
            y = F.transpose(y.reshape(batch, across, size, across, size, channels), (0, 1, 3, 2, 4, 5))
            bias = F.transpose(F.embedding(places, w(f"{name}_table", (2 * size - 1) ** 2, heads)), (2, 0, 1))
            if shift:
                bias = F.tile(bias[None] + parts[stage][:, None], (batch, 1, 1, 1))
            y = attended(F, w, name, y.reshape(-1, size * size, channels), None, heads, bias)
            y = F.transpose(y.reshape(batch, across, across, size, size, channels), (0, 1, 3, 2, 4, 5))
            y = y.reshape(x.shape)
            x = x + (F.roll(y, (shift, shift), (1, 2)) if shift else y)
            x = x + perceptron(F, w, name, normed(F, w, f"{name}_n2", x), 4 * channels)
    x = F.mean(normed(F, w, "last", x), (1, 2))
    return F.cross_entropy(F.linear(x, w("head", CLASSES, x.shape[1])), labels)
