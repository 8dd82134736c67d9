"""Workloads dominated by memory: elementwise chains, reductions, movement, norms and losses."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workloads.library import Library
from benchmarks.workloads.workload import Workload, normal, weighted_gradient, words


def row_workloads(large: bool) -> list[Workload]:
    """Sizes for a discrete GPU, or for a processor."""
    rows, width = (16384, 2048) if large else (1024, 768)
    examples, classes = (8192, 32768) if large else (256, 4096)
    return [
        *_elementwise(1 << 27 if large else 1 << 20),
        *_norms(rows, width),
        *_losses(examples, classes),
        *_reductions(*((16384, 8192) if large else (2048, 1024))),
        *_movement(*((16384, 8192) if large else (2048, 1024))),
        *_indexing(*((1 << 20, 128, 100_000) if large else (1 << 13, 64, 10_000))),
    ]


def _elementwise(size: int) -> list[Workload]:
    def chain(library: Library) -> Callable[..., Any]:
        return lambda x, y: library.numpy.tanh((x * 0.5 + y) * x - y * y) + (x - y) * 3.0

    return [Workload("elementwise", chain, lambda g: (normal(g, size), normal(g, size)), 9 * size, words((3, size)))]


def _norms(rows: int, width: int) -> list[Workload]:
    size, shape = rows * width, (rows, width)

    def rows_and_weights(g: np.random.Generator) -> tuple[Any, ...]:
        return {"x": normal(g, *shape), "scale": normal(g, width), "shift": normal(g, width)}, normal(g, *shape)

    def backward(library: Library) -> Callable[..., Any]:
        return weighted_gradient(library, lambda a: library.layer_norm(a["x"], a["scale"], a["shift"]))

    return [
        Workload(
            "softmax", lambda library: library.softmax, lambda g: (normal(g, *shape),), 5 * size, words((2, size))
        ),
        Workload(
            "layer-norm",
            lambda library: library.layer_norm,
            lambda g: (normal(g, *shape), normal(g, width), normal(g, width)),
            8 * size,
            words((2, size), (2, width)),
        ),
        Workload("layer-norm-backward", backward, rows_and_weights, 20 * size, words((3, size), (4, width))),
    ]


def _losses(examples: int, classes: int) -> list[Workload]:
    size = examples * classes

    def scores_and_labels(g: np.random.Generator) -> tuple[Any, ...]:
        return normal(g, examples, classes), g.integers(0, classes, examples).astype(np.int32)

    def backward(library: Library) -> Callable[..., Any]:
        return library.value_and_grad(library.cross_entropy)

    return [
        Workload(
            "cross-entropy",
            lambda library: library.cross_entropy,
            scores_and_labels,
            4 * size,
            words((size,), (examples,)),
        ),
        Workload("cross-entropy-backward", backward, scores_and_labels, 7 * size, words((2, size), (examples,))),
    ]


def _reductions(rows: int, width: int) -> list[Workload]:
    size = rows * width

    def summed(*axes: int) -> Callable[[Library], Callable[..., Any]]:
        return lambda library: lambda x: library.numpy.sum(x, axis=axes)

    return [
        Workload(name, summed(*axes), lambda g: (normal(g, rows, width),), size, words((size,), (results,)))
        for name, axes, results in (
            ("sum-rows", (1,), rows),
            ("sum-columns", (0,), width),
            ("sum-all", (0, 1), 1),
        )
    ]


def _movement(rows: int, width: int) -> list[Workload]:
    size = rows * width
    shape = (32, rows // 32, width)

    def moved(library: Library) -> Callable[..., Any]:
        return lambda x: library.numpy.transpose(x, (2, 0, 1)) + 1.0

    def transposed(library: Library) -> Callable[..., Any]:
        return lambda x: library.numpy.transpose(x, (1, 0)) + 1.0

    return [
        Workload("transpose", transposed, lambda g: (normal(g, rows, width),), size, words((2, size))),
        Workload("transpose-3d", moved, lambda g: (normal(g, *shape),), size, words((2, size))),
    ]


def _indexing(count: int, width: int, places: int) -> list[Workload]:
    moved = count * width

    def table_and_places(g: np.random.Generator) -> tuple[Any, ...]:
        return normal(g, places, width), g.integers(0, places, count).astype(np.int32)

    def with_updates(g: np.random.Generator) -> tuple[Any, ...]:
        return (*table_and_places(g), normal(g, count, width))

    def embedding(library: Library) -> Callable[..., Any]:
        gradient = weighted_gradient(library, lambda table, tokens: library.numpy.tanh(table[tokens]))
        return lambda table, tokens, weights: gradient(table, weights, tokens)

    return [
        Workload(
            "gather",
            lambda library: lambda table, rows: table[rows] * 2.0,
            table_and_places,
            moved,
            words((2, moved), (count,)),
        ),
        Workload(
            "scatter-add",
            lambda library: library.scatter_add,
            with_updates,
            moved,
            words((2, places, width), (moved,), (count,)),
        ),
        Workload(
            "embedding-backward",
            embedding,
            with_updates,
            4 * moved,
            words((2, places, width), (moved,), (count,)),
        ),
    ]
