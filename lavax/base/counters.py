"""What lavax has done so far in this process, counted where it is done.

This module imports nothing of lavax; every room may import it. Users read it through
`lavax.profiler.counters()`.
"""
from __future__ import annotations

# `count` adds to them; what is counted at every call is added here at once.
counts: dict[str, int] = {
    "traces": 0,
    "glsl_compiles": 0,
    "pipelines": 0,
    "tunings": 0,
    "recordings": 0,
    "submits": 0,
    "bytes_to_device": 0,
    "bytes_to_host": 0,
}


def count(name: str, amount: int = 1) -> None:
    """Adds `amount` to the counter `name`, which must be one of those above."""
    counts[name] += amount


def snapshot() -> dict[str, int]:
    """A copy of all counters."""
    return dict(counts)
