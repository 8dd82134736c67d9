"""Random programs of transformations and control flow, run in four ways that have to agree."""
from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import lavax as lx
from lavax.ir import interpret
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from tests.random_programs import FORWARD, OPERATIONS, TRANSFORMATIONS, UNTRUE, arguments, random_program
from tests.random_regions import OUTER, VECTOR, random_regions

DRAWS = st.randoms(use_true_random=False)  # what it draws is made simpler until a failure is as simple as can be
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def examples(count: int) -> Any:
    """So many programs, the same in every run."""
    return settings(max_examples=count, derandomize=True, database=None, suppress_health_check=SLOW)


def sensitivity(graph: lx.ir.Graph, arrays: list[np.ndarray], expected: np.ndarray) -> float:
    """How far roundings can move the result: what float32 makes of it in NumPy, and inputs that are a little other."""
    (narrow,) = interpret(graph, *arrays, dtype=np.float32)
    moved = [array * (1 + 2e-7) if array.dtype.kind == "f" else array for array in arrays]
    (other,) = interpret(graph, *moved)
    return float(max(np.abs(narrow - expected).max(), np.abs(other - expected).max()))


def check(program: Callable[..., Any], seed: int) -> None:
    """The float64 interpreter, the kernel interpreter, compiled and eager agree as far as roundings let them."""
    parameters, *vectors = arguments(seed)
    graph = lx.trace(program)(parameters, *vectors)
    lx.ir.verify(graph)
    arrays = [np.asarray(each) for each in (parameters["n"], parameters["w"], *vectors)]
    (expected,) = interpret(graph, *arrays)
    bound = 30 * sensitivity(graph, arrays, expected) + 2e-6
    assume(bound < 1e-2)  # else the result hangs on roundings, and says little
    kernels = schedule(prepare(remove_stop_gradient(graph)), ())
    np.testing.assert_allclose(interpret_kernels(kernels, *arrays)[0], expected, rtol=0, atol=1e-9)
    for run in (lx.compile(program), program):
        np.testing.assert_allclose(np.asarray(run(parameters, *vectors)), expected, rtol=0, atol=bound)


def check_program(random: Random, steps: int) -> None:
    program = random_program(random, steps)
    assert program.size >= steps - 5
    note(str(program))
    check(program, random.randrange(100))


def check_gradient(random: Random, steps: int) -> None:
    inner = random_program(random, steps, forward=False)
    note(str(inner))
    gradient = lx.grad(lambda x, p, y, z: lx.numpy.sum(inner(p, x, y, z)))
    check(lambda p, x, y, z: gradient(x, p, y, z), random.randrange(100))


def check_regions(random: Random) -> None:
    nest = random_regions(random)
    inputs = VECTOR, np.int32(random.randrange(5)), OUTER
    graph = lx.trace(nest)(*inputs)
    lx.ir.verify(graph)
    vector, integer = interpret(graph, *inputs)
    assume(np.isfinite(vector).all())
    narrow, _ = interpret(graph, *inputs, dtype=np.float32)
    found, count = lx.compile(nest)(*inputs)
    bound = 30 * np.abs(narrow - vector).max() + 2e-6 * max(1, np.abs(vector).max())
    np.testing.assert_allclose(np.asarray(found), vector, rtol=0, atol=bound)
    assert int(count) == int(integer)


def check_slopes(random: Random, steps: int, order: int) -> None:
    """Gradients are what differences of the function, or of its gradient, say: both in float64."""
    inner = random_program(random, steps, forward=False)
    assume(inner.names.isdisjoint(UNTRUE))
    note(str(inner))

    def value(x: Any, p: Any, y: Any, z: Any) -> Any:
        return lx.numpy.sum(inner(p, x, y, z))

    lower = value
    if order == 2:
        first = lx.grad(value)

        def lower(x: Any, p: Any, y: Any, z: Any) -> Any:
            return lx.numpy.sum(first(x, p, y, z) * z)

    parameters, x, y, z = arguments(random.randrange(100))
    graphs = [lx.trace(f)(x, parameters, y, z) for f in (lower, lx.grad(lower))]
    point, *rest = (np.asarray(each) for each in (x, parameters["n"], parameters["w"], y, z))
    (gradient,) = interpret(graphs[1], point, *rest)
    assume(np.abs(gradient).max() < 1e3)
    step = 1e-6
    slopes = [
        np.subtract(*(interpret(graphs[0], point + sign * step * unit, *rest)[0] for sign in (1, -1))) / (2 * step)
        for unit in np.eye(len(point))
    ]
    np.testing.assert_allclose(gradient, slopes, rtol=0, atol=1e-5 * max(1, np.abs(gradient).max()))


@examples(20)
@given(DRAWS)
def test_loops_and_branches_nest_in_any_order(random: Random) -> None:
    check_regions(random)


@pytest.mark.parametrize("order", [1, 2])
@examples(20)
@given(DRAWS)
def test_gradients_are_slopes(order: int, random: Random) -> None:
    check_slopes(random, 8, order)


@examples(8)
@given(DRAWS)
def test_four_ways_agree(random: Random) -> None:
    check_program(random, steps=30)


@examples(8)
@given(DRAWS)
def test_four_ways_agree_on_gradients(random: Random) -> None:
    check_gradient(random, steps=8)


@examples(6)
@given(DRAWS)
def test_callbacks_may_stand_anywhere(random: Random) -> None:
    """Behind every step of every part: the same ones in the same order, compiled and not, and the result stays."""
    program = random_program(random, steps=12)
    note(str(program))
    seen: list[tuple[str, np.ndarray]] = []

    def watch(name: str, value: Any) -> None:
        lx.debug.callback(lambda array: seen.append((name, np.array(array))), value)

    given_arguments = arguments(0)
    shown = []
    for run in (program.watched_by(watch), lx.compile(program.watched_by(watch))):
        seen.clear()
        result = np.asarray(run(*given_arguments))
        np.testing.assert_allclose(result, np.asarray(program(*given_arguments)), rtol=0, atol=1e-2)
        shown.append(seen[:])
    assert [name for name, _ in shown[0]] == [name for name, _ in shown[1]]
    assert len(shown[0]) >= len(program.steps)
    for (name, one), (_, other) in zip(*shown, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-2, err_msg=name)


@pytest.mark.long
@examples(100)
@given(DRAWS)
def test_four_ways_agree_on_many_more(random: Random) -> None:
    check_program(random, steps=60)


@pytest.mark.long
@examples(50)
@given(DRAWS)
def test_four_ways_agree_on_many_more_gradients(random: Random) -> None:
    check_gradient(random, steps=20)


@pytest.mark.long
@examples(300)
@given(DRAWS)
def test_loops_and_branches_nest_in_any_order_at_length(random: Random) -> None:
    check_regions(random)


@pytest.mark.long
@pytest.mark.parametrize("order", [1, 2])
@examples(300)
@given(DRAWS)
def test_many_more_gradients_are_slopes(order: int, random: Random) -> None:
    check_slopes(random, 12, order)


def test_the_programs_have_everything() -> None:
    names = set().union(*(random_program(Random(seed), steps=60).names for seed in range(80)))
    assert names == OPERATIONS.keys() | TRANSFORMATIONS.keys() | FORWARD.keys()
