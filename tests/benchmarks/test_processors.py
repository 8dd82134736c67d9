"""Processor time without the threads that never rest."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from benchmarks.processors import quiet_clock


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


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not tell threads apart")
def test_a_thread_that_never_rests_is_not_counted(busy_thread: Thread) -> None:
    seconds = quiet_clock()
    start, all_of_it = seconds(), time.process_time()
    while time.process_time() - all_of_it < 0.2:
        time.sleep(0.01)
    assert seconds() - start < 0.1


def test_what_the_process_computes_itself_is_counted() -> None:
    seconds = quiet_clock()
    start, of_this_thread = seconds(), time.thread_time()
    while time.thread_time() - of_this_thread < 0.1:
        pass
    assert seconds() - start > 0.09
