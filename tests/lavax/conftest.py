"""What the tests of the front door share."""
from __future__ import annotations

import pytest

from lavax.tracer.values import backend
from tests.numpy_backend import NumpyBackend


@pytest.fixture
def reference_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference interpreter in float32 in place of a device, so that only the array functions are tested."""
    monkeypatch.setattr(backend, "_factory", NumpyBackend)
    monkeypatch.setattr(backend.in_use, "runtime", None)
