"""Draws of classes that gradients go through, with an explicit key."""
from __future__ import annotations

import lavax.numpy as lnp
from lavax import random
from lavax.nn.functional import one_hot, softmax
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.transforms.grad import stop_gradient
from lavax.tracer.values.value import Value

__all__ = ["gumbel_softmax"]


def gumbel_softmax(
    logits: ArrayLike, key: ArrayLike, tau: ArrayLike = 1.0, hard: bool = False, axis: int = -1
) -> Value:
    """Draws of the classes along `axis` as shares that add up to 1; the less `tau`, the nearer to one-hot.

    softmax((logits + Gumbel noise) / tau), Jang et al. (2017), equation 2. With `hard` the result is one-hot, and its
    gradients are those of the soft one.
    """
    value = as_floating(logits)
    soft = softmax((value + random.gumbel(key, value.shape, value.dtype)) / tau, axis)
    if not hard:
        return soft
    chosen = one_hot(lnp.argmax(soft, axis=axis), soft.shape[axis], dtype=soft.dtype, axis=axis)
    result: Value = soft + stop_gradient(chosen - soft)
    return result
