"""How many turns of a loop that depends on data the host submits before it looks whether the loop has ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.plan import Command, Dispatch, UntilFlag
from lavax.backends.vulkan.run.cuts import Cuts, Pace
from lavax.backends.vulkan.run.flow import Flow
from lavax.backends.vulkan.run.sequence import ShortTurns
from lavax.ir import Graph
from tests.backends.vulkan.run.execution import backend_with


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


def submitted(seconds: float, turns: int, may_be_skipped: bool = False, is_measured: bool = True) -> list[int]:
    """The turns of each submission of a loop of so many turns of so many seconds."""
    pace, loop_of = Steady(seconds), Turns()
    pace.is_measured = pace._is_warm = is_measured
    fakes: Any = loop_of
    cuts: Any = Cuts.__new__(Cuts)
    loop = ShortTurns(fakes, 1, 256, None, 0, pace, may_be_skipped)
    flow = Flow(fakes, cuts, lambda submission: 0, lambda flag: sum(loop_of.taken) < turns, lambda *note: None)
    flow.run([loop])
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


def test_turns_of_unknown_length_grow() -> None:
    assert submitted(1.0, 3, is_measured=False) == [1, 1, 1]


def loops_of(commands: tuple[Command, ...]) -> list[UntilFlag]:
    found = []
    for command in commands:
        if not isinstance(command, Dispatch):
            found += [command] if isinstance(command, UntilFlag) else []
            found += loops_of(command.commands)
    return found


def halved(x: Any) -> Any:
    return lx.while_loop(lambda x: lnp.max(x) > 1, lambda x: x / 2, x)


def nested(x: Any) -> Any:
    return lx.while_loop(lambda x: lnp.max(x) > 1e-3, lambda x: halved(2 * x) / 8, x)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (halved, [False]),
        (lambda x: lx.cond(x[0, 0] > 0, halved, lambda x: x, x), [True]),
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
