"""Turns of a scan that are one on CPU drivers: which these are, and that all values are those of single turns."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.passes.build.joined_turns import may_be_joined
from lavax.passes.kernels.commands import Repeat, steps_of
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Target

CPU = target_of(CPU_DRIVER, 1 << 34, 1 << 32)
GPU = target_of(GENERIC_GPU, 1 << 34, 1 << 32)
X = np.random.default_rng(2).uniform(1, 2, size=(20, 21)).astype("f") + 8 * np.eye(20, 21, dtype="f")


def ways(k: Any, d: Any) -> Any:
    return lnp.minimum(d, d[:, k][:, None] + d[k][None])


def eliminated(k: Any, a: Any) -> Any:
    factors = lnp.where(lnp.arange(20) > k, a[:, k] / a[k, k], 0)
    return a - factors[:, None] * a[k][None]


def two_arrays(k: Any, pair: Any) -> Any:
    a, b = pair
    return a + 0.1 * b[k][None], b - 0.1 * a[:, k][:, None]


def counted_down(k: Any, state: Any) -> Any:
    d, number = state
    return ways(number, d), number - 1


def over_rows(x: Any, reverse: bool) -> Any:
    """The pivots and weights are rows of sequences."""
    pivots, weights = 7 * lnp.arange(16) % 20, lnp.arange(16, dtype="float32") / 16

    def turn(d: Any, row: Any) -> tuple[Any, None]:
        pivot, weight = row
        return weight * d + (1 - weight) * ways(pivot, d), None

    return lx.scan(turn, x, (pivots, weights), reverse=reverse)[0]


# The loop, and how many turns are one.
JOINED: dict[str, tuple[Callable[[Any], Any], int]] = {
    "a multiple of all": (lambda x: lx.fori_loop(0, 18, ways, x), 3),
    "turns left over": (lambda x: lx.fori_loop(1, 20, ways, x), 3),
    "quotients": (lambda x: lx.fori_loop(0, 19, eliminated, x), 2),
    "two arrays": (lambda x: lx.fori_loop(0, 17, two_arrays, (x, x + 1)), 4),
    "counted down": (lambda x: lx.fori_loop(0, 14, counted_down, (x, lnp.asarray(19)))[0], 3),
    "over rows": (lambda x: over_rows(x, reverse=False), 2),
    "over rows from behind": (lambda x: over_rows(x, reverse=True), 2),
}
ALONE: dict[str, Callable[[Any], Any]] = {
    "all places are read": lambda x: lx.fori_loop(0, 18, lambda i, d: d + 0.1 * lnp.roll(d, 1, 0), x),
    "a sum": lambda x: lx.fori_loop(0, 18, lambda i, d: d - lnp.mean(d, axis=0), x),
    "rows turned round": lambda x: lx.fori_loop(0, 18, lambda i, d: d + 0.1 * d[::-1], x),
    "an update": lambda x: lx.fori_loop(0, 18, lambda i, d: d.at[i].set(d[i + 1]), x),
    "stacked rows": lambda x: lx.scan(lambda d, k: (ways(k, d), d[0]), x, lnp.arange(16)),
    "few turns": lambda x: lx.fori_loop(0, 7, ways, x),
}


def graph_of(function: Callable[[Any], Any]) -> Graph:
    return simplify(lx.trace(function)(X))


def turns_at_once(graph: Graph, target: Target) -> tuple[int, KernelProgram]:
    """How many turns of the graph's scan are one, and the program."""
    (scan,) = (node for node in graph.nodes if node.op == "scan")
    program = schedule(graph, target=target)
    (loop,) = (command for command in program.steps if isinstance(command, Repeat))
    return int(scan.attrs["length"]) // loop.count, program


@pytest.mark.usefixtures("no_register_loops")
@pytest.mark.parametrize("name", JOINED)
def test_several_turns_are_stored_once(name: str) -> None:
    function, turns = JOINED[name]
    graph = prepare(graph_of(function), CPU)
    found, program = turns_at_once(graph, CPU)
    assert found == turns
    for value, wanted in zip(interpret_kernels(program, X), interpret(graph, X), strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("no_register_loops")
@pytest.mark.parametrize("name", JOINED)
def test_joined_turns_are_right_on_the_device(name: str) -> None:
    function, _ = JOINED[name]
    (wanted, *_), found = interpret(graph_of(function), X), lx.compile(function)(X)
    first = found[0] if isinstance(found, tuple) else found
    np.testing.assert_allclose(np.asarray(first), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("no_register_loops")
@pytest.mark.parametrize("name", ALONE)
def test_other_turns_stay_alone(name: str) -> None:
    graph = graph_of(ALONE[name])
    (scan,) = (node for node in graph.nodes if node.op == "scan")
    assert may_be_joined(scan) is (name == "few turns")
    assert turns_at_once(prepare(graph, CPU), CPU)[0] == 1


def test_turns_are_one_on_cpu_drivers_alone() -> None:
    """On GPUs nothing is measured."""
    function, _ = JOINED["a multiple of all"]
    program = schedule(prepare(graph_of(function), GPU), target=GPU)
    assert not any("joined" in step.name for step in steps_of(program.steps))
