"""Plans on disk, by the graphs that they are of: a later process traces a function, and finds everything else done.

A plan follows from its graph, the device's profile and memory, and lavax's own code, which the key all names. Small
graphs are planned in less time than a file takes.
"""
from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from lavax.backends.vulkan.compile.background import in_background
from lavax.backends.vulkan.compile.disk_cache import DiskCache, folder_of
from lavax.backends.vulkan.plan.plan import Plan
from lavax.backends.vulkan.plan.plan_file import read, written
from lavax.base import config, counters

LIMIT_BYTES = 64 << 20
MOST_BYTES = LIMIT_BYTES // 8  # of one plan: larger ones hold tables that would drive out all others

# The least length of a graph's text, in which a node takes some 60. A plan of so many takes several ms, a file one.
LEAST_TEXT = 2048

_ROOMS = ("ir", "passes", "backends", "shaders_glsl")  # whose code makes plans
_BASE = Path(config.__file__).parent  # and this package's, which they rest on


def key_of(graph: str, rest: str) -> str | None:
    """The key of a graph's plan, by its text and by the rest that it hangs on; None if its plan is not kept."""
    if len(graph) < LEAST_TEXT or not config.keeps_plans() or config.verify_passes():
        return None
    code = _own_code()
    return None if code is None else f"{code}\n{rest}\n{graph}"


def load(key: str) -> Plan | None:
    """What was stored under this key, if it can be read."""
    kept = _plans(folder_of("plans"))
    file = kept.load(key)
    if file is None:
        return None
    try:
        found = read(file)
    except ValueError:
        kept.drop(key)
        return None
    counters.count("plans_from_disk")
    return found


def store(key: str, plan: Plan) -> None:
    """Has a plan kept for later processes, unless it is very large: by a thread that a first call does not wait for."""
    if sum(map(len, plan.constants)) > MOST_BYTES:
        return
    plans = _plans(folder_of("plans"))

    def store() -> None:
        file = written(plan)
        if len(file) <= MOST_BYTES:
            plans.store(key, file)

    in_background(store)


@cache
def _plans(folder: Path) -> DiskCache:
    return DiskCache(folder, LIMIT_BYTES)


@cache
def _own_code() -> str | None:
    """What names the code that makes plans: versions, and lavax's files by sizes and times. None if it has none."""
    above = _BASE.parent if config.is_installed() else _BASE.parent.parent
    try:
        files = sorted(line for folder in (_BASE, *(above / room for room in _ROOMS)) for line in _files(folder))
    except OSError:
        return None
    digest = hashlib.sha256("\n".join(files).encode(errors="surrogateescape")).hexdigest()
    return f"lavax {config.VERSION} {digest} numpy {np.__version__}"


def _files(folder: str | Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            else:
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"
