"""What an initializer is."""
from __future__ import annotations

from typing import Any, Protocol

from lavax.numpy._core.operands import ArrayLike
from lavax.random.continuous import Extents
from lavax.tracer.values.value import Value


class Initializer(Protocol):
    """Makes weights [*shape] from a key; `dtype` None is the dtype that the initializer was made with."""

    def __call__(self, key: ArrayLike, shape: Extents, dtype: Any = None, /) -> Value: ...
