"""The architectures with the sizes at which they are measured: loss, and inputs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.architectures import (
    alignments,
    detection,
    diffusion,
    experts,
    fields,
    generators,
    grouped,
    library,
    mixers,
    operators,
    pairs,
    pixels,
    relative_bias,
    sets,
    solvers,
    sound,
    state_spaces,
    structures,
    tables,
    transformers,
)
from benchmarks.models.workload import Arrays, normal, tokens

Loss = Callable[..., Any]
Draw = Callable[[np.random.Generator], Arrays]


def images(batch: int, size: int, labels: tuple[int, ...]) -> Draw:
    return lambda generator: (normal(generator, batch, 3, size, size), tokens(generator, *labels))


def texts(words: int, *shape: int) -> Draw:
    return lambda generator: (tokens(generator, words, *shape), tokens(generator, words, *shape))


def graphs(nodes: int, edges: int) -> Draw:
    return lambda generator: (
        normal(generator, nodes, 128),
        tokens(generator, nodes, edges),
        tokens(generator, nodes, edges),
        tokens(generator, 40, nodes),
    )


def clicks(rows: int) -> Draw:
    return lambda generator: (
        normal(generator, rows, 13),
        tokens(generator, 20000, rows, 16),
        (generator.random(rows) > 0.5).astype(np.float32),
    )


def normals(*shapes: tuple[int, ...]) -> Draw:
    return lambda generator: tuple(normal(generator, *shape) for shape in shapes)


def windows(batch: int, sides: tuple[int, ...], size: int) -> Draw:
    parts = [relative_bias.parted(side, size, size // 2) for side in sides]
    labelled = images(batch, 4 * sides[0], (1000, batch))
    return lambda generator: (*labelled(generator), relative_bias.offsets(size), *parts)


def mixed_images(batch: int) -> Draw:
    def draw(generator: np.random.Generator) -> Arrays:
        real, made = normal(generator, batch, 3, 64, 64), normal(generator, batch, 3, 64, 64)
        return real, made, generator.random((batch, 1, 1, 1), np.float32)

    return draw


def noisy(batch: int, size: int) -> Draw:
    def draw(generator: np.random.Generator) -> Arrays:
        images, noise = normal(generator, batch, 3, size, size), normal(generator, batch, 3, size, size)
        return images, 1000 * generator.random(batch, np.float32), noise

    return draw


def paired(batch: int, *features: int) -> Draw:
    def draw(generator: np.random.Generator) -> Arrays:
        return (*(normal(generator, batch, count) for count in features), np.arange(batch, dtype=np.int32))

    return draw


def ratings(rows: int, users: int, items: int) -> Draw:
    return lambda generator: (tokens(generator, users, rows), tokens(generator, items, rows), normal(generator, rows))


def paired_texts(words: int, batch: int, length: int) -> Draw:
    """Texts to read, the words before those to predict, these, and how far places are from each other."""

    def draw(generator: np.random.Generator) -> Arrays:
        ids = (tokens(generator, words, batch, length) for _ in range(3))
        return (*ids, relative_bias.buckets(length), *transformers.causal_buckets(length))

    return draw


def boxes(batch: int, size: int, objects: int) -> Draw:
    def draw(generator: np.random.Generator) -> Arrays:
        boxes = generator.random((batch, objects, 4), np.float32)
        matched = np.stack([generator.permutation(100)[:objects] for _ in range(batch)]).astype(np.int32)
        return normal(generator, batch, 3, size, size), boxes, tokens(generator, 92, batch, 100), matched

    return draw


def latents(batch: int, side: int, *others: Draw, last: float = 1000.0) -> Draw:
    """Latents, times up to the last, what the others draw, and noise."""

    def draw(generator: np.random.Generator) -> Arrays:
        start, noise = normal(generator, batch, 4, side, side), normal(generator, batch, 4, side, side)
        given = (array for other in others for array in other(generator))
        return start, last * generator.random(batch, np.float32), *given, noise

    return draw


def actions(rows: int, length: int, count: int, seen: int, last: float = 1000.0) -> Draw:
    def draw(generator: np.random.Generator) -> Arrays:
        start, noise = normal(generator, rows, count, length), normal(generator, rows, count, length)
        return start, last * generator.random(rows, np.float32), normal(generator, rows, seen), noise

    return draw


def bags(rows: int, words: int, kinds: int, each: int) -> Draw:
    def draw(generator: np.random.Generator) -> Arrays:
        clicked = (generator.random(rows) > 0.5).astype(np.float32)
        return normal(generator, rows, 13), tokens(generator, words, rows, kinds, each), clicked

    return draw


def meshes(nodes: int, edges: int) -> Draw:
    def draw(generator: np.random.Generator) -> Arrays:
        ends = tokens(generator, nodes, edges), tokens(generator, nodes, edges)
        return normal(generator, nodes, 16), normal(generator, edges, 4), *ends, tokens(generator, 40, nodes)

    return draw


def detected(batch: int, size: int) -> Draw:
    shapes = [(batch, 84, size // step, size // step) for step in (8, 16, 32)]
    return normals((batch, 3, size, size), *shapes)


def uniform(points: int, features: int) -> Draw:
    return lambda generator: (generator.random((points, 3), np.float32), normal(generator, points, features))


ARCHITECTURES: tuple[tuple[str, Loss, Draw], ...] = (
    ("vit", library.vit, images(8, 224, (1000, 8))),
    ("bert", library.bert, texts(30522, 8, 128)),
    ("mobilenet", library.mobilenet, images(16, 224, (1000, 16))),
    ("convnext", library.convnext, images(8, 224, (1000, 8))),
    ("lstm", library.lstm, texts(10000, 128, 32)),
    ("dcgan", library.dcgan, lambda generator: (normal(generator, 64, 100, 1, 1), normal(generator, 64, 3, 64, 64))),
    ("graph-network", library.graph_network, graphs(20_000, 200_000)),
    ("segmentation", library.segmentation, images(4, 256, (2, 4, 256, 256))),
    ("wavenet", library.wavenet, lambda generator: (normal(generator, 4, 1, 8192), normal(generator, 4, 1, 8192))),
    ("video", library.video, lambda generator: (normal(generator, 2, 3, 16, 64, 64), tokens(generator, 400, 2))),
    ("recommendation", library.recommendation, clicks(2048)),
    ("experts-by-products", experts.by_products, normals((2048, 512), (2048, 512))),
    ("experts-by-sorting", experts.by_sorting, normals((2048, 512), (2048, 512))),
    ("mamba", state_spaces.mamba, normals((4, 1024, 512), (4, 1024, 512))),
    ("s4d", state_spaces.s4d, normals((8, 256, 2048), (8, 256, 2048))),
    ("fourier-operator", operators.fourier_operator, normals((16, 3, 128, 128), (16, 1, 128, 128))),
    ("resnext", grouped.resnext, images(8, 224, (1000, 8))),
    ("efficientnet", grouped.efficientnet, images(16, 224, (1000, 16))),
    ("mlp-mixer", mixers.mlp_mixer, images(8, 224, (1000, 8))),
    ("perceiver", mixers.perceiver, lambda g: (normal(g, 8, 4096, 64), tokens(g, 1000, 8))),
    ("t5", relative_bias.t5, lambda g: (*texts(32128, 8, 256)(g), relative_bias.buckets(256))),
    ("swin", relative_bias.swin, windows(8, (56, 28, 14), 7)),
    ("siren", fields.siren, lambda g: (normal(g, 65536, 2), normal(g, 65536))),
    ("nerf", fields.nerf, normals((1024, 3), (1024, 3), (1024, 3))),
    ("real-nvp", generators.real_nvp, normals((4096, 64))),
    ("vq-vae", generators.vq_vae, normals((32, 3, 64, 64))),
    ("critic", generators.critic_penalty, mixed_images(64)),
    ("denoiser", diffusion.denoiser, noisy(16, 32)),
    ("point-net", sets.point_net, lambda g: (normal(g, 32, 1024, 3), tokens(g, 40, 32))),
    ("graph-attention", sets.graph_attention, graphs(20_000, 200_000)),
    ("neural-ode", solvers.neural_ode, lambda g: (normal(g, 1024, 64), tokens(g, 10, 1024))),
    ("equilibrium", solvers.equilibrium, lambda g: (normal(g, 1024, 256), tokens(g, 1000, 1024))),
    ("ctc", alignments.ctc, lambda g: (normal(g, 16, 400, 80), 1 + tokens(g, 63, 16, 60))),
    ("random-field", alignments.random_field, lambda g: (normal(g, 128, 64, 256), tokens(g, 32, 128, 64))),
    ("conformer", sound.conformer, lambda g: (normal(g, 8, 400, 80), tokens(g, 128, 8, 400))),
    ("temporal", sound.temporal, normals((32, 16, 1024), (32, 1, 1024))),
    ("vocoder", sound.vocoder, normals((8, 80, 32), (8, 1, 8192))),
    ("volume", sound.volume, normals((4, 1, 64, 64, 64), (4, 1, 64, 64, 64))),
    ("clip", pairs.clip, paired(2048, 1024, 512)),
    ("smoothed", pairs.smoothed, texts(50257, 2048)),
    ("factors", pairs.factors, ratings(8192, 100_000, 50_000)),
    ("detr", detection.detr, boxes(4, 512, 20)),
    ("vit-registers", transformers.vit_with_registers, images(16, 224, (1000, 16))),
    ("t5-pairs", transformers.t5_in_pairs, paired_texts(32128, 8, 128)),
    ("mobilenet-v3", pixels.mobilenet_v3, images(16, 224, (1000, 16))),
    ("densenet", pixels.densenet, images(8, 224, (1000, 8))),
    ("super-resolution", pixels.super_resolution, normals((16, 3, 48, 48), (16, 3, 96, 96))),
    ("autoencoder", pixels.autoencoder, normals((64, 3, 64, 64), (64, 128))),
    ("latent-denoiser", diffusion.latent_denoiser, latents(4, 64, normals((4, 77, 768)))),
    ("latent-decoder", diffusion.latent_decoder, normals((2, 4, 32, 32), (2, 3, 256, 256))),
    ("diffusion-policy", diffusion.diffusion_policy, actions(256, 16, 10, 132)),
    ("diffusion-transformer", diffusion.diffusion_transformer, latents(16, 32, lambda g: (tokens(g, 1001, 16),))),
    ("feature-transformer", tables.feature_transformer, normals((1024, 30), (1024,))),
    ("bags", tables.bags, bags(2048, 50_000, 26, 10)),
    ("pair-blocks", structures.pair_blocks, normals((128, 128, 128), (128, 128, 128))),
    ("hashed-field", fields.hashed_field, uniform(65536, 4)),
    ("messages", sets.messages, meshes(10_000, 100_000)),
    ("duality", state_spaces.duality, normals((4, 1024, 512), (4, 1024, 512))),
    ("speech-features", sound.speech_features, normals((4, 1, 48_000), (4, 149, 768))),
    ("yolo", detection.places, detected(16, 320)),
)
