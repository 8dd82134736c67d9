"""Products whose sum is split into a few parts, and the kernels of rows that add these parts."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan import target as device_target
from lavax.ir import Graph
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.target.target import ANY_DEVICE
from tests.passes.lowering import assert_computes
from tests.passes.program_checks import check_program

IN_FOUR = replace(ANY_DEVICE, products=replace(ANY_DEVICE.products, parts=lambda dot: 4))
draw = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return draw.normal(size=shape).astype(np.float32)


def block(x: Any, down: Any, up: Any, scale: Any) -> Any:
    """A residual layer, whose sum is read again behind the norm."""
    x = x[None] + lnp.tanh(x[None]) @ down
    return x + nn.rms_norm(x, scale) @ up


def gradient(x: Any, down: Any, up: Any, scale: Any) -> Any:
    return lx.grad(lambda *each: lnp.sum(lnp.sin(block(*each))), argnums=(0, 1, 2, 3))(x, down, up, scale)


def two_sums(x: Any, down: Any, up: Any, scale: Any) -> Any:
    """Two products that meet before the rows are reduced."""
    return nn.softmax(x @ down + x @ up) * scale


def chain(x: Any, down: Any, up: Any, scale: Any) -> Any:
    """No reduction is next."""
    return lnp.tanh(x @ down) @ up * scale


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "block": (block, 5),
    "two sums": (two_sums, 3),
    "chain": (chain, 4),
}
ARGUMENTS = normal(12, 16), normal(16, 16), normal(16, 16), normal(16)


def lowered(function: Callable[..., Any]) -> tuple[Graph, KernelProgram]:
    graph = lx.compile(function).lower(*ARGUMENTS).optimized
    program = schedule(prepare(graph, IN_FOUR), target=IN_FOUR)
    check_program(program)
    return graph, program


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_kernel_of_rows_adds_the_parts(name: str) -> None:
    function, count = FUNCTIONS[name]
    graph, program = lowered(function)
    assert sum(isinstance(step, KernelStep) for step in program.steps) == count
    assert_computes(program, graph, ARGUMENTS, tolerance=1e-4)


def test_the_sum_is_stored_for_its_other_readers() -> None:
    """One kernel reads the parts, which need no memory behind it."""
    _, program = lowered(gradient)
    steps = [step for step in program.steps if isinstance(step, KernelStep)]
    (name,) = next(step for step in steps if step.kernel.graph.outputs[0].shape == (4, 12, 16)).writes[0]
    assert sum(name in names for step in steps for names in step.reads) == 1


@pytest.mark.parametrize("function", [block, two_sums, gradient])
def test_devices_add_the_parts(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = lx.compile(function)(*ARGUMENTS)
    monkeypatch.setattr(device_target, "choose_parts", lambda dot, profile: 4)
    monkeypatch.setattr(device_target, "shares_shader", lambda dot, profile: False)
    compiled = lx.compile(lambda *arguments: function(*arguments))
    assert " : f32[4,12,16]" in compiled.lower(*ARGUMENTS).as_text("kernels")
    found = compiled(*ARGUMENTS)
    for one, other in zip(lx.tree.leaves(found), lx.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
