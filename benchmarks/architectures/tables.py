"""Rows of tables: a transformer whose tokens are a row's numbers, and sums of embeddings of several ids."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.mixers import attended, normed


def feature_transformer(
    F: Any, w: Any, numbers: Any, targets: Any, layers: int = 3, width: int = 192, heads: int = 8
) -> Any:
    """FT-Transformer: a token of each number of a row, and one that predicts."""
    count = numbers.shape[1]
    x = numbers[:, :, None] * w("features", count, width) + w("features_bias", count, width)
    x = F.concatenate([w("class", 1, 1, width) + 0 * x[:, :1], x], 1)
    for layer in range(layers):
        name, inner = f"l{layer}", width * 4 // 3
        x = x + attended(F, w, name, normed(F, w, f"{name}_n1", x), None, heads)
        y = F.linear(normed(F, w, f"{name}_n2", x), w(f"{name}_up", 2 * inner, width), w(f"{name}_up_bias", 2 * inner))
        y = y[..., :inner] * F.relu(y[..., inner:])
        x = x + F.linear(y, w(f"{name}_down", width, inner), w(f"{name}_down_bias", width))
    x = F.relu(normed(F, w, "last", x[:, 0]))
    return F.mean((F.linear(x, w("head", 1, width), w("head_bias", 1))[:, 0] - targets) ** 2)


def bags(
    F: Any, w: Any, numbers: Any, ids: Any, clicked: Any, words: int = 50_000, width: int = 64, inner: int = 512
) -> Any:
    """Sums of the embeddings of several ids of each kind beside a perceptron of numbers, as in DLRM."""
    x = F.relu(F.linear(numbers, w("n0", inner, numbers.shape[1]), w("n0_bias", inner)))
    x = F.relu(F.linear(x, w("n1", width, inner), w("n1_bias", width)))
    found = [F.embedding_sums(ids[:, kind], w(f"table{kind}", words, width)) for kind in range(ids.shape[1])]
    x = F.concatenate([x, *found], 1)
    for layer, result in enumerate((2 * inner, inner)):
        x = F.relu(F.linear(x, w(f"t{layer}", result, x.shape[1]), w(f"t{layer}_bias", result)))
    return F.binary_cross_entropy(F.linear(x, w("head", 1, inner))[:, 0], clicked)
