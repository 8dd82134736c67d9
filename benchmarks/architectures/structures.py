"""Pairs of places of a molecule: triangles of them are multiplied and attended, as in AlphaFold."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.mixers import normed


def _triangles(F: Any, w: Any, name: str, x: Any) -> Any:
    """What the pairs (i, k) and (j, k) say of the pair (i, j); x[i,j,c]."""
    width, y = x.shape[2], normed(F, w, f"{name}_n", x)
    first, second = (
        F.sigmoid(F.linear(y, w(f"{name}_{part}_gate", width, width))) * F.linear(y, w(f"{name}_{part}", width, width))
        for part in ("first", "second")
    )
    found = F.linear(normed(F, w, f"{name}_m", F.einsum("ikc,jkc->ijc", first, second)), w(f"{name}_out", width, width))
    return x + F.sigmoid(F.linear(y, w(f"{name}_gate", width, width))) * found


def _attention(F: Any, w: Any, name: str, x: Any, heads: int) -> Any:
    """Each row's places attend to each other, with biases of their pairs."""
    rows, count, width = x.shape
    y = normed(F, w, f"{name}_n", x)
    bias = F.transpose(F.linear(y, w(f"{name}_bias_of", heads, width)), (2, 0, 1))[None]
    q, k, v = (
        F.transpose(F.linear(y, w(f"{name}_{part}", width, width)).reshape(rows, count, heads, -1), (0, 2, 1, 3))
        for part in ("q", "k", "v")
    )
    found = F.transpose(F.biased_attention(q, k, v, bias), (0, 2, 1, 3)).reshape(x.shape)
    gate = F.sigmoid(F.linear(y, w(f"{name}_gate", width, width), w(f"{name}_gate_bias", width)))
    return x + F.linear(gate * found, w(f"{name}_out", width, width))


def pair_blocks(F: Any, w: Any, pairs: Any, target: Any, layers: int = 2, heads: int = 4) -> Any:
    """pairs[i,j,c]: triangles both ways, attention along rows and columns, and a perceptron, in each layer."""
    x, width = pairs, pairs.shape[2]
    for layer in range(layers):
        name = f"l{layer}"
        x = _triangles(F, w, f"{name}_to", x)
        x = F.transpose(_triangles(F, w, f"{name}_of", F.transpose(x, (1, 0, 2))), (1, 0, 2))
        x = _attention(F, w, f"{name}_rows", x, heads)
        x = F.transpose(_attention(F, w, f"{name}_columns", F.transpose(x, (1, 0, 2)), heads), (1, 0, 2))
        y = F.relu(F.linear(normed(F, w, f"{name}_n", x), w(f"{name}_up", 4 * width, width)))
        x = x + F.linear(y, w(f"{name}_down", width, 4 * width))
    return F.mean((x - target) ** 2)
