"""Compiled programs, found again by what they compute."""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

from lavax.ir import Graph
from lavax.ir.printer import structural_key
from lavax.tracer.values.backend import Program, runtime

_LIMIT = 4096  # how many entries a cache keeps: programs hold device memory
_Key = TypeVar("_Key", bound=Hashable)
_Kept = TypeVar("_Kept")


def remember(cache: dict[_Key, Any], key: _Key, entry: _Kept) -> _Kept:
    """Enters `entry` into a cache of bounded size, for the oldest one if it is full."""
    if len(cache) >= _LIMIT:
        cache.pop(next(iter(cache)), None)
    cache[key] = entry
    return entry


def program_for(
    graph: Graph, donated: tuple[int, ...] = (), eager: bool = False, tune: bool = False
) -> Program:
    """The compiled program of a graph; the same one as long as it is kept, or among the last that were asked for.

    With `tune` it is compiled by schedules that were timed.
    """
    current = runtime()
    key = (structural_key(graph), donated, eager, tune)
    found = current.programs.get(key)
    if found is None:
        found = current.backend.lower(graph, donated, eager, tune).compile()
        current.programs.enter(key, found)
    return found
