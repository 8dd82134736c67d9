"""A thread that gives memory back to the driver once nothing has used it for some time.

It exists while a pool has more than its first block. What a pool has without using it is lacking elsewhere: on a CPU
driver to NumPy beside it, on a GPU to other processes.
"""
from __future__ import annotations

import atexit
import contextlib
import threading
import weakref
from typing import Protocol

from lavax.base import config
from lavax.base.errors import DeviceError


class Pool(Protocol):
    """What the thread asks of a pool."""

    def moment(self) -> int: ...

    def release_idle(self, since: int) -> None: ...

    def has_idle_blocks(self) -> bool: ...


class IdleWatch:
    """The thread of one pool, which it does not keep alive.

    Pools call `start` while they hold their own lock, so the watch holds none while it asks the pool anything.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = weakref.ref(pool)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._wanted = False  # the pool has grown since the thread last looked

    def start(self) -> None:
        """Starts the thread unless it runs, or memory is to be kept for ever."""
        seconds = config.idle_memory_seconds()
        with self._lock:
            self._wanted = True
            if self._thread is not None or seconds is None or self._ended.is_set():
                return
            self._thread = threading.Thread(target=self._run, args=(seconds,), name="lavax idle memory", daemon=True)
        atexit.register(self.end)
        self._thread.start()

    def end(self) -> None:
        """Ends the thread for good, and returns when it has."""
        self._ended.set()
        atexit.unregister(self.end)
        if self._thread is not None:
            self._thread.join()

    def _run(self, seconds: float) -> None:
        with contextlib.suppress(DeviceError):  # of a device that is lost, whose memory nobody asks for
            self._look(seconds)

    def _look(self, seconds: float) -> None:
        since = 0
        while (pool := self._pool()) is not None:
            pool.release_idle(since)
            since = pool.moment()
            if self._is_done(pool):
                return
            del pool
            if self._ended.wait(seconds):
                return

    def _is_done(self, pool: Pool) -> bool:
        """Whether the pool is down to its first block; then the next `start` makes another thread."""
        with self._lock:
            self._wanted = False
        if pool.has_idle_blocks():
            return False
        with self._lock:
            if self._wanted:
                return False
            self._thread = None
            return True
