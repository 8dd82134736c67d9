"""The order of kernels and the barriers between them; and that the check of both, used by all tests here, can fail."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import TensorType, float32
from lavax.ir.graph import graph_of, input_node
from lavax.passes.build import builder
from lavax.passes.kernels.commands import Repeat, steps_of
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule import schedule as module
from lavax.passes.schedule.schedule import WaitingKernels, schedule
from lavax.passes.simplify import remove_stop_gradient
from tests.passes.lowering import f32, program_of
from tests.passes.program_checks import check_program

INDEPENDENT = """
    graph (x: f32[6,5], y: f32[4,3]) {
      %0 = sum(x) axes=[1] : f32[6]
      %1 = max(y) axes=[0] : f32[3]
      return %0, %1
    }
"""
CHAIN = """
    graph (x: f32[4,4]) {
      %0 = dot(x, x) contract=[1]x[0] : f32[4,4]
      %1 = dot(%0, x) contract=[1]x[0] : f32[4,4]
      %2 = dot(%1, x) contract=[1]x[0] : f32[4,4]
      %3 = dot(%2, x) contract=[1]x[0] : f32[4,4]
      return %3
    }
"""
DIAMOND = """
    graph (x: f32[4,4]) {
      %0 = dot(x, x) contract=[1]x[0] : f32[4,4]
      %1 = dot(%0, x) contract=[1]x[0] : f32[4,4]
      %2 = dot(x, %0) contract=[1]x[0] : f32[4,4]
      %3 = dot(%1, %2) contract=[1]x[0] : f32[4,4]
      return %3
    }
