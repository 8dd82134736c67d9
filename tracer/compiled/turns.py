"""What several threads ask for at once is made by one of them, and the others wait for it.

There is no lock that an exception could leave held: a thread enters what it makes in a dict, under its own name. One
that waits looks from time to time whether the maker is still at it, and takes over if it is not.
"""
from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable
from types import FrameType
from typing import Any, Generic, TypeVar

_Made = TypeVar("_Made")

_SECONDS_BETWEEN_LOOKS = 0.5


class _Turn:
    """One thread's turn to make something."""

    __slots__ = ("done", "thread")

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.done = threading.Event()


# By thread: the turn of another that it waits for. A cycle in it would be a deadlock.
_waits: dict[int, _Turn] = {}


class Turns(Generic[_Made]):
    """The turns of the threads that make something under a key. Safe in several threads."""

    def __init__(self) -> None:
        self._turns: dict[Hashable, _Turn] = {}

    def made(self, key: Hashable, found: Callable[[], _Made | None], make: Callable[[], _Made]) -> _Made:
        """What `found` finds, made by this thread or by another that is at it; `make` enters it where it is found.

        If the maker fails, the next thread tries. A thread that makes it already, or that the maker waits for, does not
        wait, and makes it, too. Other keys are not held up.
        """
        mine = _Turn(threading.get_ident())
        try:
            entry = self._awaited(key, mine, found)
            return make() if entry is None else entry
        finally:
            if self._turns.get(key) is mine:
                del self._turns[key]
            mine.done.set()

    def _awaited(self, key: Hashable, mine: _Turn, found: Callable[[], _Made | None]) -> _Made | None:
        """What `found` finds, after the turns of others that are at it; None if it is this thread's turn."""
        while True:
            turn = self._turns.setdefault(key, mine)
            entry = found()
            if entry is not None or turn is mine or not self._ended(key, turn):
                return entry

    def _ended(self, key: Hashable, turn: _Turn) -> bool:
        """Waits for the end of another thread's turn; False at once if that thread would wait for this one."""
        me = threading.get_ident()
        _waits[me] = turn  # before the check, so that of two threads that begin to wait at once, one sees the other
        try:
            return self._waited(me, key, turn)
        finally:
            _waits.pop(me, None)

    def _waited(self, me: int, key: Hashable, turn: _Turn) -> bool:
        if _leads_to(me, turn):
            return False
        while not turn.done.wait(_SECONDS_BETWEEN_LOOKS):
            if _leads_to(me, turn):
                return False
            if not _is_making(turn.thread):  # it was left without its end
                if self._turns.get(key) is turn:
                    del self._turns[key]
                return True
        return True


def _leads_to(thread: int, turn: _Turn | None) -> bool:
    """Whether the maker is this thread, or waits for a turn whose maker is, and so on."""
    for _ in range(len(_waits) + 1):
        if turn is None or turn.thread == thread:
            return turn is not None
        turn = _waits.get(turn.thread)
    return False


def _is_making(thread: int) -> bool:
    """Whether a call of `made` is on a thread's stack."""
    frame: FrameType | None = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code is _MADE:
            return True
        frame = frame.f_back
    return False


_MADE: Any = Turns.made.__code__
