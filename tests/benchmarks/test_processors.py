"""Processor time without the threads that never rest."""

from __future__ import annotations

import errno
import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from benchmarks.processors import quiet_clock

_THREADS_ARE_TOLD_APART = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="the system does not tell threads apart"
)


@pytest.fixture
def busy_thread() -> Iterator[Thread]:
    """Computes without the interpreter's lock, as threads of a library do."""
    done, block = Event(), bytes(1 << 20)

    def compute() -> None:
        while not done.is_set():
            zlib.crc32(block)

    thread = Thread(target=compute)
    thread.start()
    yield thread
    done.set()
    thread.join()


@_THREADS_ARE_TOLD_APART
def test_a_thread_that_never_rests_is_not_counted(busy_thread: Thread) -> None:
    seconds = quiet_clock()
    start, all_of_it = seconds(), time.process_time()
    while time.process_time() - all_of_it < 0.2:
        time.sleep(0.01)
    assert seconds() - start < 0.1


@_THREADS_ARE_TOLD_APART
def test_threads_that_end_meanwhile_are_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """One ends before its clock is read, one between the two readings, and a busy one after them."""
    gone, going, busy = (_ended_thread() for _ in range(3))
    clocks = {going: iter([0.0]), busy: iter([0.0, 1.0, 1.5])}

    def clock(number: int) -> float:
        for seconds in clocks.get(~(number >> 3), ()):
            return seconds
        raise OSError(errno.EINVAL, "no such thread")

    monkeypatch.setattr(os, "listdir", lambda folder: [str(gone), str(going), str(busy)])
    monkeypatch.setattr(time, "clock_gettime", clock)
    monkeypatch.setattr(time, "process_time", lambda: 10.0)
    seconds = quiet_clock()
    assert [seconds(), seconds()] == [8.5, 8.5]


def _ended_thread() -> int:
    thread = Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert thread.native_id is not None
    return thread.native_id


def test_what_the_process_computes_itself_is_counted() -> None:
    seconds = quiet_clock()
    start, of_this_thread = seconds(), time.thread_time()
    while time.thread_time() - of_this_thread < 0.1:
        pass
    assert seconds() - start > 0.09
