"""Runs programs by their numbers on engines, and writes what differs, made small, into a folder."""
from __future__ import annotations

import json
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.compare import Difference, differences
from tests.fuzz.corpus import text_of
from tests.fuzz.engines import DEVICES, INTERPRETERS
from tests.fuzz.noise import RUNS_TO_CONFIRM, IllConditionedError, expected
from tests.fuzz.programs import Program, program
from tests.fuzz.shrink import shows, shrink

# Kernels of every profile for every program; shaders, which take a driver long to compile, for a share of them.
EVERY_TIME = tuple(INTERPRETERS)
ONE_IN = {"device": 4, "eager": 8, "as a GPU": 8, "as a small device": 16}


@dataclass
class Report:
    """What was run, and what was found."""

    programs: int = 0
    without: int = 0  # numbers that have no program, or one whose results hang on roundings
    runs: Counter[str] = field(default_factory=Counter)
    nodes: int = 0
    seconds: float = 0.0
    found: list[tuple[int, Difference]] = field(default_factory=list)

    def __str__(self) -> str:
        rate = self.programs / max(self.seconds, 1e-9)
        runs = ", ".join(f"{engine} {count}" for engine, count in self.runs.items())
        return (
            f"{self.programs} programs of {self.nodes / max(self.programs, 1):.0f} operations in {self.seconds:.0f} s "
            f"({rate:.1f} per second; {self.without} numbers without one): {len(self.found)} differences. Runs: {runs}"
        )


def engines_for(number: int, share: float = 1.0) -> list[str]:
    """The engines of a program: all interpreters, and the devices in turn, the oftener the larger `share` is."""
    places = enumerate(DEVICES) if share else ()
    return [*EVERY_TIME, *(name for place, name in places if (number + place) % round(ONE_IN[name] / share) == 0)]


def run_one(number: int, engines: Sequence[str], report: Report) -> tuple[Program | None, list[Difference]]:
    try:
        drawn = program(number)
        wanted = drawn.expected()
    except IllConditionedError:
        report.without += 1
        return None, []
    except Exception as error:  # a transformation failed
        found = Difference("transformation", type(error).__name__, "".join(traceback.format_exception(error)[-4:]))
        report.found.append((number, found))
        return None, [found]
    report.programs += 1
    report.nodes += len(drawn.graph.nodes)
    report.runs.update(engines)
    found = _confirmed(drawn, differences(engines, drawn.graph, drawn.arrays, wanted))
    report.found += [(number, each) for each in found]
    return drawn, found


def _confirmed(drawn: Program, found: Sequence[Difference]) -> list[Difference]:
    """The differences that are left once the graph's condition is known better."""
    if not found:
        return []
    try:
        wanted = expected(drawn.graph, drawn.arrays, drawn.number, RUNS_TO_CONFIRM, in_doubles=True)
    except IllConditionedError:
        return []
    return differences([each.engine for each in found], drawn.graph, drawn.arrays, wanted)


def write(drawn: Program, found: Difference, folder: Path) -> Path:
    """The smallest program that still shows the difference, as a file."""
    graph, arrays = shrink(drawn.graph, drawn.arrays, shows(found.engine, found.kind))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{drawn.number}_{found.engine.replace(' ', '_')}.txt"
    path.write_text(text_of(found.engine, found.text, graph, arrays), encoding="utf-8")
    return path


def run(numbers: Iterable[int], seconds: float, folder: Path, share: float = 1.0) -> Report:
    """Runs programs until the time is up. `folder` keeps what differs, and the number to go on from."""
    report, start = Report(), time.monotonic()
    state = folder / "state.json"
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        if time.monotonic() - start > seconds:
            break
        drawn, found = run_one(number, engines_for(number, share), report)
        if found:
            path = write(drawn, found[0], folder) if drawn is not None else ""
            print(f"{number}: {', '.join(each.engine for each in found)}: {found[0].text[:200]}\n  {path}", flush=True)
        report.seconds = time.monotonic() - start
        if number % 50 == 0 or found:
            state.write_text(json.dumps({"next": number + 1}), encoding="utf-8")
            print(f"\r{report}", end="\n" if number % 1000 == 0 else "", flush=True)
    return report


def next_number(folder: Path) -> int:
    """The number after the last that ran before; 0 at first."""
    state = folder / "state.json"
    return int(json.loads(state.read_text(encoding="utf-8"))["next"]) if state.is_file() else 0
