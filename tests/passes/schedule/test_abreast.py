"""Kernels that differ, side by side in one dispatch: what is joined, its text, and that numbers stay."""
from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.compile.shader_compiler import compile_glsl
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import interpret, parse
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.passes.program_checks import check_program

# A product, a sum of another length, a map, and an update of a donated array: all wait for nothing.
TEXT = dedent("""
    graph (row: f32[40], x: f32[24], w: f32[24,40], y: f32[16,12], held: f32[6,40], place: i32[]) {
      %0 = dot(x, w) contract=[0]x[0] : f32[40]
      %1 = sum(y) axes=[1] : f32[16]
      %2 = sin(y) : f32[16,12]
      %3 = scatter_set(held, row, place) axes=[0] : f32[6,40]
      return %0, %1, %2, %3
    }
""")
PROFILES = {"cpu": CPU_DRIVER, "gpu": GENERIC_GPU}
rng = np.random.default_rng(2)


def _program(profile: DeviceProfile) -> KernelProgram:
    target = target_of(profile, 1 << 34, 1 << 32)
    graph = parse(TEXT)
    return schedule(prepare(graph, target), (4,), target=target)


def _arrays() -> list[Any]:
    shapes = [node.shape for node in parse(TEXT).inputs[:-1]]
    return [*(rng.normal(size=shape).astype("f") for shape in shapes), np.int32(2)]


@pytest.mark.parametrize("name", PROFILES)
def test_kernels_of_equal_workgroups_share_a_dispatch(name: str) -> None:
    program = _program(PROFILES[name])
    check_program(program, (4,))
    (whole,) = [step for step in program.steps if step.abreast]
    assert {kernel.kind for kernel in whole.kernels} >= {"map", "routine"}
    plan = emit_program(program, PROFILES[name])
    assert len(plan.dispatches) == len(program.steps) < 4
    assert all(compile_glsl(dispatch.shader.source) for dispatch in plan.dispatches)
    arrays = _arrays()
    for got, want in zip(interpret_kernels(program, *arrays), interpret(parse(TEXT), *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_the_text_shows_each_of_them() -> None:
    (step,) = [step for step in _program(GENERIC_GPU).steps if step.abreast]
    text = str(_program(GENERIC_GPU))
    assert f"kernel {step.name} kind={step.kernel.kind} parts={len(step.kernels)} outer=" in text
    assert text.count("\n  beside kind=") == len(step.kernels) - 1
    assert text.count("graph (") == sum(len(each.kernels) for each in _program(GENERIC_GPU).steps)


def test_no_more_than_fit_the_push_constants() -> None:
    def many(*arrays: Any) -> Any:
        return [lnp.sum(array, axis=-1) for array in arrays]

    arrays = [np.zeros((3, n), "f") for n in range(33, 53)]
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    program = schedule(prepare(lx.trace(many)(*arrays), target), target=target)
    assert max(len(step.kernels) for step in program.steps) <= 4 and any(step.abreast for step in program.steps)
    assert len(emit_program(program, GENERIC_GPU).dispatches) == len(program.steps)


def test_an_array_that_is_not_donated_is_copied_first() -> None:
    """So the update has a dispatch before it, and no dispatch in common with others."""
    text = TEXT.replace("f32[6,40]", "f32[600,40]")
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    program = schedule(prepare(parse(text), target), target=target)
    assert len(emit_program(program, GENERIC_GPU).dispatches) > len(program.steps)


@pytest.mark.parametrize("donated", [(), 3])
def test_the_device_computes_the_same(donated: Any) -> None:
    def function(row: Any, x: Any, w: Any, held: Any, place: Any) -> Any:
        return x @ w, lnp.sum(w, axis=1), lnp.sin(x) + 1, lnp.sort(w, axis=1), held.at[place].set(row)

    row, x, w, _, held, place = _arrays()
    got = lx.compile(function, donate_argnums=donated)(row, x, w, lx.device_put(held), place)
    held[2] = row
    for found, want in zip(got, (x @ w, w.sum(1), np.sin(x) + 1, np.sort(w, 1), held), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_large_kernels_have_their_own_dispatch() -> None:
    graph = parse("""
        graph (x: f32[2048,2048], y: f32[2048,2000]) {
          %0 = sum(x) axes=[1] : f32[2048]
          %1 = sum(y) axes=[1] : f32[2048]
          return %0, %1
        }
    """)
    target = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
    assert not any(step.abreast for step in schedule(prepare(graph, target), target=target).steps)
