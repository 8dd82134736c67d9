"""Devices that convert exactly between float32 and float16 do so themselves."""
from __future__ import annotations

from dataclasses import replace

import pytest

from lavax.backends.vulkan.compile.brain_floats import BRAIN_FLOATS
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.glsl.launch import grid
from lavax.backends.vulkan.glsl.shader import suited
from lavax.backends.vulkan.plan.plan import Shader
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import parse
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule

EXACT = replace(GENERIC_GPU, float16=True, exact_float16=True)


def shader_of(dtype: str) -> Shader:
    """The shader of a sine, for no device in particular."""
    graph = parse(f"graph (x: {dtype}[64]) {{\n  %0 = sin(x) : {dtype}[64]\n  return %0\n}}")
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    (dispatch,) = emit_program(schedule(prepare(graph, target), target=target), GENERIC_GPU).dispatches
    return dispatch.shader


def test_conversions_are_the_devices_own() -> None:
    before, found = shader_of("f16"), suited(shader_of("f16"), EXACT)
    assert "packFloat2x16(f16vec2(x, 0.0))" in found.source and "float(unpackFloat2x16(h).x)" in found.source
    for scale in ("16777216.0", "5.9604644775390625e-8"):
        assert scale in before.source and scale not in found.source
    modes = [line.split("[")[2] for line in found.source.splitlines() if line.endswith(", 16);")]
    assert modes == ["4466], 4461, 16);", "4464], 4459, 16);", "4467], 4462, 16);"]
    assert compile_glsl(found.source)


def test_drivers_have_to_round() -> None:
    """They may take a conversion to float16 and back for nothing, so a number that they do not know stands between."""
    rounding = _function("lx_round_to_f16", suited(shader_of("f16"), EXACT).source)
    assert "packFloat2x16(f16vec2(x, 0.0)) | gl_WorkGroupID.z" in rounding


def test_a_grid_has_no_third_dimension() -> None:
    """So the number along it is 0, and changes no bits."""
    assert {grid(groups)[2] for groups in (1, 1000, 1 << 20)} == {1}


def _function(name: str, source: str) -> str:
    return source[source.index(f"float {name}(float x) {{") :].split("\n")[0]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_other_shaders_stay(dtype: str) -> None:
    assert "unpackFloat2x16" not in suited(shader_of(dtype), EXACT).source


def test_shaders_whose_halves_are_bfloat16_stay() -> None:
    shader = shader_of("f16")
    marked = replace(shader, source=shader.source.replace("\n", "\n" + BRAIN_FLOATS, 1))
    assert "unpackFloat2x16" not in suited(marked, EXACT).source
    assert "unpackFloat2x16" not in suited(shader, GENERIC_GPU).source
