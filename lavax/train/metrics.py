"""Numbers about training: read from the device late, averaged, and timed."""
from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from lavax.base.quick_dataclasses import dataclass
from lavax.tracer.pytrees.keys import keystr
from lavax.tracer.pytrees.tree_tools import leaves_with_path
from lavax.tracer.values.backend import active


def named(metrics: Any, what: str = "the step's metrics") -> dict[str, Any]:
    """Metrics by their names: a scalar alone is "loss", those in a pytree have their paths with slashes.

    Raises ValueError for what is not a scalar.
    """
    found = {keystr(path, simple=True, separator="/") or "loss": leaf for path, leaf in leaves_with_path(metrics)}
    for name, value in found.items():
        if np.shape(value):
            raise ValueError(f"{what} must be scalars: {name} has the shape {tuple(np.shape(value))}")
    return found


def means(rows: Iterable[tuple[Mapping[str, Any], float]]) -> dict[str, float]:
    """The means of metrics, given with their weights; waits for the device."""
    sums: dict[str, float] = {}
    weights: dict[str, float] = {}
    for metrics, weight in rows:
        for name, value in metrics.items():
            sums[name] = sums.get(name, 0.0) + weight * float(value)
            weights[name] = weights.get(name, 0.0) + weight
    return {name: total / weights[name] for name, total in sums.items()}


def memory_in_use() -> int:
    """Bytes of device memory that arrays and programs hold now."""
    return active().bytes_in_use()


@dataclass(frozen=True)
class _Step:
    number: int
    metrics: dict[str, Any]
    units: int  # 0: not timed


@dataclass
class LateMetrics:
    """Metrics of steps in groups of `every`, read when the device is `lag` steps further, so that it never waits.

    `unit` names what is counted for the rate. The first step is not timed: it compiles.
    """

    every: int
    lag: int
    unit: str
    _open: list[_Step] = field(default_factory=list)
    _closed: deque[list[_Step]] = field(default_factory=deque)
    _since: float | None = None

    def add(self, number: int, metrics: dict[str, Any], units: int) -> None:
        """Takes the metrics of a step that was just submitted."""
        timed = self._since is not None
        if not timed:
            self._since = time.perf_counter()
        self._open.append(_Step(number, metrics, units if timed else 0))
        if number % self.every == 0:
            self._close()

    def due(self, number: int) -> list[tuple[int, dict[str, float]]]:
        """The last step and the means of each group that ended at least `lag` steps before `number`."""
        found = []
        while self._closed and self._closed[0][-1].number <= number - self.lag:
            found.append(self._read(self._closed.popleft()))
        return found

    def rest(self, unfinished: bool = False) -> list[tuple[int, dict[str, float]]]:
        """The groups that are left; waits for the device. With `unfinished`, also the last one. Stops the clock."""
        if unfinished:
            self._close()
        found = [self._read(group) for group in self._closed]
        self._closed.clear()
        self._open = [_Step(step.number, step.metrics, 0) for step in self._open]
        return found

    def restart_clock(self) -> None:
        """Time until now does not count for the rate."""
        if self._since is not None:
            self._since = time.perf_counter()

    def _close(self) -> None:
        if self._open:
            self._closed.append(self._open)
            self._open = []

    def _read(self, group: list[_Step]) -> tuple[int, dict[str, float]]:
        values = means((step.metrics, 1) for step in group)
        now, units = time.perf_counter(), sum(step.units for step in group)
        if units and self._since is not None and now > self._since:
            values[f"{self.unit} per second"] = units / (now - self._since)
        self._since = now
        return group[-1].number, values
