"""A model, its inputs and its loss, in lavax and in PyTorch."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = tuple[np.ndarray, ...]


def _unchanged(model: Any, state: Any) -> Any:
    return model


def _called(model: Any, *inputs: Any) -> Any:
    return model(*inputs)


def _published(model: Any) -> dict[str, np.ndarray]:
    tensors: dict[str, np.ndarray] = model.to_pretrained()[1]
    return tensors


@dataclass(frozen=True)
class ModelWorkload:
    """One line of the benchmark.

    `build(key)` gives lavax's model. Its weights, by their published names less `prefix`, are the state of the module
    that `twin()` gives in PyTorch. `draw` gives the inputs, of which models take the first `arguments`; `call`
    calls lavax's. `loss(model, *inputs)` gives the loss and a state that changes in training, with which
    `renewed(model, state)` is the next model; `twin_loss(twin, *inputs)` gives the loss. `published` gives a model's
    weights by their published names.
    """

    name: str
    build: Callable[[Any], Any]
    twin: Callable[[], Any]
    draw: Callable[[np.random.Generator], Arrays]
    loss: Callable[..., tuple[Any, Any]]
    twin_loss: Callable[..., Any]
    renewed: Callable[[Any, Any], Any] = _unchanged
    prefix: str = ""
    arguments: int = 1
    call: Callable[..., Any] = _called
    published: Callable[[Any], dict[str, np.ndarray]] = _published

    def tensors(self, model: Any) -> dict[str, np.ndarray]:
        """The weights of a model, or their gradients, by the names of the module in PyTorch."""
        return {name.removeprefix(self.prefix): array for name, array in self.published(model).items()}


def normal(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal numbers in float32."""
    return generator.standard_normal(shape, np.float32)


def tokens(generator: np.random.Generator, count: int, *shape: int) -> np.ndarray:
    """Whole numbers below `count`."""
    return generator.integers(0, count, shape, np.int32)