"""


def _barriers(program: KernelProgram) -> list[bool]:
    return [step.barrier for step in program.steps]


def test_kernels_that_share_nothing_run_side_by_side() -> None:
    assert _barriers(program_of(INDEPENDENT)) == [False, False]


def test_each_link_of_a_chain_waits_and_memory_is_used_again() -> None:
    program = program_of(CHAIN)
    assert _barriers(program) == [False, True, True, True]
    assert program.offsets == {"%t0": 0, "%t1": 256, "%t2": 0}
    assert program.arena_bytes == 512


def test_one_barrier_serves_both_sides_of_a_diamond() -> None:
    assert _barriers(program_of(DIAMOND)) == [False, True, False, True]


def test_a_result_in_donated_memory_waits_for_its_readers() -> None:
    """Write after read: the second kernel reads nothing that the first wrote, but overwrites what it reads."""
    text = """
        graph (x: f32[4,4], y: f32[4,4]) {
          %0 = dot(x, y) contract=[1]x[0] : f32[4,4]
          %1 = dot(%0, y) contract=[1]x[0] : f32[4,4]
          %2 = negate(y) : f32[4,4]
          return %1, %2
        }
    """
    program = program_of(text, donated=(0,))
    assert program.donors == {"%r1": "x"}
    assert [step.writes for step in program.steps] == [(("%t0",),), (("%r1",),), (("%r0",),)]
    assert _barriers(program) == [False, True, False]


def test_kernels_that_nobody_waits_for_come_last() -> None:
    text = """
        graph (x: f32[4,4]) {
          %0 = sum(x) axes=[0] : f32[4]
          %1 = dot(x, x) contract=[1]x[0] : f32[4,4]
          %2 = dot(%1, x) contract=[1]x[0] : f32[4,4]
          return %0, %2
        }
    """
    program = program_of(text)
    assert [step.writes for step in program.steps] == [(("%t0",),), (("%r0",),), (("%r1",),)]
    assert _barriers(program) == [False, False, True]


def test_two_thousand_layers_are_scheduled_in_linear_time_and_memory() -> None:
    x = value = input_node("x", TensorType((4, 4), float32))
    for _ in range(2000):
        value = builder.dot(value, x, ((1,), (0,)))
    program = program_of(graph_of([x], [value]))
    assert len(program.steps) == 2000
    assert program.arena_bytes == 512


def test_an_output_twice_and_an_input_returned() -> None:
    program = program_of("""
        graph (x: f32[3]) {
          %0 = negate(x) : f32[3]
          return %0, x, %0
        }
    """)
    assert program.results == ("%r0", "x", "%r0")


def test_a_graph_without_work_has_no_steps() -> None:
    program = program_of("""
        graph (x: f32[3]) {
          return x
        }
    """)
    assert program.steps == () and program.results == ("x",)


def _without_barrier(program: KernelProgram) -> KernelProgram:
    steps: list[Any] = list(program.steps)
    steps[1] = replace(steps[1], barrier=False)
    return replace(program, steps=tuple(steps))


BREAKING: dict[str, tuple[Callable[[KernelProgram], KernelProgram], str]] = {
    "a barrier is missing": (_without_barrier, "without a barrier"),
    "steps are out of order": (lambda p: replace(p, steps=(p.steps[1], p.steps[0], *p.steps[2:])), "not all of it"),
    "temporaries lie over each other": (lambda p: replace(p, offsets=dict.fromkeys(p.offsets, 0)), "is not pointwise"),
    "the arena is too small": (lambda p: replace(p, arena_bytes=256), "leaves the arena"),
    "a result is in memory that is still read": (lambda p: replace(p, donors={"%r0": "x"}), "not pointwise"),
    "a step is missing": (lambda p: replace(p, steps=p.steps[:-1]), "not in memory at the end"),
}


@pytest.mark.parametrize("name", BREAKING)
def test_the_check_finds_a_wrong_program(name: str) -> None:
    breaking, message = BREAKING[name]
    with pytest.raises(AssertionError, match=message):
        check_program(breaking(program_of(CHAIN)), donated=(0,))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: lnp.sum(x[:, None] * y[None, :]),
        lambda x, y: (x[:, None] + y[None, :]).astype("int8"),
    ],
)
def test_more_elements_than_kernels_count_are_refused_by_name(function: Any) -> None:
    """Also if they exist in a kernel alone."""
    vector = lx.ShapeDtype((50_000,), "float32")
    lowered = lx.compile(function).lower(vector, vector)
    with pytest.raises(lx.DeviceError, match=r" has 25\d{8} elements, more than the 2147483647 .*test_schedule\.py"):
        schedule(prepare(lowered.optimized))


def test_an_axis_of_more_elements_may_be_reduced() -> None:
    """No kernel counts them: each has a row and a column."""
    vector = lx.ShapeDtype((50_000,), "float32")
    lowered = lx.compile(lambda x, y: lnp.sum(x[:, None] * y[None, :], axis=1)).lower(vector, vector)
    assert schedule(prepare(lowered.optimized)).steps


def updated(weights: Any, first: Any, second: Any, x: Any, rate: Any) -> Any:
    """Three layers, two moments of each gradient, and updates that share a number."""

    def loss(weights: Any) -> Any:
        hidden = x
        for weight in weights:
            hidden = lnp.tanh(hidden @ weight)
        return lnp.sum(hidden)

    gradients = lx.grad(loss)(weights)
    first = [0.9 * moment + gradient for moment, gradient in zip(first, gradients, strict=True)]
    second = [0.99 * moment + gradient * gradient for moment, gradient in zip(second, gradients, strict=True)]
    return [w - rate * m / lnp.sqrt(v) for w, m, v in zip(weights, first, second, strict=True)], first, second


def updates_of(size: int) -> list[KernelStep]:
    """The steps that write results of a training step with weights of size × size."""
    weights, x = [lx.ShapeDtype((size, size), "float32")] * 3, lx.ShapeDtype((8, size), "float32")
    lowered = lx.compile(updated).lower(weights, weights, weights, x, lx.ShapeDtype((), "float32"))
    program = schedule(prepare(lowered.optimized))
    check_program(program)
    steps = [step for step in program.steps if isinstance(step, KernelStep)]
    return [step for step in steps if any(name.startswith("%r") for part in step.writes for name in part)]


def test_an_update_writes_its_results_in_one_map_and_small_ones_are_one_dispatch() -> None:
    """A number that all of them read is no reason to put two into one kernel."""
    (step,) = updates_of(16)
    assert len(step.kernels) == 3
    assert all(len(part) == 3 for part in step.writes)


def test_updates_of_large_parameters_do_not_keep_all_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_KERNELS", WaitingKernels(kept_bytes=16, levels=4))
    steps = updates_of(16)
    assert len(steps) > 1
    assert sum(len(step.kernels) for step in steps) == 3


@pytest.mark.parametrize(
    ("stacked", "ends"),
    [
        (lnp.sin, [("carry0", True), ("next", False)]),  # what is carried is written aside: another kernel reads it
        (lnp.max, [("next", True)]),
    ],
)
def test_the_counter_of_turns_moves_beside_the_copies_of_what_is_carried(
    stacked: Callable[..., Any], ends: list[tuple[str, bool]]
) -> None:
    def rows(x: Any, given: Any) -> Any:
        return lx.scan(lambda c, y: (c * lnp.max(c) + y, stacked(c)), x, given)

    arguments = f32(8), f32(5, 8)
    program = schedule(prepare(remove_stop_gradient(lx.trace(rows)(*arguments))))
    (loop,) = (command for command in program.steps if isinstance(command, Repeat))
    found = [(step.name.rpartition(".")[2], step.barrier) for step in steps_of(loop.commands)]
    assert found[-len(ends) :] == ends
