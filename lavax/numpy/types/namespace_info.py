"""The inspection functions of the array API standard."""
from __future__ import annotations

from typing import Any

import numpy as np

from lavax.ir.default_dtypes import default_complex, default_float, default_integer
from lavax.ir.types import DTYPES, bfloat16, float16
from lavax.numpy._core.devices import require_device
from lavax.numpy.types.dtype_functions import isdtype

array_api_version = "2024.12"

MAX_DIMENSIONS = 64  # NumPy's: arrays are read and shown as NumPy's

# The dtypes of the standard that lavax has.
_DTYPES = {
    dtype.user_name: dtype.numpy for dtype in DTYPES.values() if dtype not in (float16, bfloat16)
}


class NamespaceInfo:
    """The capabilities of this namespace: data-dependent shapes outside `compile` only."""

    def capabilities(self) -> dict[str, Any]:
        """By name: boolean masks, data-dependent shapes, and the greatest rank."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_DIMENSIONS}

    def default_device(self) -> Any:
        """The device that arrays are made on."""
        from lavax.tracer.tracing.placement import default_device  # late: it asks for a device

        return default_device()

    def devices(self) -> list[Any]:
        """All devices that can be used."""
        from lavax.tracer.tracing.placement import devices  # late: it asks for a device

        return list(devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of numbers without a given dtype."""
        require_device("default_dtypes", device)
        return {
            "real floating": default_float().numpy,
            "complex floating": default_complex().numpy,
            "integral": default_integer().numpy,
            "indexing": default_integer().numpy,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The dtypes of the standard, by name: those of a kind as in `isdtype`. float16 and bfloat16 are none of them.

        Raises ValueError for another kind, or another device than the one that there is.
        """
        require_device("dtypes", device)
        return {name: dtype for name, dtype in _DTYPES.items() if kind is None or isdtype(dtype, kind)}


def namespace_info() -> NamespaceInfo:
    """The capabilities of this namespace, for the array API standard."""
    return NamespaceInfo()
