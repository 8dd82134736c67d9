"""The digits example's step: kernels, compile time, replay, memory, step time."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lavax as lx
from benchmarks import figure
from benchmarks.figure import Figure
from examples import digits
from lavax import optim

BATCH = 64
COMPILE_REPEATS = 3
REPLAYED = ("traces", "glsl_compiles", "pipelines", "recordings", "submits")
MEMORY_CALLS = 10_000
MEMORY_SAMPLES = 20
TIMED_CALLS = 500

ROOT = Path(__file__).resolve().parent.parent

# The cache folders of lavax and of Mesa's drivers.
CACHE_VARIABLES = ("LAVAX_CACHE", "MESA_SHADER_CACHE_DIR")


class Training:
    """The step with its parameters, state and one batch, for repeated calls."""

    def __init__(self) -> None:
        self.network, self.state, *self.rest = lx.device_put(digits.example_arguments(BATCH))

    def step(self) -> Any:
        """One step; returns the loss, which may not be ready yet."""
        self.network, self.state, loss = digits.step(self.network, self.state, *self.rest)
        return loss


def measure() -> Sequence[Figure]:
    """The digits step: its kernels, the time to its first result, what 100 calls do, memory over 10,000, step time."""
    first_calls = [_first_calls() for _ in range(COMPILE_REPEATS)]
    training = Training()
    return [*_kernels(training), *_compile_time(first_calls), *_replay(training), *_memory(training), *_times(training)]


def count_kernels(function: Any, *args: Any) -> int:
    """The number of kernels of a compiled function for these arguments."""
    text = function.lower(*args).as_text("kernels")
    return sum(line.startswith("kernel ") for line in text.splitlines())


def _kernels(training: Training) -> list[Figure]:
    gradient = lx.compile(lx.value_and_grad(digits.cross_entropy))
    network, state, (images, labels, rate) = training.network, training.state, training.rest
    step = count_kernels(digits.step, network, state, images, labels, rate)
    without_update = count_kernels(gradient, network, images, labels)
    return [
        figure.at_most("kernels in the step", step, 20),
        figure.at_most("of these, added by Adam's update", step - without_update, 2),
        figure.at_most("kernels of Adam's update by itself", count_kernels(update, network, state, network, rate), 2),
    ]


@lx.compile
def update(gradients: Any, state: Any, network: Any, rate: Any) -> Any:
    """Adam's update of the six parameters alone."""
    updates, state = optim.adam(rate).update(gradients, state)
    return optim.apply_updates(network, updates), state


def first_call() -> dict[str, Any]:
    """Seconds from the first call of the step in this process to its result, and the number of shaders compiled."""
    arguments = digits.example_arguments(BATCH)
    start = time.perf_counter()
    float(digits.step(*arguments)[2])
    return {"seconds": time.perf_counter() - start, **lx.profiler.counters()}


def _first_calls() -> list[dict[str, Any]]:
    """`first_call` in two successive processes; the first has empty disk caches, and fills them."""
    program = "import json; from benchmarks import digits; print(json.dumps(digits.first_call()))"
    with tempfile.TemporaryDirectory() as folder:
        for variable in CACHE_VARIABLES:
            os.putenv(variable, folder)  # for the processes started from here, not for this one
        found = [
            subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
            for _ in range(2)
        ]
    return [json.loads(text) for text in found]


def _compile_time(first_calls: Sequence[Sequence[dict[str, Any]]]) -> list[Figure]:
    figures = []
    for caches, bound, runs in zip(("empty", "filled"), (3, 1), zip(*first_calls, strict=True), strict=True):
        seconds = [run["seconds"] for run in runs]
        text = f"{figure.spread(seconds)}, {runs[0]['glsl_compiles']} shaders compiled"
        name = f"first call to its result, {caches} disk caches"
        figures.append(figure.at_most(name, figure.median(seconds), bound, text, unit=" s"))
    return figures


def _replay(training: Training) -> list[Figure]:
    for _ in range(2):
        training.step()
    before = lx.profiler.counters()
    for _ in range(100):
        training.step()
    after = lx.profiler.counters()
    expected = dict.fromkeys(REPLAYED, 0) | {"submits": 100}
    return [figure.exactly(f"{name} in 100 calls", after[name] - before[name], expected[name]) for name in REPLAYED]


def _memory(training: Training) -> list[Figure]:
    from lavax.backends.vulkan.device.device import get_device  # late: it opens the device

    pool = get_device().arrays
    used = set()
    for _ in range(MEMORY_SAMPLES):
        for _ in range(MEMORY_CALLS // MEMORY_SAMPLES):
            loss = training.step()
        loss.block_until_ready()
        use = pool.use()
        used.add((use.in_use, use.allocated))
    in_use, allocated = max(used)
    return [
        figure.exactly(f"different amounts of memory in use over {MEMORY_CALLS:,} calls", len(used), 1),
        Figure("device memory in use, allocated", f"{in_use / 1024:.0f} KiB, {allocated / 2**20:.0f} MiB"),
    ]


def _times(training: Training) -> list[Figure]:
    waited, streamed = [], []
    for _ in range(TIMED_CALLS):
        start = time.perf_counter()
        training.step().block_until_ready()
        waited.append(time.perf_counter() - start)
    for _ in range(TIMED_CALLS // 20):
        start = time.perf_counter()
        for _ in range(20):
            loss = training.step()
        loss.block_until_ready()
        streamed.append((time.perf_counter() - start) / 20)
    return [
        Figure(f"a step of batch {BATCH}, waited for", figure.spread(waited)),
        Figure("a step, in a row of 20", figure.spread(streamed)),
    ]
