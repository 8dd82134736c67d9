"""Names of jax.experimental: `io_callback`, `enable_x64`, `disable_x64`, and the integrator in `ode`."""
from __future__ import annotations

from contextlib import AbstractContextManager

from lavax.base.config import enable_x64
from lavax.tracer.transforms.callbacks import io_callback

__all__ = ["disable_x64", "enable_x64", "io_callback"]


def disable_x64() -> AbstractContextManager[None]:
    """A context in which 64-bit data become 32-bit: `enable_x64(False)`."""
    return enable_x64(False)
