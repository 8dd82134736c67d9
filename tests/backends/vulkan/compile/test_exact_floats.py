"""Shaders for drivers that compute floats in another order unless each operation forbids it."""
from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from lavax.backends.vulkan.compile.exact_floats import EXACT_FLOATS, with_exact_floats
from lavax.backends.vulkan.compile.ordered_floats import ORDERED_FLOATS
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl, disassemble
from lavax.backends.vulkan.compile.spirv import fault_of_module
from lavax.backends.vulkan.glsl.shader import suited
from lavax.backends.vulkan.plan.plan import Shader
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.ir import parse
from tests.backends.vulkan.emit.emission import main_of
from tests.backends.vulkan.run.execution import backend_with, run

SOURCE = """#version 460
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { vec4 data[]; };
void main() {
    vec4 x = data[0], y = data[1];
    precise vec4 kept = x * y;
    data[2] = (x + y) - x + kept / (2.5 * x) - vec4(dot(x, y)) + mod(x, y) + (-y);
    data[3].x = float(int(x.x) + 3);
}
"""
ARITHMETIC = re.compile(r"(%\w+) = Op(?:FAdd|FSub|FMul|FDiv|FNegate|FRem|FMod|VectorTimesScalar|Dot) ")
DECORATED = re.compile(r"OpDecorate (%\w+) NoContraction")


def _parts(spirv: bytes) -> tuple[list[str], list[str]]:
    """The results of float arithmetic, and what is decorated."""
    text = disassemble(spirv)
    return ARITHMETIC.findall(text), DECORATED.findall(text)


def test_each_operation_is_decorated_once() -> None:
    results, before = _parts(compile_glsl(SOURCE))
    assert before and set(before) <= set(results), "one variable is precise"
    changed = with_exact_floats(compile_glsl(SOURCE))
    assert fault_of_module(changed) is None
    results, decorated = _parts(changed)
    assert sorted(decorated) == sorted(results) and len(results) >= 8


def test_a_shader_with_the_mark_is_changed_when_it_is_compiled() -> None:
    marked = SOURCE.replace("\n", "\n" + EXACT_FLOATS, 1)
    assert compile_glsl(marked) == with_exact_floats(compile_glsl(SOURCE))


@pytest.mark.parametrize("reorders", [False, True])
def test_shaders_for_drivers_that_reorder_get_the_mark_of_their_kind(reorders: bool) -> None:
    marks = {EXACT_FLOATS, ORDERED_FLOATS}
    for profile, mark in ((CPU_DRIVER, EXACT_FLOATS), (GENERIC_GPU, ORDERED_FLOATS)):
        source = suited(Shader(SOURCE), replace(profile, reorders_floats=reorders)).source
        assert {each for each in marks if each in source} == ({mark} if reorders else set())


def test_sums_products_and_differences_are_those_that_are_written() -> None:
    graph = parse("""
        graph (x: f32[64], y: f32[64], z: f32[64]) {
          %0 = add(x, y) : f32[64]
          %1 = subtract(%0, x) : f32[64]
          %2 = multiply(x, y) : f32[64]
          %3 = multiply(x, z) : f32[64]
          %4 = add(%2, %3) : f32[64]
          %5 = subtract(x, x) : f32[64]
          return %1, %4, %5
        }
    """)
    rng = np.random.default_rng(0)
    x, y, z = (rng.normal(size=64).astype("f") * scale for scale in (np.float32(1e4), np.float32(1), np.float32(1)))
    x[:3] = np.inf, -np.inf, np.nan
    found = run(graph, [x, y, z], device=backend_with(kind="cpu", reorders_floats=True))
    with np.errstate(invalid="ignore"):
        expected = (x + y) - x, x * y + x * z, x - x
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_no_number_is_subtracted_from_itself(dtype: str) -> None:
    """A driver may take x - x to be 0 even where it preserves infinities."""
    graph = parse(f"graph (x: {dtype}[64]) {{\n  %0 = subtract(x, x) : {dtype}[64]\n  return %0\n}}")
    (dispatch,) = backend_with().lower(graph).plan.dispatches
    assert "lx_multiply_by_zero" in main_of(dispatch)
    x = np.array([np.inf, -np.inf, np.nan, -0.0, -2.5] + [1.0] * 59).astype({"f32": "f", "f64": "d"}[dtype])
    (found,) = run(graph, [x])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, x - x)
    assert not np.signbit(found[3:]).any()
