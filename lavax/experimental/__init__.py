"""Names of jax.experimental: `io_callback`, `enable_x64`, `disable_x64`, the integrator in `ode`, `checkify`."""
from __future__ import annotations

import importlib
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from lavax.base.config import enable_x64
from lavax.tracer.transforms.callbacks import io_callback

if TYPE_CHECKING:
    from lavax.experimental import checkify, ode

__all__ = ["checkify", "disable_x64", "enable_x64", "io_callback", "ode"]


def __getattr__(name: str) -> Any:
    if name in ("checkify", "ode"):  # which need the rest of lavax
        return importlib.import_module(f"lavax.experimental.{name}")
    raise AttributeError(f"module 'lavax.experimental' has no attribute {name!r}")


def disable_x64() -> AbstractContextManager[None]:
    """A context in which 64-bit data become 32-bit: `enable_x64(False)`."""
    return enable_x64(False)
