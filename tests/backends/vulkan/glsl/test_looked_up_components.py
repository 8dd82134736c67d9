"""Gathered elements whose numbers are components of vectors: they are known where the vectors are written.

At the ends of an array a component's place may depend on no variable, while the vector's does.
"""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from tests.backends.vulkan.run.execution import backend_with, run

LONG = 33000


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("dtype", [np.float32, np.uint16, np.int8])
@pytest.mark.parametrize("first", [0, 33, 34])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_a_few_gathered_elements_are_joined_to_many(
    count: int, first: int, dtype: type[np.generic], kind: str
) -> None:
    generator = np.random.default_rng(count)
    x, y = (generator.integers(0, 99, LONG).astype(dtype) for _ in range(2))
    places = generator.integers(0, LONG, count, np.int32)
    graph = lx.trace(lambda x, y, places: lnp.concatenate([y[:first], x[places], y]))(x, y, places)
    (found,) = run(graph, [x, y, places], device=backend_with(kind=kind))
    np.testing.assert_array_equal(found, np.concatenate([y[:first], x[places], y]))


def test_numbers_at_numbers() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((2, LONG), np.float32)
    places, others = generator.integers(0, 9, 9, np.int32), generator.integers(0, 9, 2, np.int32)
    graph = lx.trace(lambda x, y, places, others: lnp.concatenate([x[places[others]], y]))(x, y, places, others)
    (found,) = run(graph, [x, y, places, others])
    np.testing.assert_array_equal(found, np.concatenate([x[places[others]], y]))
