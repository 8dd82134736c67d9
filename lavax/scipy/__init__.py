"""Functions with the names and meanings they have in SciPy; each module is imported when it is first used."""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lavax.scipy import special

if TYPE_CHECKING:
    from lavax.scipy import linalg, sparse, stats

_IMPORTED_WHEN_USED = frozenset({"linalg", "sparse", "stats"})


def __getattr__(name: str) -> Any:
    if name in _IMPORTED_WHEN_USED:
        return importlib.import_module(f"lavax.scipy.{name}")
    raise AttributeError(f"module 'lavax.scipy' has no attribute {name!r}")


__all__ = ["linalg", "sparse", "special", "stats"]
