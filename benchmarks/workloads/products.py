"""Workloads dominated by products: matrices of all forms, convolution, attention."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workloads.library import Library
from benchmarks.workloads.workload import Workload, normal, weighted_gradient, words


def product_workloads(large: bool) -> list[Workload]:
    """Sizes for a discrete GPU, or for a processor."""
    squares = (1024, 2048, 4096) if large else (256, 512, 1024)
    return [
        *(_matmul(f"matmul-{side}", side, side, side) for side in squares),
        _matmul("matmul-tall", 65536 if large else 8192, 256, 64),
        _matmul("matmul-wide", 64, 4096 if large else 1024, 4096 if large else 1024),
        _matmul("matmul-vector", 1, *((8192, 8192) if large else (1024, 1024))),
        _batched(*((64, 512) if large else (16, 128))),
        _convolution(*((32, 64, 128, 56) if large else (8, 32, 64, 28))),
        *_attention(*((4, 4096, 16, 64) if large else (1, 512, 4, 64))),
    ]


def square_matmul(large: bool) -> Workload:
    """The product whose best rate in a run counts as the device's limit of arithmetic."""
    return next(w for w in product_workloads(large) if w.name == ("matmul-4096" if large else "matmul-512"))


def _product(library: Library) -> Callable[..., Any]:
    return lambda a, b: a @ b


def _matmul(name: str, m: int, k: int, n: int) -> Workload:
    def draw(g: np.random.Generator) -> tuple[Any, ...]:
        return normal(g, m, k), normal(g, k, n)

    return Workload(name, _product, draw, 2 * m * k * n, words((m, k), (k, n), (m, n)))


def _batched(batch: int, side: int) -> Workload:
    shape = (batch, side, side)
    operations = 2 * batch * side**3
    return Workload(
        "matmul-batched", _product, lambda g: (normal(g, *shape), normal(g, *shape)), operations, words((3, *shape))
    )


def _convolution(examples: int, channels: int, features: int, side: int) -> Workload:
    images, kernel = (examples, channels, side, side), (features, channels, 3, 3)
    return Workload(
        "convolution",
        lambda library: library.convolution,
        lambda g: (normal(g, *images), normal(g, *kernel)),
        2 * 9 * channels * features * examples * side * side,
        words(images, kernel, (examples, features, side, side)),
    )


def _attention(batch: int, positions: int, heads: int, width: int) -> list[Workload]:
    shape = (batch, positions, heads, width)
    scores = batch * heads * positions**2

    def backward(library: Library) -> Callable[..., Any]:
        return weighted_gradient(library, lambda a: library.attention(a["q"], a["k"], a["v"]))

    def with_weights(g: np.random.Generator) -> tuple[Any, ...]:
        return {name: normal(g, *shape) for name in "qkv"}, normal(g, *shape)

    return [
        Workload(
            "attention",
            lambda library: library.attention,
            lambda g: tuple(normal(g, *shape) for _ in range(3)),
            scores * (4 * width + 5),
            words((4, *shape)),
        ),
        Workload("attention-backward", backward, with_weights, scores * (12 * width + 15), words((8, *shape))),
    ]
