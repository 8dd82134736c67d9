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


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Value:
    """An array with the numbers of `external_array`, which has `__dlpack__`: they are copied through host memory.

    64-bit numbers become 32-bit ones unless `lavax.enable_x64` says otherwise. An array of lavax is returned itself if
    `copy` is False. Raises DtypeError if it has no `__dlpack__`, BufferError if it cannot export to host memory, or if
    `copy` is False and it is not an array of lavax.
    """
    require_device("from_dlpack", device)
    x = external_array
    if isinstance(x, Value):
        return x if copy is False else asarray(x, copy=True) if copy else own(x)
    if not hasattr(x, "__dlpack__"):
        raise dtype_error(f"from_dlpack: {x!r:.40} of type {type(x).__name__} has no __dlpack__")
    if copy is False:
        raise BufferError("from_dlpack: numbers reach device memory by a copy only, so copy must not be False")
    return asarray(np.array(np.from_dlpack(x)))


def to_dlpack(
    self: Value,
    /,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The numbers, copied to host memory, as a DLPack capsule.

    Raises BufferError for another `dl_device` than `__dlpack_device__` gives, for a `stream`, which host memory has
    none of, and if `copy` is False.
    """
    if copy is False:
        raise BufferError("__dlpack__: numbers leave device memory by a copy only, so copy must not be False")
    if stream is not None:
        raise BufferError(f"__dlpack__: host memory has no streams, so stream must be None, got {stream!r}")
    numbers = np.asarray(self.to_host("__dlpack__()"), order="C")
    return numbers.__dlpack__(max_version=max_version, dl_device=dl_device)


def dlpack_device(self: Value) -> tuple[int, int]:
    """The kind and number of the device that `__dlpack__` exports from: host memory."""
    return _CPU, 0
