"""The schedules of a map: elementwise, or through tiles or blocks if it reads along another axis than it writes."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class MapSchedule:
    """How invocations share the elements of a map."""


@dataclass(frozen=True)
class Elementwise(MapSchedule):
    """An invocation has `strips` elements, or vectors of them, a workgroup apart: with more, more loads are in flight.
    """

    strips: int = 1


@dataclass(frozen=True)
class VectorTiles(MapSchedule):
    """Transpose tiles of vectors (transpose_vectors.py)."""


@dataclass(frozen=True)
class ElementTiles(MapSchedule):
    """Transpose tiles of single elements (transpose_elements.py)."""


@dataclass(frozen=True)
class RegisterBlocks(MapSchedule):
    """Transposed blocks in registers (transpose_blocks.py)."""
