"""Arrays exchanged with other libraries, through NumPy arrays in host memory."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.numpy._core.devices import require_device
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import own
from lavax.numpy.arrays.creation import asarray
from lavax.tracer.values.value import Value

__all__ = ["from_dlpack"]

_CPU = 1  # kDLCPU


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Value:
    """An array with the numbers of `x`, which has `__dlpack__`: they are copied through host memory.

    Raises DtypeError if it has no `__dlpack__`, ValueError if `copy` is False, BufferError if `x` cannot export to host
    memory.
    """
    require_device("from_dlpack", device)
    if copy is False:
        raise ValueError("from_dlpack: numbers reach device memory by a copy only, so copy must not be False")
    if isinstance(x, Value):
        return own(x)
    if not hasattr(x, "__dlpack__"):
        raise dtype_error(f"from_dlpack: {x!r:.40} of type {type(x).__name__} has no __dlpack__")
    return asarray(np.array(np.from_dlpack(x)))


def to_dlpack(self: Value, **options: Any) -> Any:
    """The numbers in host memory as a DLPack capsule; `options` as numpy.ndarray.__dlpack__ takes them."""
    options.pop("stream", None)
    return np.ascontiguousarray(self.to_host("__dlpack__()")).__dlpack__(**options)


def dlpack_device(self: Value) -> tuple[int, int]:
    """The kind and number of the device that `__dlpack__` exports from: host memory."""
    return _CPU, 0
