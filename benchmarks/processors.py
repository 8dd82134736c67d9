"""The processor time of measured work, without that of other libraries' busy threads.

IREE's Vulkan device has two threads that wait for any of several semaphores, which Mesa 22.3 does in a busy loop. As
long as such a device exists, they occupy two processors, and everything else in the process takes twice as long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
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
    for thread in busy:
        os.setpriority(os.PRIO_PROCESS, thread, _LAST)
    return lambda: time.process_time() - sum(map(_seconds_of, busy))


def _busy_threads() -> list[int]:
    before = {thread: _seconds_of(thread) for thread in map(int, os.listdir(_THREADS))}
    time.sleep(_SECONDS)
    after = {thread: _seconds_of(thread) for thread in map(int, os.listdir(_THREADS)) if thread in before}
    return [thread for thread, seconds in after.items() if seconds - before[thread] > _SHARE * _SECONDS]


def _seconds_of(thread: int) -> float:
    """Linux's clock of a thread, whose number contains the thread's (clock_gettime(2), posix-cpu-timers.c)."""
    return time.clock_gettime((~thread << 3) | 0b110)
