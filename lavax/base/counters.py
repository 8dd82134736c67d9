"""Counters of lavax's work in this process, incremented where the work is done.

This module imports nothing of lavax, so that every module may import it. Users read it through
`lavax.profiler.counters()`.
"""
from __future__ import annotations

# `count` adds to them; the hottest paths add here directly.
counts: dict[str, int] = {
    "traces": 0,
    "plans_from_disk": 0,
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
