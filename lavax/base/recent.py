"""A cache of values by key: it finds every value that is still referenced, and the most recent ones, until cleared.

This module imports nothing of lavax, so that every module may import it.
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Hashable
from typing import Generic, TypeVar

_Kept = TypeVar("_Kept")


class Recent(Generic[_Kept]):
    """All values that are referenced elsewhere, and the last `limit` that were requested. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._alive: weakref.WeakValueDictionary[Hashable, _Kept] = weakref.WeakValueDictionary()
        self._last: dict[Hashable, _Kept] = {}  # in the order of requests
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> _Kept | None:
        """The value that was entered, unless it has been freed."""
        found = self._alive.get(key)
        if found is not None:
            self.enter(key, found)
        return found

    def enter(self, key: Hashable, value: _Kept) -> None:
        """Makes it the most recent value."""
        dropped = []
        with self._lock:
            self._last.pop(key, None)
            self._last[key] = self._alive[key] = value
            for _ in range(len(self._last) - self.limit):
                dropped.append(self._last.pop(next(iter(self._last))))
        dropped.clear()  # outside the lock, because freeing them may take long

    def clear(self) -> None:
        """Forgets all values, also those that are referenced elsewhere."""
        with self._lock:
            dropped, self._last = self._last, {}
            self._alive = weakref.WeakValueDictionary()
        dropped.clear()

    def values(self) -> list[_Kept]:
        """All values that are alive."""
        return list(self._alive.values())
