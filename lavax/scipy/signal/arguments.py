"""Arrays, modes and lengths as users give them to convolutions."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from lavax.numpy._core.broadcasting import common_dtype
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.values.value import Value

Mode: TypeAlias = Literal["full", "same", "valid"]
MODES = ("full", "same", "valid")


def require(name: str, what: str, given: Any, known: Sequence[str]) -> None:
    if given not in known:
        raise ValueError(f"scipy.signal.{name}: {what} must be one of {', '.join(known)}, got {given!r}")


def require_rate(name: str, fs: float) -> None:
    if not fs > 0:
        raise ValueError(f"scipy.signal.{name}: fs must be positive, got {fs!r}")


def warn(name: str, message: str) -> None:
    """A UserWarning, as SciPy gives it."""
    warnings.warn(f"scipy.signal.{name}: {message}", UserWarning, stacklevel=4)


def pair(name: str, in1: ArrayLike, in2: ArrayLike, rank: int | None = None) -> tuple[Value, Value]:
    first, second = common_dtype([in1, in2])
    if first.ndim != second.ndim or (rank is not None and first.ndim != rank) or not first.size or not second.size:
        wanted = "of one rank" if rank is None else f"with {rank} axes"
        raise shape_error(f"scipy.signal.{name} takes two arrays {wanted}, with elements: {first.type}, {second.type}")
    return first, second


def kept_range(extent: int, width: int, mode: str, late: bool) -> tuple[int, int]:
    """The start and the length of what a mode keeps of extent + width - 1 sums; `late`: of two middles the second."""
    longer, shorter = max(extent, width), min(extent, width)
    return {
        "full": (0, extent + width - 1),
        "same": (width // 2 if late else (width - 1) // 2, extent),
        "valid": (shorter - 1, longer - shorter + 1),
    }[mode]
