"""Eager operations on the device compile next to nothing new for a new shape."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp

OPERATIONS: list[Callable[[Any, int], Any]] = [
    lambda x, n: x + x,
    lambda x, n: lnp.sum(x),
    lambda x, n: x[n % 3 :, n // 3 : n // 2 + 1],
    lambda x, n: x @ x.T,
    lambda x, n: lnp.sort(x, 1),
]


def test_two_hundred_shapes_take_few_pipelines() -> None:
    before = lx.profiler.counters()["pipelines"]
    for n in range(1, 201):
        x = lnp.asarray(np.ones((n % 7 + 1, n), np.float32))
        for operation in OPERATIONS:
            operation(x, n)
    assert lx.profiler.counters()["pipelines"] - before <= 60
