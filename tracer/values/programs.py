"""Compiled programs, cached by their graphs."""
from __future__ import annotations

import gc
from collections.abc import Hashable
from typing import Any, TypeVar

from lavax.ir import Graph
from lavax.ir.printer import structural_key
from lavax.tracer.values.backend import Program, in_use, runtime
from lavax.tracer.values.compile_log import begin_compile, log_reuse
from lavax.tracer.values.program_cache import clear_program_caches

_LIMIT = 4096  # entries per cache
_Key = TypeVar("_Key", bound=Hashable)
_Kept = TypeVar("_Kept")


def remember(cache: dict[_Key, Any], key: _Key, entry: _Kept) -> _Kept:
    """Enters `entry` into a cache of bounded size; if the cache is full, its oldest entry is dropped."""
    if len(cache) >= _LIMIT:
        cache.pop(next(iter(cache)), None)
    cache[key] = entry
    return entry


def program_for(
    graph: Graph, donated: tuple[int, ...] = (), eager: bool = False, tune: bool = False
) -> Program:
    """The compiled program of a graph, from the cache if it is among the most recently used.

    With `tune` its schedules were chosen by timing.
    """
    current = runtime()
    key = (structural_key(graph), donated, eager, tune)
    found = current.programs.get(key)
    if found is None:
        end = begin_compile(graph, eager)
        found = current.backend.lower(graph, donated, eager, tune).compile()
        end()
        current.programs.enter(key, found)
    else:
        log_reuse(graph)
    return found


def clear_caches() -> None:
    """Drops all compiled programs, and gives device memory that holds no array back to the driver.

    Functions are traced and compiled again when they are called next; what is on disk stays there. Waits for the
    device.
    """
    clear_program_caches()
    current = in_use.runtime
    if current is None:
        return
    current.programs.clear()
    current.scalars.clear()
    gc.collect()  # programs of functions that refer to themselves
    current.backend.release_memory()
