"""Names of jax.experimental: `io_callback`, `enable_x64`, `disable_x64`, and the integrator in `ode`."""
from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from lavax.base.config import enable_x64
from lavax.tracer.transforms.callbacks import io_callback

if TYPE_CHECKING:
    from lavax.experimental import ode

__all__ = ["disable_x64", "enable_x64", "io_callback", "ode"]


def __getattr__(name: str) -> Any:
    if name == "ode":  # which needs lavax.numpy
        return importlib.import_module("lavax.experimental.ode")
    raise AttributeError(f"module 'lavax.experimental' has no attribute {name!r}")


def disable_x64() -> AbstractContextManager[None]:
    """A context in which 64-bit data become 32-bit: `enable_x64(False)`."""
    return enable_x64(False)
