"""Which values of a row kernel are computed again by a reduction over other elements, and which are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.ir import Graph, interpret
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.reports import cost_of_program
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import FusionLimits, Target
from tests.passes.lowering import f32
from tests.passes.program_checks import check_program

ROWS, WIDTH = 96, 80
ARRAY = 4 * ROWS * WIDTH
draw = np.random.default_rng(0)


def _layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - lnp.mean(x, axis=-1, keepdims=True)
    return centred / lnp.sqrt(lnp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * scale + shift


def _loss(x: Any, scale: Any, shift: Any, weights: Any) -> Any:
    return lnp.sum(weights * _layer_norm(x, scale, shift))


def _column_sums_of_softmax(x: Any) -> Any:
    e = lnp.exp(x - lnp.max(x, axis=1, keepdims=True))
    y = e / lnp.sum(e, axis=1, keepdims=True)
    return lnp.sum(y, axis=0), lnp.sum(x, axis=0), lnp.sum(y * x, axis=1)


def _centred_and_returned(x: Any) -> Any:
    centred = x - lnp.mean(x, axis=1, keepdims=True)
    return centred, lnp.sum(centred, axis=0), lnp.sum(x, axis=0)


def _sums_of_centred(x: Any) -> Any:
    centred = x - lnp.mean(x, axis=1, keepdims=True)
    return lnp.sum(centred * centred, axis=1), lnp.sum(centred * centred, axis=0), lnp.sum(x, axis=0)


GPU = Target(fusion=FusionLimits(operations_per_byte=2.0))
X, VECTOR = f32(ROWS, WIDTH), f32(WIDTH)
# A function, its arguments, its kernels, and how many whole arrays these read and write.
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int, int, int]] = {
    "layer norm by all": (lx.grad(_loss, argnums=(0, 1, 2)), (X, VECTOR, VECTOR, X), 2, 4, 1),
    "layer norm by its scale alone": (lx.grad(_loss, argnums=1), (X, VECTOR, VECTOR, X), 2, 3, 1),
    "layer norm by its scale and shift": (lx.grad(_loss, argnums=(1, 2)), (X, VECTOR, VECTOR, X), 2, 3, 0),
    "a value that costs much": (_column_sums_of_softmax, (X,), 3, 3, 1),
    "a value that is returned": (_centred_and_returned, (X,), 3, 3, 1),
    "two reductions of a value": (_sums_of_centred, (X,), 2, 2, 0),
}


def _graph(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Graph:
    return remove_stop_gradient(lx.trace(function)(*arguments))


def program_for_gpu(graph: Graph) -> KernelProgram:
    program = schedule(prepare(graph, GPU), target=GPU)
    check_program(program)
    return program


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_and_written(name: str) -> None:
    function, arguments, kernels, read, written = CASES[name]
    program = program_for_gpu(_graph(function, arguments))
    cost = cost_of_program(program)
    assert (len(cost.kernels), cost.bytes_read // ARRAY, cost.bytes_written // ARRAY) == (kernels, read, written)


@pytest.mark.parametrize("name", CASES)
def test_the_results_are_those_of_the_graph(name: str) -> None:
    function, arguments, *_ = CASES[name]
    graph = _graph(function, arguments)
    arrays = [draw.standard_normal(argument.shape, np.float32) for argument in arguments]
    found = interpret_kernels(program_for_gpu(graph), *arrays)
    for got, want in zip(found, interpret(graph, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def test_where_memory_is_as_fast_as_arithmetic_values_are_stored() -> None:
    graph = _graph(lx.grad(_loss, argnums=(0, 1, 2)), (X, VECTOR, VECTOR, X))
    cost = cost_of_program(schedule(prepare(graph)))
    assert (cost.bytes_read // ARRAY, cost.bytes_written // ARRAY) == (4, 2)


def test_many_layers_are_fused_in_as_many_kernels_each() -> None:
    def layers(x: Any, scales: Any) -> Any:
        for scale in scales:
            x = x + lnp.tanh(_layer_norm(x, scale, 0.0))
        return lnp.sum(x)

    def kernels(count: int) -> int:
        graph = _graph(lx.grad(layers, argnums=1), (X, [VECTOR] * count))
        return len(cost_of_program(program_for_gpu(graph)).kernels)

    four, eight, twelve = kernels(4), kernels(8), kernels(12)
    assert twelve - eight == eight - four
