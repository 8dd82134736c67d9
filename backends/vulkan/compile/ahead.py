"""What is made in other threads while this one finds out what else is needed: pipelines, while further shaders are
written.
"""
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_Wanted = TypeVar("_Wanted", bound=Hashable)
_Made = TypeVar("_Made")
_Result = TypeVar("_Result")
_Ready = TypeVar("_Ready", covariant=True)
_Asked = TypeVar("_Asked", contravariant=True)

# A thread that needs the interpreter waits as long for one that computes. By default it is ten times as long: longer
# than most shaders take glslang.
_SWITCH_SECONDS = 0.0005


class _BriskSwitches:
    """Lets threads take turns more often. Several may ask for it at once; the last one to end restores the interval."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking = 0

    def begin(self) -> None:
        with self._lock:
            self._asking += 1
            if self._asking == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, _SWITCH_SECONDS))

    def end(self) -> None:
        with self._lock:
            self._asking -= 1
            if self._asking == 0:
                sys.setswitchinterval(self._before)


_brisk_switches = _BriskSwitches()


class Begun(Protocol[_Ready]):
    """What is being made. `result` waits until it is there, and raises what making it raised."""

    def result(self) -> _Ready: ...


class Elsewhere(Protocol[_Asked, _Ready]):
    """Threads that need no interpreter. `begin` gives None for what they cannot make; after `end` none of them runs."""

    def begin(self, wanted: _Asked, /) -> Begun[_Ready] | None: ...

    def end(self) -> None: ...


class Ahead(Generic[_Wanted, _Made]):
    """Makes what is wanted in several threads, as long as its `with` block lasts: by `elsewhere`, or by `make` in
    threads of Python's.

    The last that was wanted waits for another one: what wants but one thing starts no thread, and makes it itself.
    """

    def __init__(
        self,
        make: Callable[[_Wanted], _Made],
        is_there: Callable[[_Wanted], bool],
        elsewhere: Elsewhere[_Wanted, _Made] | None = None,
    ) -> None:
        self._make, self._is_there, self._elsewhere = make, is_there, elsewhere
        self._wanted: dict[_Wanted, Begun[_Made] | None] = {}
        self._last: _Wanted | None = None
        self._threads: ThreadPoolExecutor | None = None

    def want(self, wanted: _Wanted) -> None:
        """Has it made soon, unless it is there."""
        if wanted in self._wanted:
            return
        self._wanted[wanted] = None
        if self._is_there(wanted):
            return
        last, self._last = self._last, wanted
        if last is not None:
            self._begin(last)

    def begin_last(self) -> None:
        """Has the last that was wanted made soon, too: much else is to be done before another one is."""
        last, self._last = self._last, None
        if last is not None:
            self._begin(last)

    def aside(self, work: Callable[[], _Result]) -> Future[_Result] | None:
        """Other work, done by one of the threads; None if the interpreter is ending, and starts none."""
        try:
            return self._pool().submit(work)
        except RuntimeError:
            return None

    def _begin(self, wanted: _Wanted) -> None:
        begun = None if self._elsewhere is None else self._elsewhere.begin(wanted)
        self._wanted[wanted] = self.aside(lambda: self._make(wanted)) if begun is None else begun

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(os.cpu_count() or 1)
            _brisk_switches.begin()
        return self._threads

    def begun(self, wanted: _Wanted) -> Begun[_Made] | None:
        """What a thread makes or has made; None if none does."""
        return self._wanted.get(wanted)

    def __enter__(self) -> Ahead[_Wanted, _Made]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._elsewhere is not None:
                self._elsewhere.end()
        finally:
            if self._threads is not None:
                self._threads.shutdown(cancel_futures=True)
                _brisk_switches.end()
