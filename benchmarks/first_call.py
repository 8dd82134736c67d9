"""Seconds from the first call of a function to its results: compile times with empty and with filled caches."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import lavax as lx
from benchmarks.figure import markdown
from benchmarks.peers import find_peers
from benchmarks.workloads import Workload, deep_network, workloads_for

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 3

# The cache folders of lavax, Mesa's and NVIDIA's drivers, JAX, PyTorch and tinygrad.
CACHE_VARIABLES = (
    "LAVAX_CACHE",
    "MESA_SHADER_CACHE_DIR",
    "__GL_SHADER_DISK_CACHE_PATH",
    "JAX_COMPILATION_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "XDG_CACHE_HOME",
)
SETTINGS = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "LAVAX_PLANS": "1"}
FULL = ("call-1", "mlp-step", "transformer-step", "gpt-step", "gradient-of-1000-layers")
QUICK = ("call-1", "mlp-step", "gpt-step")


@dataclass(frozen=True)
class FirstCall:
    """Seconds by the clock, and of all processors together."""

    clock: float
    processors: float


def first_call(library: str, name: str) -> FirstCall:
    """The first call in this process, with arguments on the host."""
    large = lx.default_device().kind == "discrete"
    workload: Workload = next(w for w in (*workloads_for(large), deep_network(1000)) if w.name == name)
    peer = next(peer for peer in find_peers(large, lambda *_: None, [library]) if peer.name == library)
    arguments = workload.arguments()
    clock, processors = time.perf_counter(), time.process_time()
    run = peer.prepare(workload, arguments)
    run.wait(run.call())
    return FirstCall(time.perf_counter() - clock, time.process_time() - processors)


def table(libraries: Sequence[str], quick: bool) -> str:
    """Pairs of processes: the first with empty caches, the second with the caches that the first filled."""
    rows = []
    for name in QUICK if quick else FULL:
        for library in libraries:
            pairs = [_pair(library, name) for _ in range(1 if quick else REPEATS)]
            if any(None in pair for pair in pairs):
                rows.append([name, library, "failed", "", "", ""])
                continue
            row = [name, library]
            for calls in zip(*pairs, strict=True):
                row += [seconds_text([call.clock for call in calls]), seconds_text([call.processors for call in calls])]
            rows.append(row)
    head = ("first call of", "library", "empty caches", "processor time", "filled caches", "processor time")
    return markdown(head, rows)


def seconds_text(seconds: Sequence[float]) -> str:
    """The median, and for several values also the minimum and the maximum."""
    middle = f"{median(seconds):.3g} s"
    return middle if len(seconds) == 1 else f"{middle} ({min(seconds):.3g} to {max(seconds):.3g})"


def _pair(library: str, name: str) -> tuple[FirstCall | None, FirstCall | None]:
    with tempfile.TemporaryDirectory() as folder:
        keep_caches_in(folder)
        return _in_process_of_its_own(library, name), _in_process_of_its_own(library, name)


def keep_caches_in(folder: str) -> None:
    """For the processes started from here, not for this one."""
    for variable in CACHE_VARIABLES:
        os.putenv(variable, folder)
    for variable, value in SETTINGS.items():
        os.putenv(variable, value)


def _in_process_of_its_own(library: str, name: str) -> FirstCall | None:
    """None if it fails."""
    command = [sys.executable, "-m", "benchmarks.first_call", library, name]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if finished.returncode != 0:
        return None
    return FirstCall(**json.loads(finished.stdout.splitlines()[-1]))


if __name__ == "__main__":
    print(json.dumps(asdict(first_call(*sys.argv[1:]))))
