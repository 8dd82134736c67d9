"""Weights drawn from a distribution that does not depend on their shape."""
from __future__ import annotations

from typing import Any

from lavax import random
from lavax.nn.initializers.initializer import Initializer
from lavax.numpy._core.operands import ArrayLike
from lavax.random.continuous import Extents
from lavax.tracer.values.value import Value


def uniform(scale: float = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer of uniform numbers in [0, scale)."""
    default = dtype

    def init(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
        return random.uniform(key, shape, default if dtype is None else dtype) * scale

    return init


def normal(stddev: float = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer of normal numbers of mean 0 and standard deviation `stddev`."""
    default = dtype

    def init(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
        return random.normal(key, shape, default if dtype is None else dtype) * stddev

    return init


def truncated_normal(
    stddev: float = 1e-2, dtype: Any = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """An initializer of standard normal numbers between `lower` and `upper`, times `stddev`.

    So the standard deviation is less than `stddev`: 0.88 of it for the default bounds.
    """
    default = dtype

    def init(key: ArrayLike, shape: Extents, dtype: Any = None) -> Value:
        held = default if dtype is None else dtype
        return random.truncated_normal(key, lower, upper, shape, held) * stddev

    return init
