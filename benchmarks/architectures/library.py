"""The architectures: losses of `F`, the functions of a library, weights by their names, and inputs.

`w(name, *shape)` gives a weight. Those whose names end in "_scale" are ones, in "_bias" zeros, and others normal
numbers over the root of their inputs.
"""
from __future__ import annotations

from typing import Any

CLASSES = 1000


def transformer_layer(F: Any, w: Any, name: str, x: Any, width: int, heads: int) -> Any:
    """A layer of a transformer, with norms before attention and the gated part."""
    batch, length = x.shape[:2]
    y = F.layer_norm(x, w(f"{name}_n1_scale", width), w(f"{name}_n1_bias", width))
    mixed = F.linear(y, w(f"{name}_qkv", 3 * width, width), w(f"{name}_qkv_bias", 3 * width))
    split = mixed.reshape(batch, length, 3, heads, width // heads)
    q, k, v = (F.transpose(split[:, :, part], (0, 2, 1, 3)) for part in range(3))
    y = F.transpose(F.attention(q, k, v), (0, 2, 1, 3)).reshape(batch, length, width)
    x = x + F.linear(y, w(f"{name}_out", width, width), w(f"{name}_out_bias", width))
    y = F.layer_norm(x, w(f"{name}_n2_scale", width), w(f"{name}_n2_bias", width))
    y = F.gelu(F.linear(y, w(f"{name}_up", 4 * width, width), w(f"{name}_up_bias", 4 * width)))
    return x + F.linear(y, w(f"{name}_down", width, 4 * width), w(f"{name}_down_bias", width))


def vit(F: Any, w: Any, images: Any, labels: Any, layers: int = 12, width: int = 768, heads: int = 12) -> Any:
    """ViT-B/16."""
    patches = F.conv2d(images, w("patches", width, 3, 16, 16), w("patches_bias", width), stride=16)
    x = F.transpose(patches.reshape(patches.shape[0], width, -1), (0, 2, 1))
    x = F.concatenate([w("class", 1, 1, width) + 0 * x[:, :1], x], 1) + w("positions", 1, x.shape[1] + 1, width)
    for layer in range(layers):
        x = transformer_layer(F, w, f"l{layer}", x, width, heads)
    x = F.layer_norm(x[:, 0], w("last_scale", width), w("last_bias", width))
    return F.cross_entropy(F.linear(x, w("head", CLASSES, width)), labels)


def bert(F: Any, w: Any, ids: Any, labels: Any, layers: int = 12, width: int = 768, words: int = 30522) -> Any:
    """An encoder of BERT-base's size that predicts every word."""
    x = F.embedding(ids, w("words", words, width)) + w("positions", 1, ids.shape[1], width)
    x = F.layer_norm(x, w("first_scale", width), w("first_bias", width))
    for layer in range(layers):
        x = transformer_layer(F, w, f"l{layer}", x, width, width // 64)
    logits = F.linear(x, w("words", words, width), w("words_bias", words))
    return F.cross_entropy(logits.reshape(-1, words), labels.reshape(-1))


def normed_conv(F: Any, w: Any, name: str, x: Any, channels: int, size: int, stride: int = 1, groups: int = 1) -> Any:
    weight = w(name, channels, x.shape[1] // groups, size, size)
    x = F.conv2d(x, weight, None, stride=stride, padding=size // 2, groups=groups)
    return F.batch_norm(x, w(f"{name}_n_scale", channels), w(f"{name}_n_bias", channels))


# Of each stage: how much wider a block is inside, its channels, blocks, and the stride of the first.
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def mobilenet(F: Any, w: Any, images: Any, labels: Any) -> Any:
    """MobileNet v2."""
    x, number = F.relu6(normed_conv(F, w, "stem", images, 32, 3, 2)), 0
    for wider, channels, blocks, stride in _STAGES:
        for block in range(blocks):
            before, inner, name = x, x.shape[1] * wider, f"b{number}"
            if wider > 1:
                x = F.relu6(normed_conv(F, w, f"{name}_in", x, inner, 1))
            x = F.relu6(normed_conv(F, w, f"{name}_each", x, inner, 3, stride if block == 0 else 1, inner))
            x = normed_conv(F, w, f"{name}_out", x, channels, 1)
            x, number = x + before if block else x, number + 1
    x = F.relu6(normed_conv(F, w, "last", x, 1280, 1))
    return F.cross_entropy(F.linear(F.mean(x, (2, 3)), w("head", CLASSES, 1280)), labels)


def convnext(F: Any, w: Any, images: Any, labels: Any) -> Any:
    """ConvNeXt-T."""

    def norm(name: str, x: Any) -> Any:
        weights = w(f"{name}_scale", x.shape[1]), w(f"{name}_bias", x.shape[1])
        return F.transpose(F.layer_norm(F.transpose(x, (0, 2, 3, 1)), *weights), (0, 3, 1, 2))

    x, number = norm("stem_n", F.conv2d(images, w("stem", 96, 3, 4, 4), None, stride=4)), 0
    for width, blocks in ((96, 3), (192, 3), (384, 9), (768, 3)):
        if width != x.shape[1]:
            x = F.conv2d(norm(f"to{width}_n", x), w(f"to{width}", width, x.shape[1], 2, 2), None, stride=2)
        for _ in range(blocks):
            name, number = f"b{number}", number + 1
            y = F.conv2d(x, w(f"{name}_each", width, 1, 7, 7), w(f"{name}_each_bias", width), padding=3, groups=width)
            y = F.layer_norm(F.transpose(y, (0, 2, 3, 1)), w(f"{name}_n_scale", width), w(f"{name}_n_bias", width))
            y = F.gelu(F.linear(y, w(f"{name}_up", 4 * width, width), w(f"{name}_up_bias", 4 * width)))
            y = F.linear(y, w(f"{name}_down", width, 4 * width), w(f"{name}_down_bias", width))
            x = x + F.transpose(y * w(f"{name}_scale", width), (0, 3, 1, 2))
    return F.cross_entropy(F.linear(F.mean(x, (2, 3)), w("head", CLASSES, 768)), labels)


def lstm(F: Any, w: Any, ids: Any, labels: Any, width: int = 512, words: int = 10000) -> Any:
    """Two layers that predict the next word; ids are [t,n]."""
    x = F.embedding(ids, w("words", words, width))
    for layer in range(2):
        weights = w(f"l{layer}_in", 4 * width, width), w(f"l{layer}_hidden", 4 * width, width)
        x = F.lstm(x, *weights, w(f"l{layer}_bias", 4 * width))
    return F.cross_entropy(F.linear(x, w("head", words, width)).reshape(-1, words), labels.reshape(-1))


def dcgan(F: Any, w: Any, noise: Any, real: Any) -> Any:
    """The losses of generator and discriminator of DCGAN, added."""

    def norm(name: str, x: Any) -> Any:
        return F.batch_norm(x, w(f"{name}_n_scale", x.shape[1]), w(f"{name}_n_bias", x.shape[1]))

    x = F.relu(norm("g0", F.conv_transpose2d(noise, w("g0", 100, 512, 4, 4))))
    for channels in (256, 128, 64):
        x = F.conv_transpose2d(x, w(f"g{channels}", 2 * channels, channels, 4, 4), None, 2, 1)
        x = F.relu(norm(f"g{channels}", x))
    made = F.tanh(F.conv_transpose2d(x, w("g_last", 64, 3, 4, 4), None, 2, 1))

    def judged(x: Any) -> Any:
        x = F.leaky_relu(F.conv2d(x, w("d0", 64, 3, 4, 4), None, 2, 1))
        for channels in (128, 256, 512):
            x = F.conv2d(x, w(f"d{channels}", channels, channels // 2, 4, 4), None, 2, 1)
            x = F.leaky_relu(norm(f"d{channels}", x))
        return F.conv2d(x, w("d_last", 1, 512, 4, 4)).reshape(-1)

    of_made, of_real = judged(made), judged(real)
    ones, zeros = 0 * of_made + 1, 0 * of_made
    return sum(F.binary_cross_entropy(x, y) for x, y in ((of_made, ones), (of_real, ones), (of_made, zeros)))


def graph_network(F: Any, w: Any, x: Any, sources: Any, targets: Any, labels: Any) -> Any:
    """Three layers, each of which adds what neighbours are after a product."""
    for layer, (features, result) in enumerate(((128, 256), (256, 256), (256, 40))):
        x = F.linear(x, w(f"l{layer}", result, features))
        x = 0.1 * F.segment_sum(x[sources], targets, x.shape[0]) + w(f"l{layer}_bias", result)
        x = F.relu(x) if layer < 2 else x
    return F.cross_entropy(x, labels)


def segmentation(F: Any, w: Any, images: Any, labels: Any, width: int = 32) -> Any:
    """A U-Net with batch norms, pools and transposed convolutions."""

    def twice(name: str, x: Any, channels: int) -> Any:
        x = F.relu(normed_conv(F, w, f"{name}_1", x, channels, 3))
        return F.relu(normed_conv(F, w, f"{name}_2", x, channels, 3))

    x, kept = images, []
    for level in range(4):
        kept.append(twice(f"down{level}", x, width << level))
        x = F.max_pool2d(kept[-1], 2)
    x = twice("middle", x, width << 4)
    for level in reversed(range(4)):
        x = F.conv_transpose2d(x, w(f"up{level}", width << level + 1, width << level, 2, 2), None, 2)
        x = twice(f"after{level}", F.concatenate([x, kept[level]], 1), width << level)
    logits = F.transpose(F.conv2d(x, w("head", 2, width, 1, 1)), (0, 2, 3, 1))
    return F.cross_entropy(logits.reshape(-1, 2), labels.reshape(-1))


def wavenet(F: Any, w: Any, x: Any, y: Any, width: int = 64) -> Any:
    """Twenty gated layers of convolutions whose dilation doubles, twice up to 512."""
    x, total = F.conv1d(x, w("in", width, 1, 1)), 0
    for layer in range(20):
        spread, name = 1 << layer % 10, f"l{layer}"
        z = F.conv1d(x, w(name, 2 * width, width, 3), w(f"{name}_bias", 2 * width), padding=spread, dilation=spread)
        z = F.tanh(z[:, :width]) * F.sigmoid(z[:, width:])
        total = total + F.conv1d(z, w(f"{name}_skip", width, width, 1))
        if layer < 19:
            x = x + F.conv1d(z, w(f"{name}_next", width, width, 1))
    return ((F.conv1d(F.relu(total), w("head", 1, width, 1)) - y) ** 2).mean()


def video(F: Any, w: Any, x: Any, labels: Any) -> Any:
    """Four convolutions of 3 x 3 x 3 with group norms."""
    for channels in (32, 64, 128, 256):
        weight = w(f"c{channels}", channels, x.shape[1], 3, 3, 3)
        x = F.conv3d(x, weight, None, stride=1 if channels == 32 else 2, padding=1)
        x = F.relu(F.group_norm(x, 8, w(f"c{channels}_n_scale", channels), w(f"c{channels}_n_bias", channels)))
    return F.cross_entropy(F.linear(F.mean(x, (2, 3, 4)), w("head", 400, 256)), labels)


def recommendation(F: Any, w: Any, numbers: Any, ids: Any, clicked: Any, tables: int = 16, width: int = 32) -> Any:
    """Products of pairs of embeddings, as in DLRM."""
    first = F.relu(F.linear(F.relu(F.linear(numbers, w("n1", 256, 13))), w("n2", width, 256)))
    found = [F.embedding(ids[:, table], w(f"table{table}", 20000, width)) for table in range(tables)]
    each = F.concatenate([value.reshape(-1, 1, width) for value in (first, *found)], 1)
    pairs = F.einsum("bik,bjk->bij", each, each).reshape(-1, (tables + 1) ** 2)
    x, features = F.concatenate([first, pairs], 1), (tables + 1) ** 2 + width
    for layer, result in enumerate((512, 256)):
        x, features = F.relu(F.linear(x, w(f"t{layer}", result, features), w(f"t{layer}_bias", result))), result
    return F.binary_cross_entropy(F.linear(x, w("head", 1, 256)).reshape(-1), clicked)


