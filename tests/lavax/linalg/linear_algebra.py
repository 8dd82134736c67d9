"""What the tests of lavax.linalg share: matrices of known condition, and gradients by central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import lavax as lx
from lavax.ir import interpret
from tests.lavax.numpy.arrays import traced

EPSILON = 2.0**-23


def with_condition(shape: Sequence[int], condition: float) -> np.ndarray:
    """Matrices whose singular values go evenly, by their logarithms, from 1 down to 1 / condition."""
    random = np.random.default_rng([0, *shape])
    *stack, rows, columns = shape
    rank = min(rows, columns)
    left = np.linalg.qr(random.normal(size=(*stack, rows, rank)))[0]
    right = np.linalg.qr(random.normal(size=(*stack, columns, rank)))[0]
    values = np.geomspace(1, 1 / condition, rank)
    return np.asarray((left * values) @ np.swapaxes(right, -1, -2), np.float32)


def definite(shape: Sequence[int], condition: float = 50) -> np.ndarray:
    """Symmetric positive definite matrices."""
    random = np.random.default_rng([0, *shape])
    vectors = np.linalg.qr(random.normal(size=shape))[0]
    product = (vectors * np.geomspace(1, 1 / condition, shape[-1])) @ np.swapaxes(vectors, -1, -2)
    return np.asarray((product + np.swapaxes(product, -1, -2)) / 2, np.float32)


def weighted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of all that a function gives, each element multiplied by another number."""

    def loss(*arguments: Any) -> Any:
        results = function(*arguments)
        total = lx.numpy.zeros(())
        for result in results if isinstance(results, tuple) else (results,):
            numbers = lx.numpy.reshape(lx.numpy.arange(1, result.size + 1, dtype="float32"), result.shape)
            total = total + lx.numpy.sum(lx.numpy.cos(numbers) * result)
        return total

    return loss


def slope(loss: Callable[..., Any], arrays: Sequence[np.ndarray], directions: Sequence[np.ndarray]) -> float:
    """The derivative along the directions, by a central difference in float64."""
    graph, step = traced(loss, *arrays), 1e-5
    ends = [
        interpret(graph, *(a.astype(np.float64) + sign * step * d for a, d in zip(arrays, directions, strict=True)))[0]
        for sign in (1, -1)
    ]
    return float(ends[0] - ends[1]) / (2 * step)
