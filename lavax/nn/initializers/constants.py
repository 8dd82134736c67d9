"""Weights that are all the same."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.nn.initializers.initializer import Initializer
from lavax.numpy._core.operands import ArrayLike
from lavax.random.continuous import Extents
from lavax.tracer.values.value import Value


def zeros(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
    """Zeros of `shape`, float32 by default. The key is not read. Itself an initializer."""
    return lnp.zeros(shape, "float32" if dtype is None else dtype)


def ones(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
    """Ones of `shape`, float32 by default. The key is not read. Itself an initializer."""
    return lnp.ones(shape, "float32" if dtype is None else dtype)


def constant(value: ArrayLike, dtype: Any = "float32") -> Initializer:
    """An initializer of `value` everywhere; an array broadcasts to the shape."""
    default = dtype

    def init(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
        return lnp.full(shape, value, default if dtype is None else dtype)

    return init
