"""Scans whose turns are recorded one after the other: what is written is read, and counters wrap as integers do."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.backends.vulkan.plan.profile import GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import interpret
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from tests.passes.program_checks import check_program

X, ROWS, NUMBER = np.arange(1, 5, dtype="f"), np.arange(28, dtype="f").reshape(7, 4), np.int32(5)
GPU = target_of(GENERIC_GPU, 1 << 34, 1 << 32)

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
