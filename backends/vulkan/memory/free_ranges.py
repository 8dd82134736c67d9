"""The free ranges of a set of memory blocks: best fit; a range that is returned is joined with its neighbours."""
from __future__ import annotations

import bisect
from typing import NamedTuple


class Range(NamedTuple):
    """`size` bytes at `offset` of block `block`. `last_use`: the last submission that may use them."""

    block: int
    offset: int
    size: int
    last_use: int


class FreeRanges:
    """Ranges that may be taken. Blocks have numbers; ranges of different blocks are never joined.

    A range is free if it is in `_by_start`, where it is put last and removed first: the others only help to find it.
    An exception that arrives in between may leave entries of theirs that are stale, and a range that is never found
    again, but no range that is free twice.
    """

    def __init__(self) -> None:
        self._by_start: dict[tuple[int, int], Range] = {}
        self._by_end: dict[tuple[int, int], Range] = {}
        self._by_size: list[tuple[int, int, int]] = []  # size, block, offset: sorted

    def take(self, size: int) -> Range | None:
        """The first `size` bytes of the smallest range that holds them, or None."""
        position = bisect.bisect_left(self._by_size, (size, 0, 0))
        found = None
        while found is None:
            if position == len(self._by_size):
                return None
            length, block, offset = self._by_size[position]
            found = self._free(self._by_start.get((block, offset)), length)
            if found is None:
                del self._by_size[position]  # stale
        self._remove(found)
        if found.size > size:
            self._add(Range(block, offset + size, found.size - size, found.last_use))
        return found._replace(size=size)

    def give(self, returned: Range) -> None:
        """Returns a range and joins it with its free neighbours."""
        before = self._by_end.get((returned.block, returned.offset))
        after = self._by_start.get((returned.block, returned.offset + returned.size))
        for neighbour in (self._free(before), after):
            if neighbour is not None:
                self._remove(neighbour)
                returned = Range(
                    returned.block,
                    min(returned.offset, neighbour.offset),
                    returned.size + neighbour.size,
                    max(returned.last_use, neighbour.last_use),
                )
        self._add(returned)

    def take_whole(self, block: int, size: int) -> Range | None:
        """Takes all of a block of `size` bytes if all of it is free, else None."""
        found = self._by_start.get((block, 0))
        if found is None or found.size != size:
            return None
        self._remove(found)
        return found

    def by_block(self) -> dict[int, tuple[int, int]]:
        """For each block with free ranges: how many bytes they have, and the last submission that may use one."""
        found: dict[int, tuple[int, int]] = {}
        for free in list(self._by_start.values()):
            size, last_use = found.get(free.block, (0, 0))
            found[free.block] = size + free.size, max(last_use, free.last_use)
        return found

    def total(self) -> int:
        """All free bytes."""
        return sum(found.size for found in self._by_start.values())

    def _free(self, found: Range | None, size: int | None = None) -> Range | None:
        """The range if it is free, and of that size; None if it is not, and its entry stale."""
        if found is None or self._by_start.get((found.block, found.offset)) is not found:
            return None
        return found if size is None or found.size == size else None

    def _add(self, added: Range) -> None:
        bisect.insort(self._by_size, (added.size, added.block, added.offset))
        self._by_end[added.block, added.offset + added.size] = added
        self._by_start[added.block, added.offset] = added

    def _remove(self, removed: Range) -> None:
        entry = (removed.size, removed.block, removed.offset)
        del self._by_start[removed.block, removed.offset]
        self._by_end.pop((removed.block, removed.offset + removed.size), None)
        position = bisect.bisect_left(self._by_size, entry)
        if self._by_size[position : position + 1] == [entry]:
            del self._by_size[position]
