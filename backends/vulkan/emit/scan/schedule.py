"""The schedules of a scan: lanes that share lines, or invocations with lines of their own."""

from __future__ import annotations

from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class ScanSchedule:
    """How invocations share the lines of a cumulative operation."""


@dataclass(frozen=True)
class Lanes(ScanSchedule):
    """A chunk belongs to several subgroups, or to some lanes of one; each lane has `vectors` of `width` at a time.

    A workgroup has `chunks` of them, and one if a chunk belongs to several subgroups.
    """

    subgroups: int
    lanes: int
    vectors: int
    width: int
    chunks: int = 1

    @property
    def subgroup_vectors(self) -> int:
        return self.lanes * self.vectors

    @property
    def local(self) -> int:
        return self.chunks * self.subgroups * self.lanes


@dataclass(frozen=True)
class Columns(ScanSchedule):
    """An invocation has `width` neighbouring lines, and loads `ahead` elements of each at a time."""

    width: int
    ahead: int
