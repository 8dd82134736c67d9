"""Runs graphs on the device, for tests that compare it with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.ir import Graph, interpret

_UNITS = {"f32": 2.0**-23, "f64": 2.0**-52, "f16": 2.0**-10, "bf16": 2.0**-7}  # of numbers from 1 to 2


@cache
def backend() -> VulkanBackend:
    return VulkanBackend()


def run(
    graph: Graph, arrays: Sequence[np.ndarray], *, eager: bool = False, device: VulkanBackend | None = None
) -> list[np.ndarray]:
    """The graph's outputs as the device computes them."""
    return run_on(device or backend(), graph, arrays, eager=eager)


def run_on(
    target: VulkanBackend, graph: Graph, arrays: Sequence[np.ndarray], *, eager: bool = False
) -> list[np.ndarray]:
    """The graph's outputs as a backend computes them."""
    program = target.lower(graph, eager=eager).compile()
    stored = zip(arrays, graph.inputs, strict=True)
    buffers = [target.upload(node.dtype.to_storage(array)) for array, node in stored]
    results = zip(program(*buffers), graph.outputs, strict=True)
    return [target.download(buffer, node.type) for buffer, node in results]


def assert_agrees(graph: Graph, arrays: Sequence[np.ndarray], *, eager: bool = False, ulps: float = 8.0) -> None:
    """The device's results are the interpreter's, floats to a few units in the last place of the largest summand."""
    assert_agrees_on(backend(), graph, arrays, eager=eager, ulps=ulps)


def assert_agrees_on(
    target: VulkanBackend, graph: Graph, arrays: Sequence[np.ndarray], *, eager: bool = False, ulps: float = 8.0
) -> None:
    """`assert_agrees`, of a backend."""
    found = run_on(target, graph, arrays, eager=eager)
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
