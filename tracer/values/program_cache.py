"""Caches of programs, bounded by number and by bytes: those that were used last are kept."""
from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from lavax.base import config

# The programs used last that are kept whatever memory they hold, so that a few that take turns stay compiled.
_ALWAYS_KEPT = 4

# The time, as `CachedProgram.used` has it: it grows from call to call.
now: Callable[[], int] = itertools.count(1).__next__


class CachedProgram:
    """What a cache holds: a program, the time of its last use, and the device memory that it keeps between calls."""

    __slots__ = ("held_bytes", "used")

    def __init__(self, held_bytes: int) -> None:
        self.used = now()
        self.held_bytes = held_bytes


_Cached = TypeVar("_Cached", bound=CachedProgram)

_caches: weakref.WeakSet[ProgramCache[CachedProgram]] = weakref.WeakSet()
_lock = threading.Lock()


class ProgramCache(dict[Any, _Cached], Generic[_Cached]):
    """Programs by key. Whoever finds one sets its `used`. A copy of a cache, or one in another process, is empty.

    `functions`: of how many functions it holds the programs; the settings are for one.
    """

    __slots__ = ("__weakref__", "_functions")
    __hash__ = object.__hash__  # type: ignore[assignment]  # each is itself
    __eq__ = object.__eq__

    def __init__(self, functions: int = 1) -> None:
        super().__init__()
        self._functions = functions
        with _lock:
            _caches.add(self)  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return ProgramCache, ()

    def keep(self, key: Hashable, program: _Cached) -> _Cached:
        """Enters a program, and drops those that were used longest ago if there are more than the settings allow."""
        self[key] = program
        most, most_bytes = self._functions * config.kept_programs(), config.kept_program_bytes()
        if len(self) > most or (program.held_bytes and _bytes_of(self) > most_bytes):
            self._drop(most, most_bytes)
        return program

    def _drop(self, most: float, most_bytes: float) -> None:
        oldest_first = sorted(self.copy().items(), key=lambda item: item[1].used)
        held = sum(program.held_bytes for _, program in oldest_first)
        for number, (key, program) in enumerate(oldest_first):
            left = len(oldest_first) - number
            if left <= most and (held <= most_bytes or left <= _ALWAYS_KEPT):
                return
            self.pop(key, None)
            held -= program.held_bytes


def _bytes_of(cache: ProgramCache[_Cached]) -> int:
    return sum(program.held_bytes for program in list(cache.values()))


def clear_program_caches() -> None:
    """Empties all of them."""
    with _lock:
        caches = list(_caches)
    for cache in caches:
        cache.clear()
