"""Types for annotations, as in jax.typing."""
from __future__ import annotations

from typing import Any

from lavax.numpy._core.operands import ArrayLike

__all__ = ["ArrayLike", "DTypeLike"]

DTypeLike = Any  # a NumPy dtype, a name such as "float32", or a scalar type such as lavax.numpy.float32
