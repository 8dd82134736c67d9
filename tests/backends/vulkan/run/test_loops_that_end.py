"""Loops whose conditions hang on the order of a sum: kernels that ask in several orders would go round for ever.

A fault here is a test that does not end. And how soon the host sees that a loop of dispatches has ended.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax
from lavax.backends.vulkan.plan.plan import Command, Dispatch, UntilFlag
from lavax.backends.vulkan.run.cuts import Cuts, Pace
from lavax.backends.vulkan.run.flow import Flow
from lavax.backends.vulkan.run.sequence import ShortTurns
from lavax.ir import Graph
from tests.backends.vulkan.run.execution import backend_with


def _lines(extent: int, count: int) -> np.ndarray:
    """Large numbers whose sums are nearly 0: of float32, any order gives another one."""
    random = np.random.default_rng(extent)
    found = np.zeros((count, extent), np.float32)
    found[:, :-2] = random.normal(size=(count, extent - 2)) * 1e7
    found[:, -2] = -found.sum(axis=1)
    return random.permuted(found, axis=1)


def halved(line: Any) -> Any:
    """The line, halved until its sum is at most 1/4, and how often."""
    return lax.while_loop(
        lambda c: (lnp.sum(c[0]) > 0.25) & (c[1] < 40), lambda c: (c[0] * 0.5, c[1] + 1), (line, 0)
    )


def _agrees(line: np.ndarray, found: np.ndarray, turns: int) -> None:
    """Halved as often as it says, and no more than the least sum of any order asks for."""
    np.testing.assert_array_equal(found, line * 0.5**turns)
    unit = 2.0**-20 * np.abs(line).sum()
    exact = line.astype(np.float64).sum()
    assert turns < 40 and (exact - unit) * 0.5**turns <= 0.25
    assert turns == 0 or (exact + unit) * 0.5 ** (turns - 1) > 0.25


def test_a_loop_in_registers_makes_a_turn_if_others_asked_for_it() -> None:
    function = lx.jit(halved)
    for line in _lines(5, 12):
        found, turns = function(line)
        _agrees(line, np.asarray(found), int(turns))


@pytest.mark.parametrize(("extent", "count"), [(5, 6), (300, 4)])
@pytest.mark.parametrize("wrap", [lx.vmap, lambda f: lambda x: lx.jvp(lx.vmap(f), (x,), (x,))[0]])
def test_elements_of_a_batch_end(extent: int, count: int, wrap: Callable[[Any], Any]) -> None:
    function = lx.jit(wrap(halved))
    for number in range(6):
        lines = np.roll(_lines(extent, count), number, axis=1)
        found, turns = (np.asarray(each) for each in function(lines))
        for line, one, turn in zip(lines, found, turns, strict=True):
            _agrees(line, one, int(turn))


def test_batches_of_batches_end_and_have_derivatives() -> None:
    lines = _lines(5, 6)
    once = np.asarray(lx.jit(lx.vmap(halved))(lines)[1])
    twice = np.asarray(lx.jit(lx.vmap(lx.vmap(halved)))(lines.reshape(2, 3, 5))[1])
    assert once.shape == (6,) and twice.shape == (2, 3)
    small = lines / np.abs(lines).max() + 1
    slopes = np.asarray(lx.jit(lx.vmap(lx.jacfwd(lambda line: halved(line)[0])))(small))
    turns = np.asarray(lx.jit(lx.vmap(halved))(small)[1])
    np.testing.assert_allclose(slopes, 0.5 ** turns[:, None, None] * np.eye(5), rtol=1e-6)


def test_conditions_that_kernels_may_round_apart_are_computed_once_a_turn() -> None:
    """A sum of products may be one operation in one kernel and two in another; a sum alone is the same in all."""

    def escapes(x: Any) -> Any:
        goes_on = lambda c: (c[0] * c[0] + x * x < 4) & (c[1] < 50)  # noqa: E731
        return lax.while_loop(goes_on, lambda c: (c[0] * c[0] + x, c[1] + 1), (x, 0))

    def rises(x: Any) -> Any:
        goes_on = lambda c: (c[0] + 1 < 9) & (c[1] < 50)  # noqa: E731
        return lax.while_loop(goes_on, lambda c: (c[0] * 1.5 + x, c[1] + 1), (x, 0))

    points = np.linspace(0.1, 0.9, 40).astype("f")
    for function, carried in ((escapes, 3), (rises, 2)):
        batched = lx.vmap(function)
        (loop,) = [node for node in lx.trace(batched)(points).nodes if node.op == "while"]
        assert len(loop.attrs["body"].outputs) == carried
        found, turns = (np.asarray(each) for each in lx.jit(batched)(points))
        for point, value, turn in zip(points, found, turns, strict=True):
            one, count = function(point)
            assert count == turn
            np.testing.assert_allclose(value, one, rtol=1e-5)


# How many turns the host submits before it looks.


class Steady(Pace):
    """Whose turns take what they did."""

    def note(self, turns: int, seconds: float, is_exact: bool) -> None:
        self.is_measured = True


class Turns:
    """A submission and its queue, which count turns."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def take(self, command_buffers: int) -> None:
        self.taken.append(command_buffers)

    def reached(self, number: int) -> bool:
        return True

    def wait(self, number: int) -> None: ...


