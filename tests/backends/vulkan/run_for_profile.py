"""Runs graphs with the schedules of a GPU on the device at hand, whatever it is.

Shared memory, barriers and large teams are in no shader for a CPU driver. Any device runs them, if not fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.backends.vulkan.profile import DeviceProfile
from lavax.ir import Graph


@cache
def gpu_backend() -> VulkanBackend:
    """The device at hand with the schedules of a GPU that has its limits and features."""

    class ScheduledAsGpu(VulkanBackend):
        profile: DeviceProfile = replace(VulkanBackend().profile, kind="gpu")

    return ScheduledAsGpu()


def run_as_gpu(graph: Graph, arrays: Sequence[np.ndarray], *, eager: bool = False) -> list[np.ndarray]:
    """The graph's outputs as the device computes them with the schedules of a GPU."""
    backend = gpu_backend()
    program = backend.lower(graph, eager=eager).compile()
    stored = zip(arrays, graph.inputs, strict=True)
    buffers = [backend.upload(node.dtype.to_storage(array)) for array, node in stored]
    results = zip(program(*buffers), graph.outputs, strict=True)
    return [backend.download(buffer, node.type) for buffer, node in results]
