"""Runs graphs on the device, for tests that compare it with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.ir import Graph, interpret

_UNITS = {"f32": 2.0**-23, "f64": 2.0**-52, "f16": 2.0**-10, "bf16": 2.0**-7}  # of numbers from 1 to 2


@cache
def backend() -> VulkanBackend:
    return VulkanBackend()


@cache
def backend_with(**changes: Any) -> VulkanBackend:
    """The device at hand with another profile. `kind="gpu"`: shared memory, barriers and large row groups, which
    no shader for a CPU driver has; any device runs them, if slowly. Memory has descriptor ranges only if the device's
    own profile does."""
    found = VulkanBackend()
    own = backend().profile
    descriptor_bytes = own.descriptor_bytes if own.descriptor_range_bytes else 0
    found.profile = replace(own, **{"descriptor_bytes": descriptor_bytes, **changes})
    return found


def run(
    graph: Graph, arrays: Sequence[np.ndarray], *, eager: bool = False, device: VulkanBackend | None = None
) -> list[np.ndarray]:
    """The graph's outputs as the device computes them."""
    device = device or backend()
    program = device.lower(graph, eager=eager).compile()
    stored = zip(arrays, graph.inputs, strict=True)
    buffers = [device.upload(node.dtype.to_storage(array)) for array, node in stored]
    results = zip(program(*buffers), graph.outputs, strict=True)
    return [device.download(buffer, node.type) for buffer, node in results]


def run_as_gpu(graph: Graph, arrays: Sequence[np.ndarray], *, eager: bool = False) -> list[np.ndarray]:
    """`run`, with the schedules of a GPU."""
    return run(graph, arrays, eager=eager, device=backend_with(kind="gpu"))


def assert_agrees(
    graph: Graph,
    arrays: Sequence[np.ndarray],
    *,
    eager: bool = False,
    ulps: float = 8.0,
    device: VulkanBackend | None = None,
) -> None:
    """The device's results are the interpreter's, floats to a few units in the last place of the largest summand."""
    found = run(graph, arrays, eager=eager, device=device)
    expected = interpret(graph, *arrays)
    for got, want, node in zip(found, expected, graph.outputs, strict=True):
        assert got.shape == want.shape
        if got.dtype.kind != "f":
            np.testing.assert_array_equal(got, want)
            continue
        rounded = node.dtype.rounded(want).astype(np.float64)
        scale = np.abs(rounded[np.isfinite(rounded)]).max(initial=1e-30)
        unit = _UNITS[node.dtype.name]
        np.testing.assert_allclose(got.astype(np.float64), rounded, rtol=ulps * unit, atol=ulps * unit * scale)
