"""Programs of thousands of statements: kernels stay short, compute little twice, and have few forms."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import Graph
from lavax.passes.fuse.costs import KERNEL_LIMITS, cost_of
from lavax.passes.kernels.kernel import kernel_key
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import ANY_DEVICE, FusionLimits, Target
from lavax.tracer.compiled.collection import without_collection
from tests.passes.lowering import assert_computes, f32, program_of


def _sines(count: int) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        y = x
        for _ in range(count):
            y = lnp.sin(y) + x
        return y

    return function


def _gradient(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lx.grad(lambda x: lnp.sum(function(x)))


def _mixed(rounds: int) -> Callable[[Any], Any]:
    """Eight values that depend on each other: all of them are alive all the time."""

    def function(x: Any) -> Any:
        values = [x + 0.1 * number for number in range(8)]
        for turn in range(rounds):
            values = [
                lnp.sin(value) * 0.5 + values[(place + 1) % 8]
                if (turn + place) % 3
                else value + values[(place + 3) % 8] * values[(place + 5) % 8]
                for place, value in enumerate(values)
            ]
        return sum(values)

    return function


def _rows(count: int) -> Callable[[Any], Any]:
    """A row kernel that many functions join."""

    def function(x: Any) -> Any:
        y = lnp.max(x, axis=1, keepdims=True)
        for _ in range(count):
            y = lnp.sin(y) + x
        return y

    return function


def _graph(function: Callable[[Any], Any]) -> Graph:
    return remove_stop_gradient(lx.trace(function)(f32(8, 8)))


def _bodies(program: KernelProgram) -> list[tuple[int, int]]:
    """The number and the cost of each kernel's nodes."""
    kernels = chain.from_iterable(step.kernels for step in program.steps)
    return [(len(kernel.graph.nodes), sum(map(cost_of, kernel.graph.nodes))) for kernel in kernels]


# A function; how much more its kernels may compute than its graph has; and how many forms of kernels it may have.
PROGRAMS: dict[str, tuple[Callable[[Any], Any], float, int]] = {
    "sines": (_sines(1000), 1.0, 4),
    "gradient of sines": (_gradient(_sines(300)), 1.7, 12),
    "eight values": (_mixed(60), 2.0, 1000),
    "rows": (_rows(300), 1.1, 6),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_long_programs_are_short_and_compute_little_twice(name: str) -> None:
    function, surplus, most_forms = PROGRAMS[name]
    graph = _graph(function)
    program = program_of(graph)
    bodies = _bodies(program)
    assert all(not KERNEL_LIMITS.are_passed_by_kernel(*body) for body in bodies)
    assert sum(cost for _, cost in bodies) <= surplus * sum(map(cost_of, graph.nodes))
    assert len({kernel_key(kernel) for step in program.steps for kernel in step.kernels}) <= most_forms


@pytest.mark.parametrize("function", [_sines(80), _gradient(_sines(50)), _mixed(16), _rows(60)])
def test_what_is_cut_computes_the_same(function: Callable[[Any], Any]) -> None:
    graph = _graph(function)
    program = program_of(graph)
    assert len(program.steps) > 1
    assert_computes(program, graph, [np.random.default_rng(3).normal(size=(8, 8))], tolerance=1e-12)


def test_joins_of_many_cut_parts_are_cut_though_nothing_in_them_can_be_stored() -> None:
    graph = _graph(lambda x: lnp.concatenate([x[number % 8, ::-1] for number in range(70)]))
    assert_computes(program_of(graph), graph, [np.random.default_rng(3).normal(size=(8, 8))])


def test_short_programs_of_functions_are_one_kernel() -> None:
    assert len(program_of(_graph(_sines(18))).steps) == 1


@pytest.mark.parametrize("target", [ANY_DEVICE, Target(fusion=FusionLimits(operations_per_byte=2.0))])
def test_time_to_kernels_grows_as_the_program_does(target: Target) -> None:
    """Four times the statements take some four times as long; sixteen times would be a pass of quadratic time."""

    def seconds(count: int) -> float:
        graph = remove_stop_gradient(lx.trace(_gradient(_sines(count)))(lx.ShapeDtype((1 << 12, 64), "float32")))
        start = time.process_time()
        with without_collection:  # as when a program is made
            schedule(prepare(graph, target), target=target)
        return time.process_time() - start

    seconds(50)
    assert min(seconds(600) for _ in range(3)) < 9 * min(seconds(150) for _ in range(3))
