"""The memory that kernels have touched since the last barrier."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

ARENA = "%arena"  # no name of an argument
Memory = tuple[str, int, int]  # of a buffer: the name of its allocation, its start and its end


class Touched:
    """Buffers, of which those that are no part of the arena have an allocation of their own."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._starts: list[int] = []  # of the arena's parts, in order, of which no two meet
        self._ends: list[int] = []

    def meets(self, buffers: Sequence[Memory]) -> bool:
        """Whether any of these lies where one of those added lies."""
        return any(
            self._meets_part(start, end) if name == ARENA else name in self._names for name, start, end in buffers
        )

    def add(self, buffers: Sequence[Memory]) -> None:
        for name, start, end in buffers:
            if name == ARENA:
                self._add_part(start, end)
            else:
                self._names.add(name)

    def _meets_part(self, start: int, end: int) -> bool:
        after = bisect_right(self._ends, start)  # the first part that ends behind the start
        return after < len(self._starts) and self._starts[after] < end

    def _add_part(self, start: int, end: int) -> None:
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last], self._ends[first:last] = [start], [end]
