"""Sequences of arrays, as arguments of functions that join arrays or choose among them."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from lavax.numpy._core.errors import dtype_error, shape_error
from lavax.numpy._core.movement import rows
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

Arrays: TypeAlias = "Sequence[ArrayLike] | Value | np.ndarray"


def parts_of(name: str, arrays: Arrays) -> Sequence[ArrayLike]:
    """The arrays of a sequence. Raises ShapeError if there is none, DtypeError for anything but sequences."""
    if not isinstance(arrays, (Value, Iterable)):
        raise dtype_error(f"{name} takes a sequence of arrays, got {arrays!r:.40} of type {type(arrays).__name__}")
    parts: Sequence[ArrayLike] = rows(arrays) if isinstance(arrays, Value) else list(arrays)
    if not parts:
        raise shape_error(f"{name} needs at least one array")
    return parts
