"""Pauses Python's collector of reference cycles while a program is made, and until it first runs.

A graph of thousands of nodes is built and rewritten several times. The collector would walk all of it again and again,
for a third of the time, and find nothing: nodes have no cycles. What is left of a program for its later calls is walked
once, while the device runs it.
"""
from __future__ import annotations

import gc
import threading
from types import TracebackType


class _Pause:
    """Threads may pause at once, and pauses may be nested: the last one to end lets the collector go on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._collects = gc.isenabled()
                gc.disable()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0 and self._collects:
                gc.enable()


without_collection = _Pause()
