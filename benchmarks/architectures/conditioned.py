"""A diffusion transformer, whose layers a time and a class scale and shift."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.diffusion import embedded_time
from benchmarks.architectures.mixers import attended, perceptron


def diffusion_transformer(
    F: Any, w: Any, latents: Any, times: Any, labels: Any, noise: Any, layers: int = 12, width: int = 384
) -> Any:
    """DiT-S/2: tokens of 2 x 2 places of a latent, whose noise is predicted."""
    batch, channels, rows, columns = latents.shape
    patches = F.conv2d(latents, w("patches", width, channels, 2, 2), w("patches_bias", width), stride=2)
    x = F.transpose(patches.reshape(batch, width, -1), (0, 2, 1)) + w("positions", 1, rows * columns // 4, width)
    given = embedded_time(F, w, times, latents, width // 4)
    given = F.silu(F.linear(given, w("time", width, width)) + F.embedding(labels, w("classes", 1001, width)))

    def changes(name: str, count: int) -> Any:
        change = F.linear(given, w(name, count * width, width), w(f"{name}_bias", count * width))[:, None]
        return [change[..., part * width : (part + 1) * width] for part in range(count)]

    for layer in range(layers):
        name = f"l{layer}"
        shift, scale, gate, last_shift, last_scale, last_gate = changes(f"{name}_c", 6)
        x = x + gate * attended(F, w, name, F.standardized(x) * (1 + scale) + shift, None, width // 64)
        x = x + last_gate * perceptron(F, w, name, F.standardized(x) * (1 + last_scale) + last_shift, 4 * width)
    shift, scale = changes("last_c", 2)
    x = F.linear(F.standardized(x) * (1 + scale) + shift, w("out", 4 * channels, width), w("out_bias", 4 * channels))
    x = F.transpose(x.reshape(batch, rows // 2, columns // 2, 2, 2, channels), (0, 5, 1, 3, 2, 4))
    return F.mean((x.reshape(latents.shape) - noise) ** 2)
