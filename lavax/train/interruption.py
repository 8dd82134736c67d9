"""Ctrl-C between steps."""
from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noticed_interrupts() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second one raises KeyboardInterrupt, as always.

    A step must not be left halfway: its arguments may be donated and its results not there yet. In other threads than
    the main one, where Python delivers no signals, the event stays unset.
    """
    noticed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield noticed
        return
    before = signal.getsignal(signal.SIGINT)

    def notice(number: int, frame: FrameType | None) -> None:
        noticed.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, notice)
    try:
        yield noticed
    finally:
        signal.signal(signal.SIGINT, before)
