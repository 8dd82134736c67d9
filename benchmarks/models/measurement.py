"""What is measured of a model in a library, and how a call is timed."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CALLS = 30
# An idle GPU runs at a fraction of its clock (345 of 1,980 MHz on an H200), and takes seconds of work to speed up.
WARMING_SECONDS = 2.0


@dataclass(frozen=True)
class Timed:
    """A way of calling: seconds of calls that were waited for, of the first one, bytes at once, and kernels a call."""

    seconds: list[float] = field(default_factory=list)
    first: float = 0.0
    peak_bytes: int = 0
    kernels: int | None = None


@dataclass(frozen=True)
class Results:
    """Numbers to compare: the output, the loss, and the gradient of each weight by its name."""

    output: np.ndarray
    loss: float
    gradients: Mapping[str, np.ndarray]

    def distance(self, right: Results) -> tuple[float, float]:
        """The largest error of the output, and of any gradient, each relative to the largest number of its array."""
        worst = max(_distance(self.gradients[name], right.gradients[name]) for name in right.gradients)
        return _distance(self.output, right.output), worst


def _distance(found: np.ndarray, right: np.ndarray) -> float:
    return float(np.max(np.abs(found - right)) / max(np.max(np.abs(right)), 1e-30))


def timed(call: Callable[[], Any], wait: Callable[[Any], None], calls: int = CALLS) -> tuple[float, list[float]]:
    """Seconds of the first call, and of as many later ones, each waited for.

    Before those the device is warmed up, unless they are fewer than CALLS: then by one call, else for WARMING_SECONDS.
    """

    def once() -> float:
        start = time.perf_counter()
        wait(call())
        return time.perf_counter() - start

    first, _ = once(), once()
    end = time.perf_counter() + (WARMING_SECONDS if calls >= CALLS else 0.0)
    while time.perf_counter() < end:
        once()
    return first, [once() for _ in range(calls)]