def submitted(
    seconds: float, turns: int, before: int = 0, may_be_skipped: bool = False, is_measured: bool = True
) -> list[int]:
    """The turns of each submission of a loop of so many turns of so many seconds, which had others the time before."""
    pace, loop_of = Steady(seconds), Turns()
    pace.turns_before, pace.is_measured = before, is_measured
    pace._is_warm = is_measured
    fakes: Any = loop_of
    cuts: Any = Cuts.__new__(Cuts)
    loop = ShortTurns(fakes, 1, 256, None, 0, pace, may_be_skipped)
    flow = Flow(fakes, cuts, lambda submission: 0, lambda flag: sum(loop_of.taken) < turns, lambda *note: None)
    flow.run([loop])
    assert pace.turns_before == sum(loop_of.taken)
    return loop_of.taken


def test_long_turns_are_looked_at_one_by_one() -> None:
    assert submitted(3e-4, 8) == [1] * 8


def test_few_short_turns_are_computed_in_vain() -> None:
    """As many as make a submission worth a look, or a quarter of those before."""
    assert submitted(1e-4, 9) == [2] * 5
    assert submitted(1e-5, 60) == [4, 16, 20, 20]
    assert submitted(1e-6, 1000)[:4] == [4, 16, 64, 200]
    taken = submitted(1e-6, 5000)
    assert all(turns <= max(200, sum(taken[:number]) / 4) for number, turns in enumerate(taken))


def test_what_may_be_skipped_begins_with_one_turn() -> None:
    assert submitted(1e-5, 1, may_be_skipped=True) == [1]
    assert submitted(1e-5, 10, may_be_skipped=True) == [1, 4, 16]


def test_a_loop_is_expected_to_have_as_many_turns_as_before() -> None:
    assert submitted(3e-4, 8, before=8) == [7, 1]
    assert submitted(3e-4, 7, before=8) == [7]
    assert submitted(3e-4, 10, before=8) == [7, 1, 2]
    assert submitted(3e-4, 3, before=8) == [7]
    assert submitted(1e-6, 700, before=800) == [256, 256, 256]
    assert submitted(3e-4, 8, before=8, may_be_skipped=True) == [1] * 8


def test_turns_of_unknown_length_grow() -> None:
    assert submitted(1.0, 3, is_measured=False) == [1, 1, 1]


def loops_of(commands: tuple[Command, ...]) -> list[UntilFlag]:
    found = []
    for command in commands:
        if not isinstance(command, Dispatch):
            found += [command] if isinstance(command, UntilFlag) else []
            found += loops_of(command.commands)
    return found


def halved_array(x: Any) -> Any:
    return lx.while_loop(lambda x: lnp.max(x) > 1, lambda x: x / 2, x)


def nested(x: Any) -> Any:
    return lx.while_loop(lambda x: lnp.max(x) > 1e-3, lambda x: halved_array(2 * x) / 8, x)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (halved_array, [False]),
        (lambda x: lx.cond(x[0, 0] > 0, halved_array, lambda x: x, x), [True]),
        (nested, [False, False]),
        (lambda x: lx.cond(x[0, 0] > 0, nested, lambda x: x, x), [True, False]),
    ],
    ids=["alone", "in a branch", "in a loop", "in a loop in a branch"],
)
def test_loops_in_branches_may_be_skipped(function: Any, expected: list[bool]) -> None:
    x = np.ones((300, 300), np.float32)
    traced: Graph = lx.trace(function)(x)
    plan = backend_with(kind="gpu").lower(traced).plan
    assert [loop.may_be_skipped for loop in loops_of(plan.commands)] == expected
