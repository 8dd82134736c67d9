"""Training workloads: an optimizer's update, and steps of four kinds of networks."""
from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from benchmarks.workloads.library import Library
from benchmarks.workloads.trees import leaves_of, map_tree
from benchmarks.workloads.workload import Workload, normal, words

RATE = 1e-2

Loss = Callable[..., Any]


def training_workloads(large: bool) -> list[Workload]:
    """Sizes for a discrete GPU, or for a processor."""
    return [
        _adam(512 if large else 16),
        _mlp(*((4096, (1024, 4096, 4096, 1024)) if large else (128, (784, 256, 256, 10)))),
        _convolution_network(*((256, 64, 32) if large else (32, 16, 16))),
        _transformer(*((8, 1024, 16, 1024) if large else (2, 128, 4, 128))),
        _language_model(*((8, 1024, 12, 768, 4, 16384) if large else (8, 64, 4, 128, 2, 256))),
    ]


def deep_network(layers: int, width: int = 16, examples: int = 8) -> Workload:
    """The gradient of a network of equal layers, for its compile time."""

    def define(library: Library) -> Callable[..., Any]:
        def loss(weights: Any, x: Any) -> Any:
            for weight in weights:
                x = library.numpy.tanh(x @ weight)
            return library.numpy.sum(x)

        return library.value_and_grad(loss)

    def draw(g: np.random.Generator) -> tuple[Any, ...]:
        return [normal(g, width, width, scale=width**-0.5) for _ in range(layers)], normal(g, examples, width)

    return Workload(
        f"gradient-of-{layers}-layers",
        define,
        draw,
        6 * layers * examples * width**2,
        words((2, layers, width, width), (examples, width)),
    )


def _step(loss_of: Callable[[Library], Loss]) -> Callable[[Library], Callable[..., Any]]:
    """A step of gradient descent on a loss: the new parameters and the loss."""

    def define(library: Library) -> Callable[..., Any]:
        value_and_grad = library.value_and_grad(loss_of(library))

        def step(parameters: Any, *batch: Any) -> Any:
            value, gradients = value_and_grad(parameters, *batch)
            return library.descend(parameters, gradients, RATE), value

        return step

    return define


def _adam(width: int) -> Workload:
    shapes = [(number % 7 + 1, width) for number in range(150)]
    size = sum(map(prod, shapes))

    def draw(g: np.random.Generator) -> tuple[Any, ...]:
        def tree() -> dict[str, np.ndarray]:
            return {f"p{number}": normal(g, *shape) for number, shape in enumerate(shapes)}

        return tree(), tree(), tree(), {name: abs(moment) for name, moment in tree().items()}

    return Workload("adam-150", lambda library: library.adam, draw, 12 * size, words((7, size)))


def _mlp(examples: int, widths: tuple[int, ...]) -> Workload:
    pairs = list(pairwise(widths))

    def loss_of(library: Library) -> Loss:
        def loss(layers: Any, x: Any, labels: Any) -> Any:
            for layer in layers[:-1]:
                x = library.relu(x @ layer["w"] + layer["b"])
            return library.cross_entropy(x @ layers[-1]["w"] + layers[-1]["b"], labels)

        return loss

    def draw(g: np.random.Generator) -> tuple[Any, ...]:
        layers = [{"w": normal(g, m, n, scale=m**-0.5), "b": normal(g, n)} for m, n in pairs]
        return layers, normal(g, examples, widths[0]), g.integers(0, widths[-1], examples).astype(np.int32)

    weights = sum(m * n for m, n in pairs)
    moved = words((3, weights), (examples, widths[0]), (2 * examples, sum(widths[1:])))
    return Workload("mlp-step", _step(loss_of), draw, 6 * examples * weights, moved)


def _convolution_network(examples: int, channels: int, side: int) -> Workload:
    classes, pixels = 10, side * side

    def loss_of(library: Library) -> Loss:
        def loss(network: Any, images: Any, labels: Any) -> Any:
            x = library.relu(library.convolution(images, network["first"]))
            x = library.relu(library.convolution(x, network["second"]))
            features = library.numpy.mean(x, axis=(2, 3))
            return library.cross_entropy(features @ network["w"], labels)

        return loss

    def draw(g: np.random.Generator) -> tuple[Any, ...]:
        network = {
            "first": normal(g, channels, 3, 3, 3, scale=0.2),
            "second": normal(g, 2 * channels, channels, 3, 3, scale=(9 * channels) ** -0.5),
            "w": normal(g, 2 * channels, classes, scale=0.1),
        }
        return network, normal(g, examples, 3, side, side), g.integers(0, classes, examples).astype(np.int32)

    products = 9 * (3 * channels + 2 * channels * channels)
    values = examples * pixels * (3 + 3 * channels)
    return Workload("convnet-step", _step(loss_of), draw, 6 * examples * pixels * products, words((3, values)))


