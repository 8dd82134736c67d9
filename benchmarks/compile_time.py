"""The growth of compile time with the length of a program."""
from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from benchmarks import figure
from benchmarks.figure import Figure
from benchmarks.peers.lavax import LavaxLibrary
from benchmarks.workloads import workloads_for
from lavax.passes.differentiate import differentiate
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient, simplify

LAYERS = (10, 100, 1000)
WIDTH, BATCH = 16, 8
ROUNDS = 3
STAGES = ("trace", "simplify and differentiate", "fuse and schedule", "emit GLSL")
STEP_BOUND = 50.0  # milliseconds
BOUND = 2.0  # of the time a layer takes in the longest network over that in the one before

Made = TypeVar("Made")


def measure() -> Sequence[Figure]:
    """The stages of compiling the gradient of networks of 10, 100 and 1,000 layers, and a training step's kernels."""
    stages_of(LAYERS[0])  # what is imported and looked up once
    times = {layers: shortest(*(stages_of(layers) for _ in range(ROUNDS))) for layers in LAYERS}
    figures = [
        Figure(f"{stage}, {layers:,} layers", f"{1e3 * times[layers][number]:.4g} ms")
        for number, stage in enumerate(STAGES)
        for layers in LAYERS
    ]
    for number, stage in enumerate(STAGES):
        short, long = (times[layers][number] / layers for layers in LAYERS[-2:])
        name = f"{stage}, a layer of {LAYERS[-1]:,} over one of {LAYERS[-2]:,}"
        figures.append(figure.at_most(name, long / short, BOUND))
    shortest_step = min(1e3 * step_to_kernels() for _ in range(ROUNDS))
    figures.append(figure.at_most("mlp-step, trace to kernels", shortest_step, STEP_BOUND, unit=" ms"))
    return figures


def step_to_kernels() -> float:
    """The seconds of processor time from a training step's function to its kernels."""
    workload = next(w for w in workloads_for(large=False) if w.name == "mlp-step")
    arguments = workload.arguments()
    start = time.process_time()
    lx.compile(workload.define(LavaxLibrary())).lower(*arguments).as_text("kernels")
    return time.process_time() - start


def shortest(*runs: Sequence[float]) -> list[float]:
    """The shortest time of each stage."""
    return [min(seconds) for seconds in zip(*runs, strict=True)]


def loss(weights: Sequence[lnp.ndarray], x: lnp.ndarray) -> lnp.ndarray:
    """The sum of the outputs of a network whose layers have one width."""
    for weight in weights:
        x = lnp.tanh(x @ weight)
    return lnp.sum(x)


def stages_of(layers: int) -> list[float]:
    """The seconds of processor time per stage, which are the same on a busy machine."""
    from lavax.backends.vulkan.backend import VulkanBackend  # late: it needs the Vulkan bindings
    from lavax.backends.vulkan.emit.program import emit_program

    weights = [np.zeros((WIDTH, WIDTH), np.float32)] * layers
    x = np.zeros((BATCH, WIDTH), np.float32)
    profile = VulkanBackend().profile
    seconds: list[float] = []

    def timed(make: Callable[[], Made]) -> Made:
        gc.collect()
        gc.disable()  # it would go over all that lives, again and again
        try:
            start = time.process_time()
            made = make()
            seconds.append(time.process_time() - start)
        finally:
            gc.enable()
        return made

    traced = timed(lambda: lx.trace(loss)(weights, x))
    gradient = timed(lambda: remove_stop_gradient(differentiate(simplify(traced), range(layers))))
    program = timed(lambda: schedule(prepare(gradient)))
    timed(lambda: emit_program(program, profile))
    return seconds
