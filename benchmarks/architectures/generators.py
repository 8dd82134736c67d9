"""Models of data: a normalizing flow, a codebook of vectors, and a critic whose slope counts."""
from __future__ import annotations

from typing import Any


def real_nvp(F: Any, w: Any, x: Any, couplings: int = 8, inner: int = 256) -> Any:
    """Affine couplings of halves in turn; the negative logarithm of the density."""
    half, total = x.shape[1] // 2, 0
    for coupling in range(couplings):
        kept, changed = (x[:, :half], x[:, half:]) if coupling % 2 else (x[:, half:], x[:, :half])
        name, z = f"c{coupling}", kept
        for layer in range(2):
            features = z.shape[1]
            z = F.relu(F.linear(z, w(f"{name}l{layer}", inner, features), w(f"{name}l{layer}_bias", inner)))
        z = F.linear(z, w(f"{name}_out", 2 * half, inner), w(f"{name}_out_bias", 2 * half))
        scale = F.tanh(z[:, :half])
        changed = changed * F.exp(scale) + z[:, half:]
        total = total + F.sum(scale, 1)
        x = F.concatenate([kept, changed] if coupling % 2 else [changed, kept], 1)
    return F.mean(F.sum(0.5 * x * x, 1) - total)


def vq_vae(F: Any, w: Any, images: Any, codes: int = 512, width: int = 64) -> Any:
    """The nearest code of each place, gradients straight through, and losses of codes and of commitment."""
    x = F.relu(F.conv2d(images, w("e0", width, 3, 4, 4), w("e0_bias", width), stride=2, padding=1))
    x = F.relu(F.conv2d(x, w("e1", 2 * width, width, 4, 4), w("e1_bias", 2 * width), stride=2, padding=1))
    z = F.transpose(F.conv2d(x, w("e2", width, 2 * width, 3, 3), w("e2_bias", width), padding=1), (0, 2, 3, 1))
    rows, table = z.reshape(-1, width), w("codes", codes, width)
    distance = F.sum(table**2, 1) - 2 * F.linear(rows, table)
    found = F.embedding(F.argmin(distance, 1), table)
    loss = F.mean((F.constant(rows) - found) ** 2) + 0.25 * F.mean((rows - F.constant(found)) ** 2)
    z = F.transpose((rows + F.constant(found - rows)).reshape(z.shape), (0, 3, 1, 2))
    x = F.relu(F.conv2d(z, w("d0", 2 * width, width, 3, 3), w("d0_bias", 2 * width), padding=1))
    x = F.relu(F.conv_transpose2d(x, w("d1", 2 * width, width, 4, 4), w("d1_bias", width), 2, 1))
    x = F.conv_transpose2d(x, w("d2", width, 3, 4, 4), w("d2_bias", 3), 2, 1)
    return loss + F.mean((x - images) ** 2)


def critic_penalty(F: Any, w: Any, real: Any, made: Any, share: Any) -> Any:
    """The critic's loss of WGAN-GP: its slope between real and made images should be 1."""

    def judged(x: Any) -> Any:
        for layer, channels in enumerate((64, 128, 256, 512)):
            weight = w(f"d{layer}", channels, x.shape[1], 4, 4)
            x = F.leaky_relu(F.conv2d(x, weight, w(f"d{layer}_bias", channels), 2, 1))
        return F.conv2d(x, w("d_last", 1, 512, 4, 4)).reshape(-1)

    between = share * real + (1 - share) * made
    slope = F.gradient(judged, between)
    size = F.sqrt(F.sum(slope**2, (1, 2, 3)) + 1e-12)
    return F.mean(judged(made)) - F.mean(judged(real)) + 10 * F.mean((size - 1) ** 2)
