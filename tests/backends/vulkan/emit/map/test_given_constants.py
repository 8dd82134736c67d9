"""Kernels that differ in constants alone share a shader, which gets them when it runs."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.emit.map.given_constants import LEAST_KERNELS
from lavax.backends.vulkan.emit.program import emit_program
from lavax.backends.vulkan.plan.plan import Plan
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.program import KernelProgram
from tests.passes.lowering import f32, i32, program_of_function

_GIVEN = re.compile(r"\bintBitsToFloat\((int\(words|size)")


def _steps(count: int, first: float = 0.0) -> Any:
    """A loop that was written out, with a number per step."""

    def function(x: Any) -> Any:
        for step in range(count):
            x = lnp.sin(x) * (first + 0.25 + step / 64) + lnp.sqrt(lnp.exp(x) + 1.0)
        return x

    return function


def _plan(function: Any, x: Any, profile: DeviceProfile = CPU_DRIVER) -> tuple[KernelProgram, Plan]:
    program = program_of_function(function, x)
    return program, emit_program(program, profile)


def _with_numbers(plan: Plan) -> list[str]:
    """The shaders that get floats when they run."""
    return [each.shader.source for each in plan.dispatches if _GIVEN.search(each.shader.source)]


@pytest.mark.parametrize("profile", [CPU_DRIVER, GENERIC_GPU], ids=["cpu", "gpu"])
def test_steps_with_a_number_each_have_few_shaders(profile: DeviceProfile) -> None:
    program, plan = _plan(_steps(400), f32(64), profile)
    shaders = {dispatch.shader.source for dispatch in plan.dispatches}
    assert len(plan.dispatches) == len(list(steps_of(program.steps))) > 20
    assert len(shaders) <= 5
    assert _with_numbers(plan)


def test_few_kernels_have_literals() -> None:
    _, plan = _plan(_steps(16), f32(64))
    assert len(plan.dispatches) < LEAST_KERNELS
    assert not _with_numbers(plan)


def test_constants_that_are_the_same_everywhere_stay_literals() -> None:
    _, plan = _plan(lambda x: _repeated(x, 200), f32(64))
    assert not _with_numbers(plan)


def _repeated(x: Any, count: int) -> Any:
    for _ in range(count):
        x = lnp.sin(x) * 0.75 + 1.5
    return x


def _simple_steps(first: int, last: int) -> Any:
    def function(x: Any) -> Any:
        for step in range(first, last):
            x = lnp.minimum(x * (0.25 + step / 512), 1.0 + step / 1024) + 0.5
        return x

    return function


@pytest.mark.parametrize("shape", [(7, 9), (8192,)], ids=str)
def test_the_numbers_arrive(shape: tuple[int, ...]) -> None:
    assert _with_numbers(_plan(_simple_steps(0, 320), f32(*shape))[1])
    x = parts = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for first in range(0, 320, 40):
        parts = lx.compile(_simple_steps(first, first + 40))(parts)
    np.testing.assert_array_equal(np.asarray(lx.compile(_simple_steps(0, 320))(x)), np.asarray(parts))


def test_integers_arrive() -> None:
    def function(x: Any) -> Any:
        for step in range(400):
            x = (x ^ (step * 2654435761 % 2**31 - 2**30)) + (x >> 3)
        return x

    _, plan = _plan(function, i32(64))
    assert len({dispatch.shader.source for dispatch in plan.dispatches}) < len(plan.dispatches)
    x = np.arange(64, dtype=np.int32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.asarray(lx.compile(function)(x)), function(x))
