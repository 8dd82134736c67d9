"""Runs graphs on the device, for tests that compare it with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from lavax.backends.vulkan.backend import VulkanBackend
from lavax.ir import Graph, interpret


@cache
def backend() -> VulkanBackend:
    return VulkanBackend()


def run(graph: Graph, arrays: Sequence[np.ndarray], *, eager: bool = False) -> list[np.ndarray]:
    """The graph's outputs as the device computes them."""
    program = backend().lower(graph, eager=eager).compile()
    stored = zip(arrays, graph.inputs, strict=True)
    buffers = [backend().upload(np.ascontiguousarray(a, node.dtype.storage)) for a, node in stored]
    results = zip(program(*buffers), graph.outputs, strict=True)
    return [backend().download(buffer, node.type).astype(node.dtype.numpy) for buffer, node in results]


def assert_agrees(graph: Graph, arrays: Sequence[np.ndarray], *, eager: bool = False, ulps: float = 8.0) -> None:
    """The device's results are the interpreter's, floats to a few units in the last place of the largest summand."""
    found = run(graph, arrays, eager=eager)
    expected = interpret(graph, *arrays)
    for got, want in zip(found, expected, strict=True):
        assert got.shape == want.shape
        if got.dtype.kind != "f":
            np.testing.assert_array_equal(got, want)
            continue
        with np.errstate(over="ignore"):
            rounded = want.astype(np.float32)
        scale = np.abs(rounded[np.isfinite(rounded)]).max(initial=1e-30)
        np.testing.assert_allclose(got, rounded, rtol=ulps * 2.0**-23, atol=ulps * 2.0**-23 * scale)
