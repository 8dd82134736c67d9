"""Random programs of transformations and control flow, run in four ways that have to agree."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
from lavax.ir import interpret
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.prepare import prepare
from lavax.passes.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from tests.random_programs import FORWARD, OPERATIONS, TRANSFORMATIONS, Program, arguments, random_program

SEEDS = range(6)
MORE_SEEDS = range(100, 180)


def sensitivity(graph: lx.ir.Graph, arrays: list[np.ndarray], expected: np.ndarray) -> float:
    """How far roundings can move the result: what float32 makes of it in NumPy, and inputs that are a little other."""
    (narrow,) = interpret(graph, *arrays, dtype=np.float32)
    moved = [array * (1 + 2e-7) if array.dtype.kind == "f" else array for array in arrays]
    (other,) = interpret(graph, *moved)
    return float(max(np.abs(narrow - expected).max(), np.abs(other - expected).max()))


def check(program: Program, seed: int) -> None:
    parameters, *vectors = arguments(seed)
    graph = lx.trace(program)(parameters, *vectors)
    lx.ir.verify(graph)
    arrays = [np.asarray(each) for each in (parameters["n"], parameters["w"], *vectors)]
    (expected,) = interpret(graph, *arrays)
    bound = 30 * sensitivity(graph, arrays, expected) + 2e-6
    assert bound < 1e-2, "the program says little: its result hangs on roundings"
    kernels = schedule(prepare(remove_stop_gradient(graph)), ())
    np.testing.assert_allclose(interpret_kernels(kernels, *arrays)[0], expected, rtol=0, atol=1e-9)
    for run in (lx.compile(program), program):
        found: Any = run(parameters, *vectors)
        np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=bound, err_msg=str(program))


@pytest.mark.parametrize("seed", SEEDS)
def test_four_ways_agree(seed: int) -> None:
    program = random_program(seed)
    assert program.size >= 25
    check(program, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_their_gradients_agree(seed: int) -> None:
    inner = random_program(seed + 50, steps=8)
    if inner.names.isdisjoint(FORWARD):
        gradient = lx.grad(lambda x, p, y, z: lx.numpy.sum(inner(p, x, y, z)))
        check_gradient(inner, lambda p, x, y, z: gradient(x, p, y, z), seed)


def check_gradient(inner: Program, gradient: Any, seed: int) -> None:
    parameters, *vectors = arguments(seed)
    graph = lx.trace(gradient)(parameters, *vectors)
    arrays = [np.asarray(each) for each in (parameters["n"], parameters["w"], *vectors)]
    (expected,) = interpret(graph, *arrays)
    bound = 30 * sensitivity(graph, arrays, expected) + 2e-6
    np.testing.assert_allclose(
        np.asarray(lx.compile(gradient)(parameters, *vectors)), expected, rtol=0, atol=bound, err_msg=str(inner)
    )


@pytest.mark.long
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_many_more(seed: int) -> None:
    check(random_program(seed, steps=60), seed)


def test_the_programs_have_everything() -> None:
    names = set().union(*(random_program(seed, steps=60).names for seed in MORE_SEEDS))
    assert names == OPERATIONS.keys() | TRANSFORMATIONS.keys() | FORWARD.keys()
