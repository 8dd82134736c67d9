"""Scans whose turns are recorded one after the other: what is written is read, and counters wrap as integers do."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import interpret
from lavax.passes.kernels.commands import Repeat, steps_of
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.passes.program_checks import check_program

X, ROWS, NUMBER = np.arange(1, 5, dtype="f"), np.arange(28, dtype="f").reshape(7, 4), np.int32(5)
GPU = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
CPU = target_of(CPU_DRIVER, 1 << 34, 1 << 32)

# Bodies without kernels: they carry arrays of several shapes as they are.
UNCHANGED: dict[str, Callable[..., Any]] = {
    "sequence": lambda x, rows, n: lx.scan(lambda c, row: (c, None), (x, rows), rows + 1)[0],
    "empty rows": lambda x, rows, n: lx.scan(lambda c, row: (c, row[:0]), (x, rows), rows + 1),
    "number": lambda x, rows, n: lx.scan(lambda c, _: ((c[0], c[1], c[2] + 3), None), (x, rows, n), None, length=40)[0],
    "number and rows": lambda x, rows, n: lx.scan(
        lambda c, row: ((c[0], c[1], c[2] + 3), row[:0]), (x, rows, n), rows + 1
    ),
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_turns_without_kernels_have_no_counters_and_views(name: str) -> None:
    graph = prepare(lx.trace(UNCHANGED[name])(X, ROWS, NUMBER), GPU)
    program = schedule(graph, target=GPU)
    check_program(program)
    assert not program.views
    results = interpret_kernels(program, X, ROWS, NUMBER)
    for found, wanted in zip(results, interpret(graph, X, ROWS, NUMBER), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_number_counted_up_by_large_steps_wraps() -> None:
    def turn(carry: Any, row: Any) -> Any:
        x, rows, number = carry
        return (x[::-1] + row, rows, number + (1 << 30)), number

    graph = prepare(lx.trace(lambda x, rows, n: lx.scan(turn, (x, rows, n), rows))(X, ROWS, NUMBER), GPU)
    program = schedule(graph, target=GPU)
    assert any("counted" in name for step in program.steps for part in step.writes for name in part)
    *_, last, numbers = interpret_kernels(program, X, ROWS, NUMBER)
    wrapped = ((5 + np.arange(8) * (1 << 30) + (1 << 31)) % (1 << 32) - (1 << 31)).astype(np.int32)
    np.testing.assert_array_equal(numbers, wrapped[:-1])
    np.testing.assert_array_equal(last, wrapped[-1])


def rolled(x: Any) -> Any:
    return lx.fori_loop(0, 40, lambda i, c: c + 0.1 * (lnp.roll(c, 1, 0) + lnp.roll(c, -1, 0) - 2 * c), x)


def multiplied(x: Any) -> Any:
    return lx.fori_loop(0, 40, lambda i, c: lnp.tanh(c @ x), x[0])


# Each with the shape of its argument, and whether a kernel of a turn is more than a workgroup's work.
ON_CPU_DRIVERS: dict[str, tuple[Callable[..., Any], tuple[int, int], bool]] = {
    "small map": (rolled, (64, 64), False),
    "map": (rolled, (120, 120), True),
    "product of a small matrix": (multiplied, (100, 100), False),
    "product of a matrix": (multiplied, (300, 300), True),
}


@pytest.mark.usefixtures("no_register_loops")
@pytest.mark.parametrize("name", ON_CPU_DRIVERS)
def test_turns_that_no_workgroup_takes_are_recorded(name: str) -> None:
    """What is carried is less than 64 KiB, but not the work on it."""
    function, shape, is_recorded = ON_CPU_DRIVERS[name]
    x = np.random.default_rng(1).normal(size=shape, scale=0.1).astype("f")
    graph = prepare(lx.trace(function)(x), CPU)
    program = schedule(graph, target=CPU)
    (loop,) = (command for command in program.steps if isinstance(command, Repeat))
    assert loop.count == (2 if is_recorded else 40)
    copies = [step for step in steps_of(loop.commands) if step.kernel.graph.outputs[0].op == "cast"]
    assert bool(copies) is not is_recorded
    for found, wanted in zip(interpret_kernels(program, x), interpret(graph, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
