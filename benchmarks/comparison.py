"""Workloads timed in several libraries, in one process and interleaved."""
from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.figure import median
from benchmarks.peers import Peer, Run
from benchmarks.processors import quiet_clock
from benchmarks.workloads import Workload
from benchmarks.workloads.library import UnsupportedError

# Calls in a row take about this long, with these limits on their number.
ROW_SECONDS, SHORTEST_ROW, LONGEST_ROW = 0.02, 2, 50
# Limits on the rounds of a workload, which end when each library had its seconds.
FEWEST_ROUNDS, MOST_ROUNDS = 3, 200
# Results of two libraries may differ by this part of the largest number.
AGREEMENT = 1e-3


@dataclass(frozen=True)
class Limits:
    """The device's peak rates, in bytes and floating-point operations per second."""

    copy: float
    product: float

    def seconds(self, workload: Workload) -> float:
        """The shortest possible time of the workload."""
        return max(workload.nbytes / self.copy, workload.operations / self.product)


@dataclass(frozen=True)
class Measurement:
    """Seconds per call of one workload in one library: for a single call that is waited for, and for calls in a row.

    `processors` are the seconds of all processors together in this process, per call in a row, without busy threads: on
    a CPU driver, other work on the machine changes this measure least.
    """

    workload: Workload
    library: str
    waited: list[float] = field(default_factory=list)
    in_row: list[float] = field(default_factory=list)
    processors: list[float] = field(default_factory=list)
    peak_bytes: int | None = None
    problem: str = ""  # why there are no times

    @property
    def seconds(self) -> float:
        """The median for the faster way of calling."""
        return min(median(self.waited), median(self.in_row))

    @property
    def operations_per_second(self) -> float:
        return self.workload.operations / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.workload.nbytes / self.seconds


def measure(workload: Workload, peers: Sequence[Peer], seconds: float) -> list[Measurement]:
    """Every library's times, over about `seconds` each; the first library's results count as correct."""
    runs: dict[str, Run] = {}
    problems: dict[str, str] = {}
    arguments = workload.arguments()
    expected: Sequence[np.ndarray] | None = None
    for peer in peers:
        try:
            run = peer.prepare(workload, arguments)
            found = _first_results(run)
        except UnsupportedError:
            continue
        except Exception as error:  # a library's own error is a result of the comparison, and no end of it
            problems[peer.name] = f"{type(error).__name__}: {error}".splitlines()[0]
            continue
        expected = found if expected is None else expected
        if agree(found, expected):
            runs[peer.name] = run
        else:
            problems[peer.name] = "its results are others"
    measured = {name: Measurement(workload, name, peak_bytes=run.peak_bytes()) for name, run in runs.items()}
    _time_in_turn(runs, measured, seconds)
    failed = [Measurement(workload, name, problem=problem) for name, problem in problems.items()]
    return [*measured.values(), *failed]


def agree(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    """Whether all results are nearly the same."""
    return [array.shape for array in found] == [array.shape for array in expected] and all(
        np.max(np.abs(one - other), initial=0) <= AGREEMENT * np.max(np.abs(other), initial=1e-30)
        for one, other in zip(found, expected, strict=True)
    )


def best_product(measurements: Iterable[Measurement]) -> float:
    """Operations per second of the fastest matrix product."""
    products = (m for m in measurements if m.workload.name.startswith("matmul") and not m.problem)
    return max((m.operations_per_second for m in products), default=math.nan)


def _first_results(run: Run) -> Sequence[np.ndarray]:
    """The seconds of a third call, because some libraries compile at the second."""
    for _ in range(3):
        results = run.call()
        run.wait(results)
    return run.read(results)


def _time_in_turn(runs: dict[str, Run], measured: dict[str, Measurement], seconds: float) -> None:
    """Rounds in which each library runs a single call and calls in a row, in a different order each time.

    A library that had its seconds is left out of further rounds.
    """
    shuffle = random.Random(0).shuffle
    processor_seconds = quiet_clock()
    rows = {name: _row_length(run) for name, run in runs.items()}
    spent = dict.fromkeys(runs, 0.0)
    for number in range(MOST_ROUNDS):
        order = [name for name in runs if number < FEWEST_ROUNDS or spent[name] < seconds]
        shuffle(order)
        for name in order:
            alone = _timed(runs[name], 1)
            before = processor_seconds()
            several = _timed(runs[name], rows[name])
            measured[name].waited.append(alone)
            measured[name].in_row.append(several / rows[name])
            measured[name].processors.append((processor_seconds() - before) / rows[name])
            spent[name] += alone + several


def _row_length(run: Run) -> int:
    return max(SHORTEST_ROW, min(LONGEST_ROW, round(ROW_SECONDS / _timed(run, 1))))


def _timed(run: Run, calls: int) -> float:
    """Seconds from the first call until all results are ready."""
    start = time.perf_counter()
    results = [run.call() for _ in range(calls)]
    for result in results:
        run.wait(result)
    return time.perf_counter() - start


def over_first(
    measurements: Sequence[Measurement], first: str, seconds: Callable[[Measurement], list[float]]
) -> dict[str, float]:
    """Per library, its median of `seconds` over that of `first`: the geometric mean over their common workloads."""
    of_first = {m.workload.name: m for m in measurements if m.library == first and not m.problem}
    ratios: dict[str, list[float]] = {}
    for m in _timed_ones(measurements):
        if m.workload.name in of_first and m.library != first:
            ratio = median(seconds(m)) / median(seconds(of_first[m.workload.name]))
            ratios.setdefault(m.library, []).append(ratio)
    return {library: math.exp(sum(map(math.log, found)) / len(found)) for library, found in ratios.items()}


def _timed_ones(measurements: Iterable[Measurement]) -> Iterator[Measurement]:
    return (m for m in measurements if not m.problem)


Report = Callable[[Sequence[Measurement]], None]


def compare(workloads: Sequence[Workload], peers: Sequence[Peer], seconds: float, report: Report) -> list[Measurement]:
    """All workloads in all libraries; `report` is called with the measurements of each workload."""
    found: list[Measurement] = []
    for workload in workloads:
        measurements = measure(workload, peers, seconds)
        report(measurements)
        found += measurements
    return found
