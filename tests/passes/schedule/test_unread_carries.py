"""Loops carry nothing that no turn and no result needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir.interpreter import interpret
from lavax.passes.kernels.commands import Repeat, Until, steps_of
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify

X = np.arange(1, 5, dtype="f")
ROWS = np.arange(12, dtype="f").reshape(3, 4)


def fibonacci(x: Any) -> Any:
    """What is carried first is needed in the turn after the next."""
    return lx.fori_loop(0, 6, lambda i, c: (c[1][::-1], c[2] + 1, c[0] * 2, c[3] + c[0]), (x, x + 1, x + 2, x))[1]


def until(x: Any) -> Any:
    """The condition needs a number that no result does; nothing needs the sum."""
    return lx.while_loop(
        lambda c: lnp.sum(c[1]) < 60, lambda c: (c[0][::-1] * 2, c[1] * 2 + lnp.sum(c[1]), c[2] + c[0]), (x, x, x)
    )[0]


LOOPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {  # with the kernels of a turn
    "an index": (lambda x: lx.fori_loop(0, 5, lambda i, c: c[::-1] + lnp.sum(c), x), (X,), 2),
    "an index that is read": (lambda x: lx.fori_loop(0, 5, lambda i, c: c[::-1] + lnp.sum(c) * i, x), (X,), 4),
    "turns later": (fibonacci, (X,), 6),
    "a condition": (until, (X,), 4),
    "rows that nobody reads, of what nobody reads": (
        lambda x, r: lx.scan(lambda c, y: ((c[0] * 2, c[1][::-1]), lnp.sin(c[1]) + y), (x, x), r)[0][0], (X, ROWS), 0
    ),
    "rows": (lambda x, r: lx.scan(lambda c, y: ((c[0][::-1], c[1] + y), c[0][::-1] + y), (x, x), r)[1], (X, ROWS), 3),
    "nothing": (lambda x: lx.scan(lambda c, _: (c, None), x, None, length=3)[0], (X,), 0),
}


@pytest.mark.parametrize("name", LOOPS)
def test_results_stay_and_kernels_go(name: str) -> None:
    function, arguments, kernels = LOOPS[name]
    graph = prepare(lx.trace(function)(*arguments))
    program = schedule(graph)
    found = interpret_kernels(program, *arguments)
    np.testing.assert_allclose(found[0], interpret(graph, *arguments)[0], rtol=1e-12)
    loops = [command for command in program.steps if isinstance(command, (Repeat, Until))]
    assert sum(len(step.kernels) for loop in loops for step in steps_of(loop.commands)) == kernels


def test_what_nobody_reads_is_not_computed_before_the_loop() -> None:
    def last(x: Any) -> Any:
        first = lx.fori_loop(0, 3, lambda i, c: c[::-1] * 2, lnp.cos(x))
        return lx.scan(lambda c, _: ((c[0][::-1] + 1, c[1] + c[0]), c[1]), (x, first), None, length=3)[0][0]

    graph = prepare(lx.trace(last)(X))
    text = str(schedule(graph))
    assert text.count("repeat 3") == 1 and "cos" not in text
    np.testing.assert_allclose(interpret_kernels(schedule(graph), X)[0], interpret(graph, X)[0], rtol=1e-12)


def test_what_is_stacked_twice_has_rows_once() -> None:
    def twice(x: Any, rows: Any) -> Any:
        def turn(c: Any, y: Any) -> Any:
            after = c[::-1] + y
            return after, (after * 2, c, after * 2)

        _, (one, before, other) = lx.scan(turn, x, rows)
        return one + before, other * 3, one

    graph = prepare(simplify(lx.trace(twice)(X, ROWS)))
    program = schedule(graph)
    assert "row1" in str(program) and "row2" not in str(program)
    for found, wanted in zip(interpret_kernels(program, X, ROWS), interpret(graph, X, ROWS), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_rows_that_an_inner_loop_stacks_twice_are_two_results_of_the_turn_around_it() -> None:
    def outer(x: Any, rows: Any) -> Any:
        def turn(x: Any, row: Any) -> Any:
            after, (one, other) = lx.scan(lambda c, y: (c[::-1] + y, (c * 2, c * 2)), x + row, rows)
            return after, (one, other)

        return lx.scan(turn, x, rows)

    graph = prepare(simplify(lx.trace(outer)(X, ROWS)))
    for found, wanted in zip(interpret_kernels(schedule(graph), X, ROWS), interpret(graph, X, ROWS), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
