"""Types for annotations, as in jax.typing."""
from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from lavax.tracer.values.value import Value

__all__ = ["ArrayLike", "DTypeLike"]

# A union of classes, which isinstance takes, too. Functions of lavax.numpy also take nested sequences of these.
ArrayLike: TypeAlias = Value | np.ndarray | np.generic | bool | int | float | complex
DTypeLike: TypeAlias = Any  # a NumPy dtype, a name such as "float32", or a scalar type such as lavax.numpy.float32
