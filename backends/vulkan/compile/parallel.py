"""A function of many things, in several threads."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def in_parallel(function: Callable[[_Given], _Made], given: Sequence[_Given]) -> list[_Made]:
    """The results in order, from a thread per core; from this one where the interpreter is ending, and starts none."""
    if len(given) > 1:
        try:
            from concurrent.futures import ThreadPoolExecutor  # the import is refused at the end, too

            threads = ThreadPoolExecutor(min(len(given), os.cpu_count() or 1))
            started = [threads.submit(function, each) for each in given]
        except RuntimeError:
            return [function(each) for each in given]
        with threads:
            return [each.result() for each in started]
    return [function(each) for each in given]
