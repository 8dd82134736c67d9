"""Seconds from the first call of a function to its results: what compiling takes, with empty and with filled caches."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import lavax as lx
from benchmarks.figure import markdown, median, spread
from benchmarks.peers import find_peers
from benchmarks.workloads import Workload, deep_network, workloads_for

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 3

# Where lavax, Mesa's drivers, NVIDIA's, JAX, PyTorch and tinygrad keep what they compile.
CACHE_VARIABLES = (
    "LAVAX_CACHE",
    "MESA_SHADER_CACHE_DIR",
    "__GL_SHADER_DISK_CACHE_PATH",
    "JAX_COMPILATION_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "XDG_CACHE_HOME",
)
SETTINGS = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
FULL = ("call-1", "mlp-step", "transformer-step", "gradient-of-1000-layers")
QUICK = ("call-1", "mlp-step")


def first_call(library: str, name: str) -> float:
    """Seconds of the first call in this process, with arguments on the host."""
    large = lx.default_device().kind == "discrete"
    workload: Workload = next(w for w in (*workloads_for(large), deep_network(1000)) if w.name == name)
    peer = next(peer for peer in find_peers(large, lambda *_: None, [library]) if peer.name == library)
    arguments = workload.arguments()
    start = time.perf_counter()
    run = peer.prepare(workload, arguments)
    run.wait(run.call())
    return time.perf_counter() - start


def table(libraries: Sequence[str], quick: bool) -> str:
    """Pairs of processes, the first with empty caches, the second with what the first left there."""
    rows = []
    for name in QUICK if quick else FULL:
        for library in libraries:
            pairs = [_pair(library, name) for _ in range(1 if quick else REPEATS)]
            if any(pair is None for pair in pairs):
                rows.append([name, library, "failed", ""])
                continue
            cold, warm = ([pair[index] for pair in pairs if pair is not None] for index in (0, 1))
            rows.append([name, library, _text(cold), _text(warm)])
    return markdown(("first call of", "library", "empty caches", "filled caches"), rows)


def _text(seconds: Sequence[float]) -> str:
    return spread([*seconds, *seconds]) if len(seconds) > 1 else f"{median([*seconds, *seconds]):.3g} s"


def _pair(library: str, name: str) -> tuple[float, float] | None:
    with tempfile.TemporaryDirectory() as folder:
        for variable in CACHE_VARIABLES:
            os.putenv(variable, folder)  # for the processes started from here, not for this one
        for variable, value in SETTINGS.items():
            os.putenv(variable, value)
        cold, warm = (_in_process_of_its_own(library, name) for _ in range(2))
    return None if cold is None or warm is None else (cold, warm)


def _in_process_of_its_own(library: str, name: str) -> float | None:
    command = [sys.executable, "-m", "benchmarks.first_call", library, name]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return float(finished.stdout.split()[-1]) if finished.returncode == 0 else None


if __name__ == "__main__":
    print(first_call(*sys.argv[1:]))
