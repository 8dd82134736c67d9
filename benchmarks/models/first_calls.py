"""First calls of training steps by stage, each in a process of its own: with empty caches, then with filled ones."""
from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

from benchmarks.figure import markdown
from benchmarks.first_call import ROOT, keep_caches_in

HEAD = ("model", "caches", "import", "device", "first call", "processor time", "second call")
# Those of the thread that calls, in order, and then those of all threads together.
STAGES = ("trace", "lower", "prepare", "fuse, schedule", "emit", "plan's file", "rates", "pipelines left", "record")
IN_THREADS = ("glslang", "files of caches", "driver's pipelines")


@dataclass
class Clock:
    """Seconds by stage. A stage within another one is no part of that one; in threads, all add up."""

    seconds: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _within: threading.local = field(default_factory=threading.local)

    def around(self, owner: Any, name: str, stage: str) -> None:
        """From now on, calls of a function or method are timed as that stage."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            inner: list[float] = getattr(self._within, "inner", None) or [0.0]
            self._within.inner = mine = [0.0]
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                taken = time.perf_counter() - start
                self._within.inner = inner
                inner[0] += taken
                with self._lock:
                    self.seconds[stage] = self.seconds.get(stage, 0.0) + taken - mine[0]

        setattr(owner, name, timed)

    def around_workers(self, owner: Any) -> None:
        """From now on, what the extension's threads make counts by the times that they say, when it is taken."""
        function = owner.made

        @functools.wraps(function)
        def counted(*args: Any) -> Any:
            made = function(*args)
            if made is not None:
                for stage, seconds in (("glslang", made.compiler_seconds), ("driver's pipelines", made.driver_seconds)):
                    self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
            return made

        owner.made = counted


def report(only: Sequence[str] | None, quick: bool, show: Callable[[str], Any]) -> None:
    """Shows a row for each model whose name matches, and for each state of the caches."""
    from benchmarks.models.library import WORKLOADS

    names = [make().name for make in WORKLOADS]
    chosen = [name for name in names if not only or any(fnmatch(name, pattern) for pattern in only)]
    rows = [row for name in chosen for row in _pair(name)]
    show(markdown((*HEAD, *STAGES, *(f"{stage}, all threads" for stage in IN_THREADS)), rows))


def _pair(name: str) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        keep_caches_in(folder)
        return [_row(name, caches) for caches in ("empty", "filled")]


def _row(name: str, caches: str) -> list[str]:
    command = [sys.executable, "-m", "benchmarks.models.first_calls", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        return [name, caches, "failed", done.stderr.splitlines()[-1]]
    found = json.loads(done.stdout.splitlines()[-1])
    return [name, caches, *(f"{found.get(column, 0.0):.2f}" for column in (*HEAD[2:], *STAGES, *IN_THREADS))]


def measure(name: str) -> dict[str, float]:
    """The first call of a training step in this process, whose weights are zeros."""
    start = time.perf_counter()
    import lavax as lx

    found = {"import": time.perf_counter() - start}
    import numpy as np

    from benchmarks.models.in_lavax import training_step
    from benchmarks.models.library import WORKLOADS

    workload = next(workload for make in WORKLOADS if (workload := make()).name == name)
    step, optimizer = training_step(workload)
    model = lx.eval_shape(workload.build, lx.eval_shape(lambda: lx.random.key(0)))
    kinds = (model, lx.eval_shape(optimizer.init, model))
    start = time.perf_counter()
    lx.device_put(np.zeros(1)).block_until_ready()
    found["device"] = time.perf_counter() - start
    zeros = lx.tree.map(lambda kind: lx.device_put(np.zeros(kind.shape, str(kind.dtype))), kinds)
    inputs = lx.device_put(workload.draw(np.random.default_rng(0)))
    lx.block_until_ready((zeros, inputs))
    clock = _clock()
    start, processors = time.perf_counter(), time.process_time()
    *held, loss = step(*zeros, *inputs)
    loss.block_until_ready()
    found["first call"], found["processor time"] = time.perf_counter() - start, time.process_time() - processors
    start = time.perf_counter()
    step(*held, *inputs)[2].block_until_ready()
    return found | {"second call": time.perf_counter() - start} | clock.seconds


def _clock() -> Clock:
    from lavax.backends.vulkan import backend
    from lavax.backends.vulkan.compile import disk_cache, pipelines, plan_cache, shader_compiler, workers
    from lavax.backends.vulkan.run import program
    from lavax.tracer.compiled.compile import CompiledFunction

    clock = Clock()
    for owner, name, stage in (
        (CompiledFunction, "_traced", "trace"),
        (backend.VulkanBackend, "lower", "lower"),
        (backend, "prepare", "prepare"),
        (backend, "schedule", "fuse, schedule"),
        (backend, "emit_program", "emit"),
        (backend.LoweredGraph, "_key", "plan's file"),
        (plan_cache, "load", "plan's file"),
        (plan_cache, "store", "plan's file"),
        (backend.VulkanBackend, "rates", "rates"),
        (pipelines.Pipelines, "get", "pipelines left"),
        (program.Program, "__init__", "record"),
        (shader_compiler.glslang, "compile_shader", "glslang"),
        (disk_cache.DiskCache, "load", "files of caches"),
        (pipelines.Pipelines, "_created", "driver's pipelines"),
    ):
        clock.around(owner, name, stage)
    clock.around_workers(workers.Workers)
    return clock


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
