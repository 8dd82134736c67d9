"""Work that nobody waits for: files of caches, of which each takes a file system up to some milliseconds."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

_at_work: set[threading.Thread] = set()


def in_background(work: Callable[[], Any]) -> None:
    """Has it done by a thread of its own, which the interpreter waits for; at the interpreter's end, by this one."""

    def run() -> None:
        try:
            work()
        finally:
            _at_work.discard(thread)

    thread = threading.Thread(target=run, name="lavax caches")
    _at_work.add(thread)
    try:
        thread.start()
    except RuntimeError:  # no thread is started any more
        run()


def wait_for_background() -> None:
    """Returns when all that was begun is done. In a forked process, threads of the other one count as done."""
    for thread in tuple(_at_work):
        with contextlib.suppress(RuntimeError):  # it is this thread, or was not started
            thread.join()
