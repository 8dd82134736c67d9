"""The functions that workloads use, so that each workload is written once for all libraries."""
from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from benchmarks.workloads.trees import map_tree


class UnsupportedError(Exception):
    """This library cannot run the workload."""


class Library:
    """Functions on a library's arrays: NumPy's names in `numpy`, and compositions of them.

    A library that has its own function for one of these overrides it, so that each library is measured at its best.
    """

    numpy: Any

    def softmax(self, x: Any) -> Any:
        """Of the last axis."""
        exponentials = self.numpy.exp(x - self.numpy.max(x, axis=-1, keepdims=True))
        return exponentials / self.numpy.sum(exponentials, axis=-1, keepdims=True)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        """Of the last axis."""
        centred = x - self.numpy.mean(x, axis=-1, keepdims=True)
        variance = self.numpy.mean(centred * centred, axis=-1, keepdims=True)
        return centred / self.numpy.sqrt(variance + 1e-5) * scale + shift

    def cross_entropy(self, scores: Any, labels: Any) -> Any:
        """The mean over rows of scores; `labels` has the index of the right score per row."""
        shifted = scores - self.numpy.max(scores, axis=-1, keepdims=True)
        logarithm = self.numpy.log(self.numpy.sum(self.numpy.exp(shifted), axis=-1))
        return self.numpy.mean(logarithm - self.numpy.take_along_axis(shifted, labels[:, None], axis=-1)[:, 0])

    def attention(self, q: Any, k: Any, v: Any, causal: bool = False) -> Any:
        """For arrays (batch, positions, heads, size); if `causal`, a query sees no key after its own position."""
        scores = self.numpy.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        if causal:
            positions = self.numpy.arange(q.shape[1])
            scores = self.numpy.where(positions[:, None] >= positions, scores, -inf)
        return self.numpy.einsum("bhqk,bkhd->bqhd", self.softmax(scores), v)

    def convolution(self, x: Any, kernel: Any) -> Any:
        """For NCHW images and an OIHW kernel, padded so that the result has the images' size."""
        raise UnsupportedError

    def scatter_add(self, target: Any, places: Any, updates: Any) -> Any:
        """`target` with rows added at the row indices `places`, which may repeat."""
        return target.at[places].add(updates)

    def relu(self, x: Any) -> Any:
        return self.numpy.maximum(x, 0.0)

    def value_and_grad(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that returns `function`'s value, a scalar, and its gradient by the first argument, a tree."""
        raise UnsupportedError

    def descend(self, parameters: Any, gradients: Any, rate: float) -> Any:
        """A step of gradient descent."""
        return map_tree(lambda parameter, gradient: parameter - rate * gradient, parameters, gradients)

    def adam(self, parameters: Any, gradients: Any, first: Any, second: Any) -> Any:
        """A step of Adam without bias correction: parameters and both moments."""
        first = map_tree(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = map_tree(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        parameters = map_tree(
            lambda p, m, v: p - 1e-3 * m / (self.numpy.sqrt(v) + 1e-8), parameters, first, second
        )
        return parameters, first, second
