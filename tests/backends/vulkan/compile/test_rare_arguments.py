"""GPUs reduce small angles, and take erfinv of all but the ends, on short paths of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.accuracy import edges, flushed
from benchmarks.accuracy import units as errors
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir import parse
from tests import denormals
from tests.backends.vulkan.emit.emission import dispatch_of
from tests.backends.vulkan.run.execution import backend, backend_with, run
from tests.shaders_glsl.test_elementary_functions import inverse_error_function

GRAPH = """
graph (x: f32[{length}]) {{
  %0 = {op}(x) : f32[{length}]
  return %0
}}
"""
BOUND = 4.0
# Floats whose reduced angle is wrong by most, of all up to 12,800, and those nearest to a multiple of pi/2.
HARDEST = (9523.736, 12799.999, 12800.0, 12800.001, 6433.982, 355.0, 710.0, 8873.628, 22.0, 1.5707964, 3.1415927)


def angles() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Edges, random bits, both sides of where the short path ends, floats next to multiples of pi/2."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, 6000, dtype=np.uint32).view(np.float32)
    turns = (np.arange(-8300, 8300) * (math.pi / 2)).astype(np.float32)
    inside, around = rng.uniform(-13000, 13000, 6000), 12800 + rng.uniform(-1, 1, 100)
    numbers = np.concatenate([inside, around, -around, HARDEST]).astype(np.float32)
    return np.concatenate([edges(), bits, turns, np.nextafter(turns, np.float32(0)), numbers])


@pytest.mark.parametrize(("op", "name"), [("sin", "reduce_any_angle"), ("erfinv", "if (w < 6.0)")])
def test_only_gpus_branch(op: str, name: str) -> None:
    graph = GRAPH.format(op=op, length=64)
    assert name in dispatch_of(graph, GENERIC_GPU).shader.source
    assert name not in dispatch_of(graph, CPU_DRIVER).shader.source


@pytest.mark.parametrize(("op", "reference"), [("sin", np.sin), ("cos", np.cos), ("tan", np.tan)])
def test_angles_on_both_paths_are_within_the_bound(op: str, reference: Callable[..., Any]) -> None:
    x = angles()
    (got,) = run(parse(GRAPH.format(op=op, length=x.size)), [x], device=backend_with(kind="gpu"))
    with np.errstate(all="ignore"):
        units = errors(got, reference(x.astype(np.float64)))
        if denormals.are_flushed():
            units = np.minimum(units, errors(got, reference(flushed(x).astype(np.float64))))
            units = np.minimum(units, errors(flushed(got), reference(x.astype(np.float64))))
    worst = int(np.argmax(units))
    assert units[worst] <= BOUND, (x[worst], got[worst], units[worst])


def test_zeros_keep_their_signs() -> None:
    (got,) = run(parse(GRAPH.format(op="sin", length=4)), [np.array([0, -0.0, 1e-30, -1e-30], np.float32)],
                 device=backend_with(kind="gpu"))  # fmt: skip
    assert np.signbit(got).tolist() == [False, True, False, True]


def test_inverses_of_erf_are_those_of_the_library() -> None:
    rng = np.random.default_rng(4)
    ends = 1 - 2.0 ** rng.uniform(-24, -1, 4000)
    x = np.concatenate([edges(), rng.uniform(-1, 1, 6000), ends, -ends, [0.99876, -0.99876]]).astype(np.float32)
    graph = parse(GRAPH.format(op="erfinv", length=x.size))
    (got,), (library,) = (run(graph, [x], device=device) for device in (backend_with(kind="gpu"), backend()))
    with np.errstate(all="ignore"):
        exact = inverse_error_function(x.astype(np.float64), got.astype(np.float64))
    assert np.max(errors(got, exact)) <= BOUND
    assert np.array_equal(got, library, equal_nan=True)
