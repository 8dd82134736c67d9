"""Detection by queries, as in DETR: an encoder over places, a decoder of objects."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.library import normed_conv
from benchmarks.architectures.mixers import attended, normed


def detr(
    F: Any, w: Any, images: Any, boxes: Any, labels: Any, matched: Any, width: int = 256, layers: int = 3
) -> Any:
    """Queries, of which those in `matched` [b,n] belong to objects; the loss of their classes and boxes."""
    x = images
    for level, channels in enumerate((32, 64, 128, 256, width)):
        x = F.relu(normed_conv(F, w, f"c{level}", x, channels, 3, 2))
    batch = x.shape[0]
    x = F.transpose(x.reshape(batch, width, -1), (0, 2, 1)) + w("places", 1, x.shape[2] * x.shape[3], width)
    queries = w("queries", 1, 100, width) + F.zeros((batch, 100, width), x)

    def fed(name: str, x: Any) -> Any:
        z = F.relu(F.linear(x, w(f"{name}_up", 4 * width, width), w(f"{name}_up_bias", 4 * width)))
        return normed(F, w, f"{name}_n2", x + F.linear(z, w(f"{name}_down", width, 4 * width)))

    for layer in range(layers):
        name = f"e{layer}"
        x = fed(name, normed(F, w, f"{name}_n1", x + attended(F, w, name, x, None, 8)))
    for layer in range(layers):
        name = f"d{layer}"
        queries = normed(F, w, f"{name}_n1", queries + attended(F, w, f"{name}_own", queries, None, 8))
        queries = fed(name, normed(F, w, f"{name}_n3", queries + attended(F, w, name, queries, x, 8)))
    found = F.sigmoid(F.linear(queries, w("boxes", 4, width), w("boxes_bias", 4)))
    logits = F.linear(queries, w("classes", 92, width), w("classes_bias", 92))
    chosen = found[F.arange(batch, matched)[:, None], matched]
    return F.cross_entropy(logits.reshape(-1, 92), labels.reshape(-1)) + 5 * F.mean(F.abs(chosen - boxes))
