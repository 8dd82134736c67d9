"""Functions with the names and meanings they have in SciPy; each module is imported when it is first used."""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lavax.scipy import special

if TYPE_CHECKING:
    from lavax.scipy import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        stats,
    )

__all__ = [
    "cluster",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"lavax.scipy.{name}")
    raise AttributeError(f"module 'lavax.scipy' has no attribute {name!r}")
