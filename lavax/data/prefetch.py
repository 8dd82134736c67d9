"""Work done ahead by a thread."""
from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")

_END: Any = object()
_POLL_SECONDS = 0.05  # how soon a thread whose queue is full sees that nobody wants more


def prefetched(items: Iterable[Item], depth: int) -> Generator[Item, None, None]:
    """The items, made by a thread up to `depth` ahead; with 0, when asked for.

    An error in `items` is raised where the item would have been. The thread ends with this iterator.
    """
    if not depth:
        yield from items
        return
    ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def produce() -> None:
        try:
            for item in items:
                if not _put(ready, (item, None), stopped):
                    return
            _put(ready, (_END, None), stopped)
        except BaseException as error:  # it belongs to whoever asks for the items
            _put(ready, (_END, error), stopped)

    context = contextvars.copy_context()  # with the caller's settings, such as enable_x64
    thread = threading.Thread(target=context.run, args=(produce,), name="lavax data", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item
    finally:
        stopped.set()
        thread.join()


def _put(ready: queue.Queue[Any], item: Any, stopped: threading.Event) -> bool:
    """Waits for room in the queue; False if nobody waits for items any more."""
    while not stopped.is_set():
        try:
            ready.put(item, timeout=_POLL_SECONDS)
        except queue.Full:
            continue
        return True
    return False
