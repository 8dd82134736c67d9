"""Dropout with an explicit key (Srivastava et al. 2014)."""
from __future__ import annotations

from collections.abc import Sequence

import lavax.numpy as lnp
from lavax import random
from lavax.nn.modules.module import Module, field
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.axes import normal_axes
from lavax.numpy._core.operands import ArrayLike, own
from lavax.tracer.values.value import Value

__all__ = ["Dropout", "dropout"]


def dropout(x: ArrayLike, p: float, key: ArrayLike, shared_axes: Sequence[int] = ()) -> Value:
    """`x` with elements set to 0 with probability `p`, and all others divided by 1 - p.

    Elements along `shared_axes` are dropped together: (2, 3) drops whole channels of [N, C, H, W].
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: p is a probability, got {p}")
    value = as_floating(x)
    if p == 0:
        return own(value)
    if p == 1:
        return lnp.zeros_like(value)
    shared = normal_axes("dropout", shared_axes, value.type)
    shape = tuple(1 if axis in shared else extent for axis, extent in enumerate(value.shape))
    result: Value = lnp.where(random.bernoulli(key, 1 - p, shape), value * (1 / (1 - p)), 0.0)
    return result


class Dropout(Module):
    """`nn.dropout` in training, the identity in inference: `layer(x, key=key)`, `layer(x)`.

    Each call needs a key of its own: split one key for all dropouts of a model, and take a new one for each step.
    """

    p: float = field(static=True, default=0.5)
    shared_axes: tuple[int, ...] = field(static=True, default=())

    def __call__(self, x: ArrayLike, *, key: ArrayLike | None = None) -> Value:
        return as_floating(x) if key is None else dropout(x, self.p, key, self.shared_axes)
