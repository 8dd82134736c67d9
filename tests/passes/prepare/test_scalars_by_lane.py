"""Loops of lanes that also count: each lane gets a counter of its own, and results are those of before."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir.graph import Graph
from lavax.ir.interpreter import interpret
from lavax.passes.fuse.lane_loops import lanes_of
from lavax.passes.prepare.scalars_by_lane import with_scalars_by_lane
from lavax.passes.simplify import simplify

X = np.random.default_rng(3).uniform(0, 40, 80).astype(np.float32)
GRID = X.reshape(8, 10)
MOST = np.int32(9)


def counted(x: Any, most: Any) -> Any:
    """All that is carried is returned."""

    def turn(state: Any) -> Any:
        number, half, x, taken = state
        is_open = x < 37
        return number + 1, half * 0.5, lnp.where(is_open, x * 1.25 + half + number, x), taken + is_open

    start = 0, lnp.float32(8), x, lnp.zeros(x.shape, "int32")
    return lx.while_loop(lambda s: (s[0] < most) & lnp.any(s[2] < 37) & (s[1] > 1e-3), turn, start)


def flagged(x: Any, most: Any) -> Any:
    """A lane's flag is of what it has become, and counts down."""

    def turn(state: Any) -> Any:
        x, left, is_open = state
        grown = lnp.where(is_open, x + left * 2.0, x)
        return grown, left - 1, is_open & (grown < 37)

    return lx.while_loop(lambda s: lnp.any(s[2]) & (s[1] > 0), turn, (x, most, x < 37))


def without_bound(x: Any, most: Any) -> Any:
    """Turns are counted, but nothing asks for their number."""
    turn = lambda s: (s[0] + most, lnp.where(s[1] < 37, s[1] * 1.25 + s[0], s[1]))  # noqa: E731
    return lx.while_loop(lambda s: lnp.any(s[1] < 37), turn, (most * 0 + 1, x))


def turns_alone(x: Any, most: Any) -> Any:
    return counted(x, most)[0]


def lanes_alone(x: Any, most: Any) -> Any:
    return counted(x, most)[2:]


def depends(x: Any, most: Any) -> Any:
    """A lane that has ended opens again in a later turn."""

    def turn(state: Any) -> Any:
        number, x = state
        return number + 1, lnp.where(x < number * 7.0, x * 1.25, x)

    return lx.while_loop(lambda s: (s[0] < most) & lnp.any(s[1] < s[0] * 7.0), turn, (1, x))


def all_move(x: Any, most: Any) -> Any:
    return lx.while_loop(lambda s: (s[0] < most) & lnp.any(s[1] < 37), lambda s: (s[0] + 1, s[1] * 1.25), (0, x))


def of_all(x: Any, most: Any) -> Any:
    """A scalar is made of the lanes."""

    def turn(state: Any) -> Any:
        x = state[1]
        x = lnp.where(x < 37, x * 1.25 + 1, x)
        return lnp.sum(x), x

    return lx.while_loop(lambda s: (s[0] < 2000.0) & lnp.any(s[1] < 37), turn, (lnp.float32(most), x))


def of_two_batches(x: Any, most: Any) -> Any:
    """All lanes run until those of one of two batches have ended."""

    def turn(state: Any) -> Any:
        number, x, y = state
        return number + 1, lnp.where(x < 37, x * 1.25 + 1, x), lnp.where(y < 37, y + 1, y)

    return lx.while_loop(lambda s: (s[0] < most) & lnp.any(s[1] < 37) & lnp.any(s[2] < 37), turn, (0, x, x * 0.5))


def of_rows(x: Any, most: Any) -> Any:
    """A row's elements ask together."""
    rows = x.reshape(8, 10)
    turn = lambda s: (s[0] + 1, lnp.where(rows[:, :1] < 37, s[1] + 1, s[1]))  # noqa: E731
    return lx.while_loop(lambda s: (s[0] < most) & lnp.any(rows[:, 0] < 37), turn, (0, rows))


def without_scalars(x: Any, most: Any) -> Any:
    """Lanes end by themselves as they are."""
    return lx.while_loop(lambda x: lnp.any(x < most), lambda x: lnp.where(x < most, x * 1.25 + 1, x), x)


def of_a_table(x: Any, most: Any) -> Any:
    """A scalar chooses an element of a table."""

    def turn(state: Any) -> Any:
        number, x = state
        return number + 1, lnp.where(x < 37, x + TABLE[number], x)

    return lx.while_loop(lambda s: (s[0] < most) & lnp.any(s[1] < 37), turn, (0, x))


TABLE = lnp.arange(1.0, 13.0)


def graph_of(function: Callable[..., Any], *arguments: Any) -> Graph:
    return simplify(lx.trace(function)(*arguments))


@pytest.mark.parametrize("x", [X, GRID, X + 100], ids=["a line", "a grid", "all have ended"])
@pytest.mark.parametrize("function", [counted, flagged, without_bound, turns_alone, lanes_alone])
@pytest.mark.parametrize("most", [9, 2, 0])
def test_results_are_those_of_before(function: Callable[..., Any], x: np.ndarray, most: int) -> None:
    graph = graph_of(function, x, MOST)
    changed = with_scalars_by_lane(graph)
    (loop,) = (node for node in changed.nodes if node.op == "while")
    assert lanes_of(loop) == x.shape
    for found, wanted in zip(interpret(changed, x, np.int32(most)), interpret(graph, x, np.int32(most)), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("function", [depends, all_move, of_all, of_two_batches, of_rows, without_scalars, of_a_table])
def test_other_loops_stay_as_they_are(function: Callable[..., Any]) -> None:
    graph = graph_of(function, X, MOST)
    assert with_scalars_by_lane(graph) is graph


def test_few_lanes_stay_as_they_are() -> None:
    graph = graph_of(counted, X[:63], MOST)
    assert with_scalars_by_lane(graph) is graph


def test_a_scalar_that_is_read_is_that_of_the_lane_that_ran_longest() -> None:
    ends = {}
    for function in (turns_alone, lanes_alone):
        nodes = [node.op for node in with_scalars_by_lane(graph_of(function, X, MOST)).nodes]
        ends[function] = [op for op in nodes if op in ("while", "argmax", "gather")]
    assert ends == {turns_alone: ["while", "argmax", "gather"], lanes_alone: ["while"]}
