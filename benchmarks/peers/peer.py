"""The common interface of all measured libraries."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.workloads import Arguments, Workload


@dataclass(frozen=True)
class Run:
    """A prepared workload, with its arguments on the library's device.

    `call` starts one call and returns its results, which may not be ready yet; `wait` returns when they are; `read`
    returns them as NumPy arrays, in the order of `leaves_of`; `peak_bytes` returns the memory of a call, if known.
    """

    call: Callable[[], Any]
    wait: Callable[[Any], None]
    read: Callable[[Any], Sequence[np.ndarray]]
    peak_bytes: Callable[[], int | None] = lambda: None


class Peer(Protocol):
    """A library on one device."""

    name: str
    version: str

    def prepare(self, workload: Workload, arguments: Arguments) -> Run:
        """The workload on these arguments, trees of NumPy arrays. Compiling may be left to the first call.

        Raises UnsupportedError, or an error of the library's own, if it cannot run the workload.
        """
        ...
