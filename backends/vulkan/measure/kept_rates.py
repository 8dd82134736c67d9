"""What a device does in a second, kept on disk: a program that may take long need not wait for its measurement.

The rates need only be right within a factor: a program that takes another time than estimated is cut anew
(run/program.py). A record that is old is measured again, because a machine may have been busy when it was made.
"""
from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import astuple
from math import inf
from typing import Any

from lavax.backends.vulkan.compile.disk_cache import DiskCache, folder_of
from lavax.backends.vulkan.device.device import Device
from lavax.backends.vulkan.measure.limits import measure_rates
from lavax.backends.vulkan.run.estimate import SLOW_DEVICE, Rates

_LIMIT_BYTES = 1 << 20  # a record takes two hundred
_KEPT_SECONDS = 7 * 24 * 3600.0
_METHOD = 1  # of measurement: the records of another one are of no use


def rates_of(device: Device) -> Rates:
    """The rates from disk, or measured now."""
    cache = DiskCache(folder_of("rates"), _LIMIT_BYTES)
    key = f"{device.identity} {platform.node()} {os.cpu_count()} method {_METHOD}"
    found = _read(cache.load(key) or b"", time.time())
    if found is None:
        found = measure_rates(device)
        if found != SLOW_DEVICE:
            cache.store(key, json.dumps([time.time(), *astuple(found)]).encode())
    return found


def _read(record: bytes, now: float) -> Rates | None:
    """The rates of a record; None if it is too old, or is none."""
    try:
        made, *rates = map(_positive, json.loads(record))
        return Rates(*rates) if 0 <= now - made < _KEPT_SECONDS else None
    except (ValueError, TypeError, RecursionError):
        return None


def _positive(number: Any) -> float:
    if not isinstance(number, float) or not 0 < number < inf:
        raise ValueError(f"{number!r} is no rate")
    return number
