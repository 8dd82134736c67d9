"""Elimination by panels of four columns, as on CPU drivers, against elimination in registers, as on GPUs."""

from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
from lavax.tracer import bind
from tests.backends.vulkan.run.execution import run_as_gpu


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (8, 8), (13, 13), (29, 6), (2, 40, 21)])
def test_elimination_is_the_same_bit_by_bit(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)
    x[..., 0, 0] = 0  # so that the first rows are exchanged
    if shape[-1] > 4:
        x[..., 5] = 0  # no pivot at all
    graph = lx.trace(lambda x: bind("lu", x))(x)
    (in_registers,) = run_as_gpu(graph, [x])
    by_panels = lx.compile(lambda x: bind("lu", x))(x)
    np.testing.assert_array_equal(np.asarray(by_panels), in_registers)
