"""Batch normalisation with running statistics that the caller keeps."""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.nn.batch_norm import batch_norm, batch_statistics
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.operands import ArrayLike, as_value
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value

__all__ = ["BatchNorm", "BatchNormState"]


class BatchNormState(NamedTuple):
    """Running mean and variance of each channel, [C]."""

    mean: Any
    variance: Any


class BatchNorm(Module):
    """`nn.batch_norm` of [N, features, ...]; `weight` starts at 1, `bias` at 0.

        y, state = layer(x, state, training=True)

    In training, the statistics of the batch are used, and the running ones move towards them by `momentum`, as in
    PyTorch; the running variance takes the unbiased one, which divides by one element less. Else the running statistics
    are used, and stay. Running statistics have no gradients. `initial_state` gives mean 0 and variance 1.
    """

    weight: Any
    bias: Any
    eps: float = field(static=True)
    momentum: float = field(static=True)
    features: int = field(static=True)

    def __init__(
        self,
        features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        *,
        dtype: Any = "float32",
    ) -> None:
        self.weight = lnp.ones(features, dtype) if affine else None
        self.bias = lnp.zeros(features, dtype) if affine else None
        self.eps, self.momentum, self.features = eps, momentum, features

    def initial_state(self) -> BatchNormState:
        """Statistics before any batch: mean 0, variance 1, in float32."""
        return BatchNormState(lnp.zeros(self.features, "float32"), lnp.ones(self.features, "float32"))

    def __call__(
        self, x: ArrayLike, state: BatchNormState, *, training: bool = False
    ) -> tuple[Value, BatchNormState]:
        """The normalised `x`, and the state after it. Raises ValueError in training on one element per channel."""
        if not training:
            fixed = stop_gradient(state)
            return batch_norm(x, fixed.mean, fixed.variance, self.weight, self.bias, self.eps), state
        value = as_value(x)
        count = math.prod(value.shape) // max(self.features, 1)
        if count < 2:
            raise ValueError(f"BatchNorm: training needs more than one element per channel, got {value.type}")
        mean, variance = batch_statistics(value)
        made = batch_norm(value, mean, variance, self.weight, self.bias, self.eps)
        batch = stop_gradient(BatchNormState(mean, variance * (count / (count - 1))))
        moved = (old + self.momentum * (new - old) for old, new in zip(stop_gradient(state), batch, strict=True))
        return made, BatchNormState(*moved)
