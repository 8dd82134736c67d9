"""Every setting of lavax, read from the environment here and nowhere else.

A setting is a function, not a constant, so that a test or a program may change the environment before
the first use. This module imports nothing of lavax; every room may import it.
"""
from __future__ import annotations

import os
from pathlib import Path


def device_selector() -> str | None:
    """`LAVAX_DEVICE`: an index into `lavax.devices()`, or part of a device's name; None: the best one."""
    return os.environ.get("LAVAX_DEVICE") or None


def validate() -> bool:
    """`LAVAX_VALIDATE=1`: switch the Khronos validation layer on, with synchronization validation."""
    return os.environ.get("LAVAX_VALIDATE", "0") not in ("", "0")


def explain_retrace() -> bool:
    """`LAVAX_EXPLAIN_RETRACE=1`: log why a compiled function is traced again."""
    return os.environ.get("LAVAX_EXPLAIN_RETRACE", "0") not in ("", "0")


def check_key_reuse() -> bool:
    """`LAVAX_CHECK_KEY_REUSE=1`: refuse to draw random numbers from one key twice."""
    return os.environ.get("LAVAX_CHECK_KEY_REUSE", "0") not in ("", "0")


def cache_folder() -> Path:
    """`LAVAX_CACHE`: where compiled shaders are kept; else the user's cache folder."""
    chosen = os.environ.get("LAVAX_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(base or Path.home() / ".cache") / "lavax"
