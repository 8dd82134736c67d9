"""Places of true elements: each writes its own where updates are joined in memory, else they are searched for."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.passes.prepare.pipeline import prepare
from tests.backends.vulkan.run.execution import backend

RANDOM = np.random.default_rng(6)
COUNT = 10_001


@pytest.mark.parametrize("size", [1, 700, COUNT, COUNT + 300])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 1.0])
def test_places_are_numpys(share: float, size: int) -> None:
    """Asked for fewer than there are, for more, and for more than there could be."""
    mask = RANDOM.random(COUNT) < share
    (found,) = lx.compile(lambda x: lnp.nonzero(x, size=size, fill_value=-5))(mask)
    expected = np.full(size, -5)
    true = np.nonzero(mask)[0][:size]
    expected[: len(true)] = true
    np.testing.assert_array_equal(found, expected)


def test_places_along_two_axes_and_what_is_there() -> None:
    x = RANDOM.normal(size=(97, 113)).astype("f")
    many = int((x > 0.5).sum())
    rows, columns, chosen = lx.compile(lambda x: (*(at := lnp.nonzero(x > 0.5, size=many + 9)), x[at]))(x)
    expected = np.nonzero(x > 0.5)
    np.testing.assert_array_equal(rows[:many], expected[0])
    np.testing.assert_array_equal(columns[:many], expected[1])
    np.testing.assert_array_equal(chosen[:many], x[expected])


def test_nobody_searches_where_places_are_joined_in_memory() -> None:
    graph = lx.trace(lambda x: lnp.nonzero(x, size=4000))(np.zeros(COUNT, bool))
    for target in (backend().target, target_of(GENERIC_GPU, 1 << 34, 1 << 32)):
        assert "search_sorted" not in {node.op for node in prepare(graph, target).nodes}
    other = lx.trace(lambda x, y: lnp.searchsorted(lnp.cumsum(x), y))(np.zeros(COUNT, bool), np.arange(COUNT))
    assert "search_sorted" in {node.op for node in prepare(other, backend().target).nodes}