def _transformer(batch: int, positions: int, heads: int, width: int) -> Workload:
    hidden = 4 * width

    def loss_of(library: Library) -> Loss:
        def block(p: Any, x: Any) -> Any:
            normed = library.layer_norm(x, p["scale1"], p["shift1"])
            q, k, v = (
                (normed @ p[name]).reshape((batch, positions, heads, width // heads)) for name in ("wq", "wk", "wv")
            )
            attended = library.attention(q, k, v).reshape((batch, positions, width))
            x = x + attended @ p["wo"]
            normed = library.layer_norm(x, p["scale2"], p["shift2"])
            return x + library.relu(normed @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

        def loss(p: Any, x: Any, target: Any) -> Any:
            difference = block(p, x) - target
            return library.numpy.mean(difference * difference)

        return loss

    def parameters(g: np.random.Generator) -> dict[str, np.ndarray]:
        found = {name: normal(g, width, width, scale=width**-0.5) for name in ("wq", "wk", "wv", "wo")}
        found |= {"w1": normal(g, width, hidden, scale=width**-0.5), "b1": normal(g, hidden)}
        found |= {"w2": normal(g, hidden, width, scale=hidden**-0.5), "b2": normal(g, width)}
        found |= {name: normal(g, width) for name in ("scale1", "shift1", "scale2", "shift2")}
        return found

    def draw(g: np.random.Generator) -> tuple[Any, ...]:
        return parameters(g), normal(g, batch, positions, width), normal(g, batch, positions, width)

    tokens = batch * positions
    weights = sum(leaf.size for leaf in leaves_of(parameters(np.random.default_rng(0))))
    operations = 6 * tokens * 12 * width**2 + 12 * tokens * positions * width
    return Workload("transformer-step", _step(loss_of), draw, operations, words((3, weights), (30, tokens, width)))


def _language_model(batch: int, positions: int, heads: int, width: int, layers: int, vocabulary: int) -> Workload:
    """A step of Adam for a GPT: one table embeds and scores tokens, which see earlier tokens."""
    hidden = 4 * width

    def block(library: Library, p: Any, x: Any) -> Any:
        normed = library.layer_norm(x, p["scale1"], p["shift1"])
        q, k, v = (
            (normed @ p["qkv"])[..., part * width : (part + 1) * width].reshape(
                (batch, positions, heads, width // heads)
            )
            for part in range(3)
        )
        attended = library.attention(q, k, v, causal=True).reshape((batch, positions, width))
        x = x + attended @ p["out"]
        normed = library.layer_norm(x, p["scale2"], p["shift2"])
        return x + library.relu(normed @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    def loss_of(library: Library) -> Loss:
        def loss(p: Any, tokens: Any, labels: Any) -> Any:
            x = p["tokens"][tokens] + p["positions"]
            for layer in p["blocks"]:
                x = block(library, layer, x)
            x = library.layer_norm(x, p["scale"], p["shift"]).reshape((batch * positions, width))
            return library.cross_entropy(x @ p["tokens"].T, labels.reshape((batch * positions,)))

        return loss

    def define(library: Library) -> Callable[..., Any]:
        value_and_grad = library.value_and_grad(loss_of(library))

        def step(p: Any, first: Any, second: Any, tokens: Any, labels: Any) -> Any:
            value, gradients = value_and_grad(p, tokens, labels)
            return *library.adam(p, gradients, first, second), value

        return step

    def layer(g: np.random.Generator) -> dict[str, np.ndarray]:
        found = {"qkv": normal(g, width, 3 * width, scale=0.05), "out": normal(g, width, width, scale=0.05)}
        found |= {"w1": normal(g, width, hidden, scale=0.05), "b1": normal(g, hidden, scale=0.05)}
        found |= {"w2": normal(g, hidden, width, scale=0.05), "b2": normal(g, width, scale=0.05)}
        return found | {name: normal(g, width) for name in ("scale1", "shift1", "scale2", "shift2")}

    def parameters(g: np.random.Generator) -> dict[str, Any]:
        return {
            "tokens": normal(g, vocabulary, width, scale=0.05),
            "positions": normal(g, positions, width, scale=0.05),
            "blocks": [layer(g) for _ in range(layers)],
            "scale": normal(g, width),
            "shift": normal(g, width),
        }

    def draw(g: np.random.Generator) -> tuple[Any, ...]:
        p = parameters(g)
        tokens, labels = g.integers(0, vocabulary, (2, batch, positions)).astype(np.int32)
        first = map_tree(lambda leaf: normal(g, *leaf.shape, scale=0.01), p)
        # Away from 0, because there a step's rounding errors would be as large as the step.
        second = map_tree(lambda leaf: (0.01 + abs(normal(g, *leaf.shape, scale=0.01))) ** 2, p)
        return p, first, second, tokens, labels

    count = batch * positions
    weights = sum(leaf.size for leaf in leaves_of(parameters(np.random.default_rng(0))))
    products = layers * (12 * width**2 + positions * width) + vocabulary * width  # of which each query sees a half
    moved = words((6, weights), (30, layers, count, width), (4, count, vocabulary))
    return Workload("gpt-step", define, draw, 6 * count * products + 12 * weights, moved)
