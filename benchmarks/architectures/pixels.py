"""Convolutional networks: MobileNet v3, DenseNet, super-resolution, and a variational autoencoder."""
from __future__ import annotations

from typing import Any

from benchmarks.architectures.library import CLASSES, normed_conv


def _hard_sigmoid(F: Any, x: Any) -> Any:
    return F.relu6(x + 3) / 6


# Of each block: its windows, its channels inside, its channels, whether it has squeeze and excitation, whether its
# nonlinearity is hard-swish, and its stride.
_BLOCKS = (
    (3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1),
)  # fmt: skip


def mobilenet_v3(F: Any, w: Any, images: Any, labels: Any, blocks: Any = _BLOCKS) -> Any:
    """MobileNet v3, large."""

    def swish(x: Any) -> Any:
        return x * _hard_sigmoid(F, x)

    x = swish(normed_conv(F, w, "stem", images, 16, 3, 2))
    for number, (size, inner, channels, squeezes, swishes, stride) in enumerate(blocks):
        before, name, bend = x, f"b{number}", swish if swishes else F.relu
        if inner != x.shape[1]:
            x = bend(normed_conv(F, w, f"{name}_in", x, inner, 1))
        x = bend(normed_conv(F, w, f"{name}_each", x, inner, size, stride, inner))
        if squeezes:
            less = inner // 4
            s = F.relu(F.linear(F.mean(x, (2, 3)), w(f"{name}_less", less, inner), w(f"{name}_less_bias", less)))
            s = _hard_sigmoid(F, F.linear(s, w(f"{name}_more", inner, less), w(f"{name}_more_bias", inner)))
            x = x * s[:, :, None, None]
        x = normed_conv(F, w, f"{name}_out", x, channels, 1)
        x = x + before if x.shape == before.shape else x
    x = F.mean(swish(normed_conv(F, w, "last", x, 6 * x.shape[1], 1)), (2, 3))
    x = swish(F.linear(x, w("wide", 1280, x.shape[1]), w("wide_bias", 1280)))
    return F.cross_entropy(F.linear(x, w("head", CLASSES, 1280)), labels)


def densenet(
    F: Any, w: Any, images: Any, labels: Any, blocks: tuple[int, ...] = (6, 12, 24, 16), growth: int = 32
) -> Any:
    """DenseNet-121: each layer reads the results of all before it in its block."""

    def bent(name: str, x: Any) -> Any:
        return F.relu(F.batch_norm(x, w(f"{name}_scale", x.shape[1]), w(f"{name}_bias", x.shape[1])))

    x = F.max_pool2d(F.relu(normed_conv(F, w, "stem", images, 2 * growth, 7, 2)), 2)
    for block, layers in enumerate(blocks):
        for layer in range(layers):
            name = f"b{block}l{layer}"
            y = F.conv2d(bent(f"{name}_n1", x), w(f"{name}_in", 4 * growth, x.shape[1], 1, 1))
            y = F.conv2d(bent(f"{name}_n2", y), w(f"{name}_out", growth, 4 * growth, 3, 3), padding=1)
            x = F.concatenate([x, y], 1)
        if block < len(blocks) - 1:
            x = F.conv2d(bent(f"t{block}_n", x), w(f"t{block}", x.shape[1] // 2, x.shape[1], 1, 1))
            batch, channels, rows, columns = x.shape
            x = F.mean(x.reshape(batch, channels, rows // 2, 2, columns // 2, 2), (3, 5))
    return F.cross_entropy(F.linear(F.mean(bent("last", x), (2, 3)), w("head", CLASSES, x.shape[1])), labels)


def super_resolution(F: Any, w: Any, small: Any, large: Any, blocks: int = 16, width: int = 64) -> Any:
    """EDSR's baseline: residual blocks without norms, and twice as many pixels each way out of channels."""

    def conv(name: str, x: Any, channels: int) -> Any:
        return F.conv2d(x, w(name, channels, x.shape[1], 3, 3), w(f"{name}_bias", channels), padding=1)

    x = first = conv("first", small, width)
    for block in range(blocks):
        x = x + conv(f"b{block}_out", F.relu(conv(f"b{block}_in", x, width)), width)
    x = conv("wider", conv("after", x, width) + first, 4 * width)
    batch, _, rows, columns = x.shape
    x = F.transpose(x.reshape(batch, width, 2, 2, rows, columns), (0, 1, 4, 2, 5, 3))
    return F.mean(F.abs(conv("last", x.reshape(batch, width, 2 * rows, 2 * columns), 3) - large))


def autoencoder(F: Any, w: Any, images: Any, noise: Any, width: int = 32, latent: int = 128) -> Any:
    """A convolutional variational autoencoder, with its loss of noisy codes."""
    x, sizes = images, (width, 2 * width, 4 * width, 8 * width)
    for layer, channels in enumerate(sizes):
        x = F.conv2d(x, w(f"e{layer}", channels, x.shape[1], 4, 4), None, stride=2, padding=1)
        x = F.silu(F.group_norm(x, 8, w(f"e{layer}_scale", channels), w(f"e{layer}_bias", channels)))
    shape = x.shape
    rows = x.reshape(shape[0], -1)
    codes = F.linear(rows, w("codes", 2 * latent, rows.shape[1]), w("codes_bias", 2 * latent))
    centre, spread = codes[:, :latent], codes[:, latent:]
    z = centre + F.exp(0.5 * spread) * noise
    x = F.linear(z, w("from", rows.shape[1], latent), w("from_bias", rows.shape[1])).reshape(shape)
    for layer, channels in enumerate((*sizes[-2::-1], 3)):
        x = F.conv_transpose2d(x, w(f"d{layer}", x.shape[1], channels, 4, 4), None, 2, 1)
        if channels > 3:
            x = F.silu(F.group_norm(x, 8, w(f"d{layer}_scale", channels), w(f"d{layer}_bias", channels)))
    penalty = F.mean(centre * centre + F.exp(spread) - spread - 1)
    return F.mean((x - images) ** 2) + 0.001 * penalty
