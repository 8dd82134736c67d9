"""What every library that is measured offers, in one form."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.workloads import Arguments, Workload


@dataclass(frozen=True)
class Run:
    """A workload made ready, its arguments where the library computes.

    `call` begins one call and gives its results, which may still be under way; `wait` returns when they are there;
    `read` gives them as NumPy arrays, in the order of `leaves_of`; `peak_bytes` the memory a call needs, if known.
    """

    call: Callable[[], Any]
    wait: Callable[[Any], None]
    read: Callable[[Any], Sequence[np.ndarray]]
    peak_bytes: Callable[[], int | None] = lambda: None


class Peer(Protocol):
    """A library at work on one device."""

    name: str
    version: str

    def prepare(self, workload: Workload, arguments: Arguments) -> Run:
        """The workload on these arguments, trees of NumPy arrays. Compiling may be left to the first call.

        Raises UnsupportedError, or an error of the library's own, where it cannot run the workload.
        """
        ...
