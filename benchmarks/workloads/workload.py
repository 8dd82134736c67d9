"""A workload: a function, its arguments, and the least that it must compute and move."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.workloads.library import Library

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Workload:
    """`define(library)` returns the function; `draw(generator)` its arguments, trees of NumPy arrays.

    `operations` counts floating-point operations: one per addition, product or function value. `nbytes` counts the
    bytes that must be read from memory or written to it at least once.
    """

    name: str
    define: Callable[[Library], Callable[..., Any]]
    draw: Callable[[np.random.Generator], Arguments]
    operations: int
    nbytes: int

    def arguments(self) -> Arguments:
        """The same on every call."""
        return self.draw(np.random.default_rng(0))


def normal(generator: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    """float32 numbers."""
    return np.float32(scale) * generator.standard_normal(shape, np.float32)


def words(*shapes: Sequence[int]) -> int:
    """Bytes of arrays of 32-bit elements."""
    return 4 * sum(int(np.prod(shape)) for shape in shapes)


def weighted_gradient(library: Library, function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of sum(weights · function(first, *rest)) by `first`; called with (first, weights, *rest)."""

    def loss(first: Any, weights: Any, *rest: Any) -> Any:
        return library.numpy.sum(weights * function(first, *rest))

    value_and_grad = library.value_and_grad(loss)
    return lambda *arguments: value_and_grad(*arguments)[1]
