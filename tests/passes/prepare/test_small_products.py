"""Products of many very small matrices: maps on CPU drivers, contractions elsewhere; the same numbers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU, DeviceProfile
from lavax.backends.vulkan.target import target_of
from lavax.ir import Graph, interpret
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from tests.passes.program_checks import check_program

rng = np.random.default_rng(6)


def matrices(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("f")


Product = tuple[Callable[..., Any], np.ndarray, np.ndarray, bool]
MANY = 2000
# Each with its operands, and whether it is written out.
PRODUCTS: dict[str, Product] = {
    "2 × 2": (lambda x, y: x @ y, matrices(MANY, 2, 2), matrices(MANY, 2, 2), True),
    "3 × 3": (lambda x, y: x @ y, matrices(MANY, 3, 3), matrices(MANY, 3, 3), True),
    "3 × 4 × 3": (lambda x, y: x @ y, matrices(MANY, 3, 4), matrices(MANY, 4, 3), True),
    "3 × 2 × 4": (lambda x, y: x @ y, matrices(MANY, 3, 2), matrices(MANY, 2, 4), True),
    "transposed": (lambda x, y: x.swapaxes(1, 2) @ y, matrices(MANY, 3, 2), matrices(MANY, 3, 3), True),
    "batch last": (lambda x, y: lnp.einsum("ijb,jkb->bik", x, y), matrices(3, 2, MANY), matrices(2, 3, MANY), True),
    "two batches": (
        lambda x, y: lnp.einsum("abij,bajk->abik", x, y), matrices(40, 50, 3, 3), matrices(50, 40, 3, 2), True
    ),
    "two sums": (
        lambda x, y: lnp.einsum("bijk,bkjl->bil", x, y), matrices(MANY, 3, 2, 2), matrices(MANY, 2, 2, 3), True
    ),
    "with what follows": (lambda x, y: lnp.tanh(x @ lnp.sin(y)) + x, matrices(MANY, 3, 3), matrices(MANY, 3, 3), True),
    "4 × 4": (lambda x, y: x @ y, matrices(MANY, 4, 4), matrices(MANY, 4, 4), False),
    "5 × 3": (lambda x, y: x @ y, matrices(MANY, 5, 3), matrices(MANY, 3, 3), False),
    "few": (lambda x, y: x @ y, matrices(300, 3, 3), matrices(300, 3, 3), False),
    "vectors": (lambda x, y: lnp.einsum("bij,bj->bi", x, y), matrices(MANY, 3, 3), matrices(MANY, 3), False),
}


def program_of(graph: Graph, profile: DeviceProfile) -> KernelProgram:
    target = target_of(profile, 1 << 34, 1 << 32)
    program = schedule(prepare(graph, target), target=target)
    check_program(program)
    return program


def has_dot(program: KernelProgram) -> bool:
    return any(node.op == "dot" for step in program.steps for node in step.kernel.graph.nodes)


@pytest.mark.parametrize("name", PRODUCTS)
def test_small_products_are_maps_on_cpu_drivers(name: str) -> None:
    function, x, y, is_map = PRODUCTS[name]
    graph = simplify(lx.trace(function)(x, y))
    program = program_of(graph, CPU_DRIVER)
    if is_map:
        assert [step.kernel.kind for step in program.steps] == ["map"]
        assert has_dot(program_of(graph, GENERIC_GPU))
    elif name != "vectors":
        assert has_dot(program)
    for found, wanted in zip(
        interpret_kernels(program, x, y), interpret(graph, x, y, dtype=np.float64), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", ["3 × 3", "transposed", "with what follows"])
def test_gradients_in_the_middle_of_a_graph(name: str) -> None:
    function, x, y, _ = PRODUCTS[name]
    graph = simplify(lx.trace(lx.grad(lambda x, y: lnp.sum(lnp.sin(function(lnp.cos(x), y))), (0, 1)))(x, y))
    found = interpret_kernels(program_of(graph, CPU_DRIVER), x, y)
    for got, want in zip(found, interpret(graph, x, y, dtype=np.float64), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_operands_that_are_rounded_stay_products() -> None:
    def rounded(x: Any, y: Any) -> Any:
        with lx.matmul_precision("bfloat16"):
            return x @ y

    _, x, y, _ = PRODUCTS["3 × 3"]
    assert has_dot(program_of(simplify(lx.trace(rounded)(x, y)), CPU_DRIVER))
