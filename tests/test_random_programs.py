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
from lavax.passes.prepare import prepare
from lavax.passes.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from tests.random_programs import FORWARD, OPERATIONS, TRANSFORMATIONS, arguments, random_program

DRAWS = st.randoms(use_true_random=False)  # what it draws is made simpler until a failure is as simple as can be
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def examples(count: int) -> Any:
    """So many programs, the same in every run."""
    return settings(max_examples=count, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW)


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


@examples(12)
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


def test_the_programs_have_everything() -> None:
    names = set().union(*(random_program(Random(seed), steps=60).names for seed in range(80)))
    assert names == OPERATIONS.keys() | TRANSFORMATIONS.keys() | FORWARD.keys()
