"""Networks of grouped convolutions, and of channels by themselves with squeeze and excitation."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.library import CLASSES, normed_conv


def resnext(F: Any, w: Any, images: Any, labels: Any, blocks: tuple[int, ...] = (3, 4, 6, 3)) -> Any:
    """ResNeXt-50, 32 x 4d."""
    x = F.max_pool2d(F.relu(normed_conv(F, w, "stem", images, 64, 7, 2)), 2)
    for stage, count in enumerate(blocks):
        for block in range(count):
            name, inner, stride = f"s{stage}b{block}", 128 << stage, 2 if stage and not block else 1
            z = F.relu(normed_conv(F, w, f"{name}_in", x, inner, 1))
            z = F.relu(normed_conv(F, w, f"{name}_each", z, inner, 3, stride, groups=32))
            z = normed_conv(F, w, f"{name}_out", z, 2 * inner, 1)
            x = F.relu(z + (x if block else normed_conv(F, w, f"{name}_by", x, 2 * inner, 1, stride)))
    return F.cross_entropy(F.linear(F.mean(x, (2, 3)), w("head", CLASSES, x.shape[1])), labels)


# Of each stage: how much wider a block is inside, its channels, blocks, the stride of the first, and its windows.
_STAGES = (
    (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)  # fmt: skip


def efficientnet(F: Any, w: Any, images: Any, labels: Any, stages: Any = _STAGES) -> Any:
    """EfficientNet-B0, without dropped paths."""
    x, number = F.silu(normed_conv(F, w, "stem", images, 32, 3, 2)), 0
    for wider, channels, blocks, stride, size in stages:
        for block in range(blocks):
            before, inner, name = x, x.shape[1] * wider, f"b{number}"
            less = x.shape[1] // 4
            if wider > 1:
                x = F.silu(normed_conv(F, w, f"{name}_in", x, inner, 1))
            x = F.silu(normed_conv(F, w, f"{name}_each", x, inner, size, stride if block == 0 else 1, inner))
            s = F.silu(F.linear(F.mean(x, (2, 3)), w(f"{name}_less", less, inner), w(f"{name}_less_bias", less)))
            s = F.sigmoid(F.linear(s, w(f"{name}_more", inner, less), w(f"{name}_more_bias", inner)))
            x = normed_conv(F, w, f"{name}_out", x * s[:, :, None, None], channels, 1)
            x, number = x + before if block else x, number + 1
    x = F.silu(normed_conv(F, w, "last", x, 4 * x.shape[1], 1))
    return F.cross_entropy(F.linear(F.mean(x, (2, 3)), w("head", CLASSES, x.shape[1])), labels)
