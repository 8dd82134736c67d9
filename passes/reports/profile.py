"""The time that the kernels of a program take on the device, as a table and as a trace file."""
from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lavax.base.quick_dataclasses import dataclass
from lavax.passes.reports.cost import Cost, KernelCost
from lavax.passes.reports.table import lines_text, rate_text, seconds_text, table, times_text


@dataclass(frozen=True)
class TimedDispatch:
    """One dispatch: its kernel, its start in seconds after the start of the run, and its duration."""

    name: str
    start: float
    seconds: float


@dataclass(frozen=True)
class KernelTime:
    """The seconds of one run of a kernel, and its cost."""

    cost: KernelCost
    seconds: float

    @property
    def total_seconds(self) -> float:
        """The seconds of all its runs in a call."""
        return self.seconds * self.cost.times

    @property
    def gigabytes_per_second(self) -> float:
        """Bytes read and written per second, in units of 10⁹."""
        return _rate(self.cost.bytes_moved, self.seconds)

    @property
    def gigaflops(self) -> float:
        """Floating-point operations per second, in units of 10⁹."""
        return _rate(self.cost.operations, self.seconds)


@dataclass(frozen=True, eq=False)
class Profile:
    """A run of a program, its kernels one after another.

    `kernels` gives the times by name. Two limits were measured along with them, both in 10⁹ per second:
    `copy_gigabytes_per_second`, the bytes that a plain copy of a large array reads and writes, and
    `arithmetic_gigaflops`, float32 multiplications and additions on registers. One iteration of each loop was timed,
    and all alternatives of each branch.
    """

    device: str
    kernels: Mapping[str, KernelTime]
    dispatches: tuple[TimedDispatch, ...]
    copy_gigabytes_per_second: float
    arithmetic_gigaflops: float

    @property
    def seconds(self) -> float:
        """The seconds of all kernels, each counted as often as it runs in a call."""
        return sum(kernel.total_seconds for kernel in self.kernels.values())

    @property
    def cost(self) -> Cost:
        """The operations and bytes of all kernels."""
        return Cost({name: kernel.cost for name, kernel in self.kernels.items()})

    def of_limit(self, cost: KernelCost | Cost, seconds: float) -> float:
        """The least possible time for these bytes and operations, whichever takes longer, divided by the time taken."""
        moving = (cost.bytes_read + cost.bytes_written) / self.copy_gigabytes_per_second
        least = max(moving, cost.operations / self.arithmetic_gigaflops) * 1e-9
        return least / seconds if seconds else 0.0

    def __str__(self) -> str:
        head = ("kernel", "kind", "times", "time", "share", "GB/s", "GFLOP/s", "of the limit", "source lines")
        rows = [self._row(kernel) for kernel in sorted(self.kernels.values(), key=lambda kernel: -kernel.total_seconds)]
        cost = self.cost
        moved = _rate(cost.bytes_read + cost.bytes_written, self.seconds)
        rates = (rate_text(moved), rate_text(_rate(cost.operations, self.seconds)))
        limit = self._of_limit_text(cost, self.seconds)
        total = ("all", "", "", seconds_text(self.seconds), "100 %" if rows else "", *rates, limit, "")
        return f"{self.device}\n{table(head, [*rows, total])}"

    def to_perfetto(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace that ui.perfetto.dev and chrome://tracing open: a bar for every dispatch of the run.

        In the Trace Event Format, JSON with times in microseconds.
        """
        content = {"traceEvents": list(self._events()), "displayTimeUnit": "ms"}
        Path(path).write_text(json.dumps(content, indent=1), encoding="utf-8")

    def _row(self, kernel: KernelTime) -> tuple[str, ...]:
        share = kernel.total_seconds / self.seconds if self.seconds else 0.0
        return (
            kernel.cost.name,
            kernel.cost.kind,
            times_text(kernel.cost.times, kernel.cost.is_least),
            seconds_text(kernel.total_seconds),
            f"{100 * share:.1f} %",
            rate_text(kernel.gigabytes_per_second),
            rate_text(kernel.gigaflops),
            self._of_limit_text(kernel.cost, kernel.seconds),
            lines_text(kernel.cost.locations),
        )

    def _of_limit_text(self, cost: KernelCost | Cost, seconds: float) -> str:
        part = self.of_limit(cost, seconds)
        return f"{100 * part:.0f} %" if part else ""

    def _events(self) -> Iterator[dict[str, Any]]:
        yield {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": self.device}}
        yield {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "kernels"}}
        for dispatch in self.dispatches:
            kernel = self.kernels[dispatch.name]
            yield {
                "ph": "X",
                "pid": 0,
                "tid": 0,
                "name": dispatch.name,
                "cat": kernel.cost.kind,
                "ts": dispatch.start * 1e6,
                "dur": dispatch.seconds * 1e6,
                "args": {
                    "GB/s": kernel.gigabytes_per_second,
                    "GFLOP/s": kernel.gigaflops,
                    "of the limit": self.of_limit(kernel.cost, kernel.seconds),
                    "times": times_text(kernel.cost.times, kernel.cost.is_least),
                    "source lines": list(kernel.cost.locations),
                },
            }


def profile_of(
    device: str, cost: Cost, dispatches: Sequence[TimedDispatch], copy_rate: float, arithmetic_rate: float
) -> Profile:
    """The profile of a run; dispatches with the same name belong to the same kernel.

    The rates are the device's limits, in bytes and in floating-point operations per second.
    """
    seconds: dict[str, float] = {}
    for dispatch in dispatches:
        seconds[dispatch.name] = seconds.get(dispatch.name, 0.0) + dispatch.seconds
    kernels = {name: KernelTime(cost.kernels[name], time) for name, time in seconds.items()}
    return Profile(device, kernels, tuple(dispatches), copy_rate / 1e9, arithmetic_rate / 1e9)


def _rate(amount: int, seconds: float) -> float:
    return amount / seconds / 1e9 if seconds else 0.0
