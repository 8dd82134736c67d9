"""Fences in shaders whose main is long."""
from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.glsl.long_bodies import STATEMENTS, with_fences
from lavax.backends.vulkan.glsl.shader import suited
from lavax.backends.vulkan.plan.plan import Shader
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir import parse
from tests.backends.vulkan.run.execution import backend_with, run

FENCE = "memoryBarrierBuffer();"


def _shader(count: int) -> str:
    """A shader with a block of so many statements, one of which stretches over two lines."""
    statements = "".join(f"        data[{n}] = data[{n}] +\n            {n}.0;\n" for n in range(count // 2))
    return (
        "#version 460\nlayout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer Data { float data[]; };\n"
        f"void main() {{\n    if (gl_GlobalInvocationID.x < 1u) {{\n{statements}    }}\n}}\n"
    )


def test_short_shaders_are_left_as_they_are() -> None:
    source = _shader(STATEMENTS - 10)
    assert with_fences(source) == source


def test_long_ones_get_a_fence_between_statements() -> None:
    source = _shader(4 * STATEMENTS)
    changed = with_fences(source)
    assert changed.count(FENCE) == 4
    assert [line for line in changed.split("\n") if FENCE not in line] == source.split("\n")
    lines = changed.split("\n")
    assert all(first.endswith(";") for first, second in pairwise(lines) if FENCE in second)
    compile_glsl(changed)


def test_newer_drivers_of_processors_alone_get_them() -> None:
    source = _shader(4 * STATEMENTS)
    for profile in (CPU_DRIVER, GENERIC_GPU):
        assert FENCE not in suited(Shader(source), profile).source
    assert FENCE not in suited(Shader(source), replace(GENERIC_GPU, reorders_floats=True)).source
    assert FENCE in suited(Shader(source), replace(CPU_DRIVER, reorders_floats=True)).source


@pytest.mark.usefixtures("on_a_cpu_driver")
def test_a_transform_of_many_lines_has_fences_and_is_right() -> None:
    graph = parse("""
        graph (x: f32[64,1000]) {
          %0 = cast(x) : c64[64,1000]
          %1 = fft(%0) axis=1 : c64[64,1000]
          %2 = real(%1) : f32[64,1000]
          return %2
        }
    """)
    device = backend_with(reorders_floats=True)
    assert any(FENCE in each.shader.source for each in device.lower(graph).plan.dispatches)
    x = np.random.default_rng(0).normal(size=(64, 1000)).astype("f")
    (found,) = run(graph, [x], device=device)
    np.testing.assert_allclose(found, np.fft.fft(x.astype("d")).real, atol=2e-4)
