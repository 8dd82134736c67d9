"""The processor time of measured work, without that of other libraries' busy threads.

IREE's Vulkan device has two threads that wait for any of several semaphores, which Mesa 22.3 does in a busy loop. As
long as such a device exists, they occupy two processors, and everything else in the process takes twice as long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

_THREADS = Path("/proc/self/task")
# A thread is busy if it computes for this share of this many seconds while the process has no work.
_SHARE, _SECONDS = 0.1, 0.2
# The lowest priority that still gets a share: a thread that holds a lock must be able to release it.
_LAST = 19


def quiet_clock() -> Callable[[], float]:
    """A clock of this process's processor seconds, without threads that are busy now; these get the lowest priority.

    If the system does not distinguish threads, it counts the processor seconds of all of them.
    """
    busy = _busy_threads() if _THREADS.is_dir() else []
    seconds: dict[int, float] = {}

    def of_busy_threads() -> float:
        # A thread that ended keeps what it had: the process's seconds still contain it.
        seconds.update(_seconds_of(busy))
        return sum(seconds.values())

    for thread in busy:
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, thread, _LAST)
    return lambda: time.process_time() - of_busy_threads()


def _busy_threads() -> list[int]:
    before = _seconds_of(map(int, os.listdir(_THREADS)))
    time.sleep(_SECONDS)
    after = _seconds_of(before)
    return [thread for thread, seconds in after.items() if seconds - before[thread] > _SHARE * _SECONDS]


def _seconds_of(threads: Iterable[int]) -> dict[int, float]:
    """Linux's clock of each thread that still exists.

    The clock's number contains the thread's (clock_gettime(2), posix-cpu-timers.c). A thread may end at any time.
    """
    seconds = {}
    for thread in threads:
        with suppress(OSError):
            seconds[thread] = time.clock_gettime((~thread << 3) | 0b110)
    return seconds
