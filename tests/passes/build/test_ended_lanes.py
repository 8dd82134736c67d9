"""Which loops keep the values of lanes that have ended, and what each of their lanes asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir.graph import Node
from lavax.passes.build.ended_lanes import asked_by_lane
from lavax.passes.simplify import simplify

X = np.linspace(0, 40, 12, dtype=np.float32).reshape(3, 4)
N = X.astype(np.int32)
ROWS, SQUARE = X[:, 0] < 37, np.ones((3, 3), np.float32)
Loop = tuple[Callable[[Any], Any], Callable[[Any], Any], Any]


def grown(is_open: Any, x: Any) -> Any:
    return lnp.where(is_open, x * 1.25 + 1, x)


def beside(step: Callable[[Any, Any], Any], start: Any) -> Loop:
    """A value beside lanes that are open while they are less than 37."""
    return lambda s: lnp.any(s[0] < 37), lambda s: (grown(s[0] < 37, s[0]), step(*s)), (X, start)


def by_flag(step: Callable[[Any, Any], Any], is_open: Callable[[Any], Any] = lambda flag: flag) -> Loop:
    """A flag beside lanes that are open by it."""
    return lambda s: lnp.any(is_open(s[1])), lambda s: (grown(is_open(s[1]), s[0]), step(*s)), (X, X > 0)


KEPT: dict[str, Loop] = {
    "by values": beside(lambda x, n: n, N),
    "the other way round": (lambda x: lnp.any(~(x > 37)), lambda x: lnp.where(x > 37, x, x * 1.25 + 1), X),
    "by a flag that stays unset": by_flag(lambda x, flag: flag & (x < 37)),
    "by a flag that stays set": by_flag(lambda x, flag: flag | (x > 37), lambda flag: ~flag),
    "turns are counted": beside(lambda x, n: n + (x < 37), N),
    "an axis after the other": (lambda x: lnp.any(lnp.any(x < 37, axis=0)), lambda x: grown(x < 37, x), X),
    "a lane has a row": (
        lambda s: lnp.any(s[1]), lambda s: (grown(s[1][:, None], s[0]), s[1] & (s[0][:, 0] < 37)), (X, ROWS)
    ),
}
OTHERS: dict[str, Loop] = {
    "all move": (lambda x: lnp.any(x < 37), lambda x: x * 1.25 + 1, X),
    "another bound": (lambda x: lnp.any(x < 37), lambda x: grown(x < 38, x), X),
    "another comparison": (lambda x: lnp.any(x < 37), lambda x: grown(x <= 37, x), X),
    "another bound, the other way round": (
        lambda x: lnp.any(~(x > 37)), lambda x: lnp.where(x > 38, x, x * 1.25 + 1), X
    ),
    "the choice is of what is carried beside": beside(lambda x, y: grown(y < 37, y), X * 2),
    "what is kept is what is carried beside": beside(lambda x, y: lnp.where(x < 37, y + 1, x), X * 2),
    "those that have ended move": (lambda x: lnp.any(x < 37), lambda x: lnp.where(x < 37, x, x * 1.25 + 1), X),
    "all lanes have to be open": (lambda x: lnp.all(x < 37), lambda x: grown(x < 37, x), X),
    "a part of the lanes": (lambda x: lnp.any(x[0] < 37), lambda x: grown(x < 37, x), X),
    "a flag that is set again": by_flag(lambda x, flag: flag | (x < 3)),
    "a flag that is unset again": by_flag(lambda x, flag: flag & (x > 37), lambda flag: ~flag),
    "a flag beside that is unset": beside(lambda x, flag: flag & (x < 20), X < 30),
    "a flag beside that is set": (
        lambda s: lnp.any(~s[1]),
        lambda s: (lnp.where(s[1], s[0], s[0] + 1), s[1] | (s[0] > 37), s[2] | (s[0] > 20)),
        (X, X > 37, X > 50),
    ),
    "turns are counted by another bound": beside(lambda x, n: n + (x < 38), N),
    "turns of all are counted": beside(lambda x, n: n + 1, N),
    "a scalar counts all turns": beside(lambda x, n: n + 1, 0),
    "floats are counted, whose zeros have signs": beside(lambda x, n: n + (x < 37).astype("float32"), -X),
    "a row is chosen by the lanes of columns": (
        lambda s: lnp.any(s[1]), lambda s: (grown(s[1][None, :], s[0]), s[1] & (s[0][:, 0] < 37)), (SQUARE, ROWS)
    ),
}


def loop_of(name: str, loops: dict[str, Loop]) -> Node:
    condition, body, start = loops[name]
    graph = simplify(lx.trace(lambda start: lx.while_loop(condition, body, start))(start))
    (node,) = (node for node in graph.nodes if node.op == "while")
    return node


@pytest.mark.parametrize("name", KEPT)
def test_a_lane_asks_what_the_maximum_is_of(name: str) -> None:
    loop = loop_of(name, KEPT)
    asked = asked_by_lane(loop)
    condition = loop.attrs["condition"]
    assert asked is not None and asked.shape in ((3, 4), (3,)) and asked in (*condition.inputs, *condition.nodes)


@pytest.mark.parametrize("name", OTHERS)
def test_loops_whose_values_may_change_once_a_lane_has_ended(name: str) -> None:
    assert asked_by_lane(loop_of(name, OTHERS)) is None
