"""Processor time of what is measured alone, beside libraries whose threads never rest.

IREE's Vulkan device has two threads that wait for any of several semaphores, and Mesa 22.3 waits for that in a loop: as
long as there is such a device, they keep two processors busy, and everything else in the process takes twice as long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_THREADS = Path("/proc/self/task")
# A thread is busy that computes for so much of so many seconds, while nothing is asked of the process.
_SHARE, _SECONDS = 0.1, 0.2
# Behind all others, but never without a share: a thread that holds a lock has to get to where it lets go of it.
_LAST = 19


def quiet_clock() -> Callable[[], float]:
    """Processor seconds of this process, but for threads that are busy now; these let all others go first from now on.

    Where the system does not tell threads apart: processor seconds of all of them.
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
    """Linux's clock of a thread, which has the thread's number in its own (clock_gettime(2), posix-cpu-timers.c)."""
    return time.clock_gettime((~thread << 3) | 0b110)
