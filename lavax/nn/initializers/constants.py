"""Weights that are all the same."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp
from lavax.ir.default_dtypes import default_float
from lavax.nn.initializers.initializer import Initializer
from lavax.numpy._core.operands import ArrayLike
from lavax.random.continuous import Extents
from lavax.tracer.values.value import Value


def zeros(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
    """Zeros of `shape`, floats by default. The key is not read. Itself an initializer."""
    return lnp.zeros(shape, dtype)


def ones(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
    """Ones of `shape`, floats by default. The key is not read. Itself an initializer."""
    return lnp.ones(shape, dtype)


def constant(value: ArrayLike, dtype: Any = None) -> Initializer:
    """An initializer of `value` everywhere; an array broadcasts to the shape."""
    default = dtype

    def init(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
        held = default if dtype is None else dtype
        return lnp.full(shape, value, default_float() if held is None else held)

    return init
