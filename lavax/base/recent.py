"""Values that are found again by a key while somebody keeps them, and a little longer.

This module imports nothing of lavax; every room may import it.
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable
from typing import Generic, TypeVar

_Kept = TypeVar("_Kept")


class Recent(Generic[_Kept]):
    """All values that somebody keeps, and the last `limit` that were asked for. Safe in several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._alive: weakref.WeakValueDictionary[Hashable, _Kept] = weakref.WeakValueDictionary()
        self._last: dict[Hashable, _Kept] = {}  # in the order in which they were asked for
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> _Kept | None:
        """The value that was entered, unless all have let go of it."""
        found = self._alive.get(key)
        if found is not None:
            self.enter(key, found)
        return found

    def enter(self, key: Hashable, value: _Kept) -> None:
        """Makes it the last that was asked for."""
        dropped = []
        with self._lock:
            self._last.pop(key, None)
            self._last[key] = self._alive[key] = value
            while len(self._last) > self.limit:
                dropped.append(self._last.pop(next(iter(self._last))))
        dropped.clear()  # outside the lock, since their own ends may be long

    def values(self) -> list[_Kept]:
        """All that are alive."""
        return list(self._alive.values())
