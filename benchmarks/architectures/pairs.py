"""Losses over many: CLIP's pairs, a large vocabulary with smoothed labels, and factors of a matrix."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.mixers import perceptron


def clip(F: Any, w: Any, images: Any, texts: Any, labels: Any, width: int = 512) -> Any:
    """Two towers, unit vectors, and a softmax over the batch from both sides."""
    found = []
    for name, x in (("image", images), ("text", texts)):
        x = F.linear(x, w(f"{name}_in", width, x.shape[1]))
        x = x + perceptron(F, w, name, x, 4 * width)
        found.append(x / F.sqrt(F.sum(x**2, 1, keepdims=True)))
    logits = F.exp(w("temperature_scale", 1)) * F.linear(found[0], found[1])
    return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(F.transpose(logits, (1, 0)), labels))


def smoothed(F: Any, w: Any, ids: Any, labels: Any, words: int = 50257, width: int = 512) -> Any:
    """A perceptron, and a softmax over all words, a tenth of whose target is spread over all of them."""
    x = F.embedding(ids, w("words", words, width))
    x = x + perceptron(F, w, "l0", x, 4 * width)
    return F.cross_entropy(F.linear(x, w("head", words, width)), labels, label_smoothing=0.1)


def factors(F: Any, w: Any, users: Any, items: Any, ratings: Any, sizes: tuple[int, int] = (100000, 50000)) -> Any:
    """The squared error of products of rows of two tables, and of a number for each."""
    rows = [
        (F.embedding(ids, w(name, count, 64)), F.embedding(ids, w(f"{name}_bias", count, 1)))
        for name, ids, count in (("users", users, sizes[0]), ("items", items, sizes[1]))
    ]
    found = F.sum(rows[0][0] * rows[1][0], 1) + rows[0][1][:, 0] + rows[1][1][:, 0]
    return F.mean((found - ratings) ** 2) + 1e-4 * sum(F.mean(row**2) for row, _ in rows)
