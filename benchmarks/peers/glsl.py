"""Hand-written kernels, on lavax's device and queue, but without lavax's compiler."""
from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.limits.kernels import KERNELS
from benchmarks.peers.peer import Run
from benchmarks.workloads import Arguments, Workload
from benchmarks.workloads.library import UnsupportedError

TRIALS = 5


class GlslPeer:
    name = "GLSL"
    version = "by hand"

    def prepare(self, workload: Workload, arguments: Arguments) -> Run:
        from lavax.backends.vulkan.device.device import get_device  # late: these open the device
        from lavax.backends.vulkan.run.program import Program

        kernel = KERNELS.get(workload.name)
        if kernel is None:
            raise UnsupportedError
        device = get_device()
        buffers = [device.transfer.upload(argument) for argument in arguments]
        program = _fastest([Program(device, plan) for plan in kernel.plans(arguments)], buffers)
        shape = kernel.result([argument.shape for argument in arguments])

        def read(results: Any) -> list[np.ndarray]:
            contents = device.transfer.download(results[0], program.plan.results[0].nbytes)
            return [contents.view(np.float32).reshape(shape)]

        return Run(lambda: program(*buffers), lambda results: results[0].wait(), read)


def _fastest(programs: Sequence[Any], buffers: Sequence[Any]) -> Any:
    """The program with the shortest call among a few, each after a warm-up call."""

    def seconds(program: Any) -> float:
        found = []
        for _ in range(1 + TRIALS):
            start = time.perf_counter()
            program(*buffers)[0].wait()
            found.append(time.perf_counter() - start)
        return min(found[1:])

    return programs[0] if len(programs) == 1 else min(programs, key=seconds)
