"""Detection by queries, as in DETR: an encoder over places, a decoder of objects; and by places, as in YOLO."""
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


def places(F: Any, w: Any, images: Any, *targets: Any, width: int = 16, outputs: int = 84) -> Any:
    """A small YOLO: stages whose parts are kept beside each other, and what is seen at three sizes."""

    def conv(name: str, x: Any, channels: int, size: int = 1, stride: int = 1) -> Any:
        return F.silu(normed_conv(F, w, name, x, channels, size, stride))

    def stage(name: str, x: Any, channels: int, blocks: int, adds: bool = True) -> Any:
        x = conv(f"{name}_in", x, channels)
        parts = [x[:, : channels // 2], x[:, channels // 2 :]]
        for block in range(blocks):
            y = conv(f"{name}b{block}_2", conv(f"{name}b{block}_1", parts[-1], channels // 2, 3), channels // 2, 3)
            parts.append(parts[-1] + y if adds else y)
        return conv(f"{name}_out", F.concatenate(parts, 1), channels)

    x, kept = conv("stem", images, width, 3, 2), []
    for level, blocks in enumerate((1, 2, 2, 1)):
        channels = width << level + 1
        x = stage(f"s{level}", conv(f"to{level}", x, channels, 3, 2), channels, blocks)
        kept.append(x)
    x = conv("pool_in", x, channels // 2)
    parts = [x]
    for _ in range(3):
        parts.append(F.max_pool2d(parts[-1], 5, 1, 2))
    high = conv("pool_out", F.concatenate(parts, 1), channels)
    middle = stage("up0", F.concatenate([F.twice_as_large(high), kept[2]], 1), channels // 2, 1, False)
    low = stage("up1", F.concatenate([F.twice_as_large(middle), kept[1]], 1), channels // 4, 1, False)
    less = conv("less0", low, channels // 4, 3, 2)
    middle = stage("down0", F.concatenate([less, middle], 1), channels // 2, 1, False)
    less = conv("less1", middle, channels // 2, 3, 2)
    high = stage("down1", F.concatenate([less, high], 1), channels, 1, False)
    loss = 0
    for level, (x, target) in enumerate(zip((low, middle, high), targets, strict=True)):
        x = conv(f"head{level}_2", conv(f"head{level}_1", x, 64, 3), 64, 3)
        x = F.conv2d(x, w(f"head{level}", outputs, 64, 1, 1), w(f"head{level}_bias", outputs))
        loss = loss + F.mean((x - target) ** 2)
    return loss
