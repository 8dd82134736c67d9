"""The tracer's tests run on the NumPy backend: they are about Python, not about the device."""
from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from lavax.base.counters import snapshot
from lavax.tracer.values.backend import register
from tests.numpy_backend import NumpyBackend


@pytest.fixture(autouse=True)
def backend() -> Iterator[NumpyBackend]:
    made = NumpyBackend()
    before = register(lambda: made)
    yield made
    register(before)


@pytest.fixture
def counted() -> Callable[[str], int]:
    """How much a counter has grown since the test began."""
    start = snapshot()
    return lambda name: snapshot()[name] - start[name]
