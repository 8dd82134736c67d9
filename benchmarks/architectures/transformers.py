"""A vision transformer with registers, and T5 with encoder and decoder."""
from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.architectures.library import CLASSES
from benchmarks.architectures.mixers import attended, normed, perceptron
from benchmarks.architectures.relative_bias import buckets


def vit_with_registers(
    F: Any, w: Any, images: Any, labels: Any, layers: int = 12, width: int = 384, registers: int = 4
) -> Any:
    """ViT-S/14 with registers, and scales for what each layer adds, as in DINOv2."""
    patches = F.conv2d(images, w("patches", width, 3, 14, 14), w("patches_bias", width), stride=14)
    x = F.transpose(patches.reshape(patches.shape[0], width, -1), (0, 2, 1)) + w("positions", 1, 256, width)
    own = w("registers", 1, registers + 1, width) + 0 * x[:, : registers + 1]
    x = F.concatenate([own, x], 1)
    for layer in range(layers):
        name = f"l{layer}"
        y = attended(F, w, name, normed(F, w, f"{name}_n1", x), None, width // 64)
        x = x + w(f"{name}_first_scale", width) * y
        y = perceptron(F, w, name, normed(F, w, f"{name}_n2", x), 4 * width)
        x = x + w(f"{name}_second_scale", width) * y
    x = normed(F, w, "last", x)
    x = F.concatenate([x[:, 0], F.mean(x[:, registers + 1 :], 1)], 1)
    return F.cross_entropy(F.linear(x, w("head", CLASSES, 2 * width)), labels)


def causal_buckets(length: int) -> tuple[np.ndarray, np.ndarray]:
    """T5's numbers of the distances to earlier places, and a large negative number for each later one."""
    later = np.triu(np.full((length, length), -1e9, np.float32), 1)
    return buckets(length), later


def t5_in_pairs(
    F: Any, w: Any, ids: Any, words_before: Any, labels: Any, places: Any, earlier: Any, later: Any,
    layers: int = 6, width: int = 512, words: int = 32128,
) -> Any:  # fmt: skip
    """T5 v1.1 small: an encoder, and a decoder that reads what the encoder found."""
    heads, inner, table = width // 64, 2 * width, w("words", words, width)

    def gated(name: str, x: Any) -> Any:
        y = F.rms_norm(x, w(f"{name}_n_scale", width))
        y = F.gelu(F.linear(y, w(f"{name}_gate", inner, width))) * F.linear(y, w(f"{name}_up", inner, width))
        return x + F.linear(y, w(f"{name}_down", width, inner))

    def read(name: str, x: Any, of: Any, bias: Any) -> Any:
        return x + attended(F, w, name, F.rms_norm(x, w(f"{name}_n_scale", width)), of, heads, bias)

    x, bias = F.embedding(ids, table), F.transpose(F.embedding(places, w("bias", 32, heads)), (2, 0, 1))
    for layer in range(layers):
        x = gated(f"e{layer}g", read(f"e{layer}", x, None, bias))
    found = F.rms_norm(x, w("found_scale", width))
    x = F.embedding(words_before, table)
    bias = F.transpose(F.embedding(earlier, w("later_bias", 32, heads)), (2, 0, 1)) + later
    for layer in range(layers):
        x = read(f"d{layer}", x, None, bias)
        x = gated(f"d{layer}g", read(f"d{layer}c", x, found, None))
    logits = F.linear(F.rms_norm(x, w("last_scale", width)), w("head", words, width))
    return F.cross_entropy(logits.reshape(-1, words), labels.reshape(-1))
