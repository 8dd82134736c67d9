"""What a product writes of 16 bits: one narrow value in place of wide ones, two where both are stored anyway."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Products, Target

GPU = Target(Products(stages_operands=True))
TALL, WIDE, SQUARE = (lx.ShapeDtype(shape, lnp.bfloat16) for shape in ((48, 16), (16, 32), (32, 32)))
STATE = lx.ShapeDtype((16, 32), "float32")


def written(function: Callable[..., Any], *kinds: Any) -> list[list[str]]:
    """The dtypes of what each product's kernel writes, in order."""
    graph = prepare(remove_stop_gradient(lx.trace(function)(*kinds)), GPU)
    steps = [step for step in schedule(graph, target=GPU).steps if isinstance(step, KernelStep)]
    kernels = [kernel for step in steps for kernel in step.kernels if kernel.kind == "contract"]
    return [[output.type.dtype.name for output in kernel.graph.outputs] for kernel in kernels]


def test_a_gradient_that_an_optimizer_reads_in_three_places_is_stored_as_it_is() -> None:
    def step(x: Any, g: Any, mean: Any, square: Any, weights: Any) -> Any:
        gradient = (x.T @ g).astype("float32")
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        return mean, square, weights - mean / lnp.sqrt(square)

    g = lx.ShapeDtype((48, 32), lnp.bfloat16)
    assert written(step, TALL, g, STATE, STATE, STATE) == [["bf16"]]


def test_an_update_by_the_gradient_alone_is_in_the_product() -> None:
    def step(x: Any, g: Any, weights: Any) -> Any:
        return weights - 0.1 * (x.T @ g).astype("float32")

    assert written(step, TALL, lx.ShapeDtype((48, 32), lnp.bfloat16), STATE) == [["f32"]]
    graph = prepare(remove_stop_gradient(lx.trace(step)(TALL, lx.ShapeDtype((48, 32), lnp.bfloat16), STATE)), GPU)
    assert len(schedule(graph, target=GPU).steps) == 1


def test_two_factors_of_products_are_written_by_the_product_that_both_are_made_of() -> None:
    def both(x: Any, w: Any, gate: Any, up: Any, one: Any, other: Any) -> Any:
        g = x @ w
        return (g * gate) @ one, (g * up) @ other

    gates = lx.ShapeDtype((48, 32), lnp.bfloat16)
    assert written(both, TALL, WIDE, gates, gates, SQUARE, SQUARE) == [["bf16", "bf16"], ["bf16"], ["bf16"]]


def test_what_a_reduction_reads_too_is_stored_narrow() -> None:
    def both(x: Any, w: Any, gate: Any) -> Any:
        g = (x @ w).astype("float32")
        return lnp.sum(g * gate, axis=1), lnp.max(lnp.exp(g), axis=1)

    assert written(both, TALL, WIDE, lx.ShapeDtype((48, 32), "float32")) == [["bf16"]]


def test_a_chain_that_costs_more_than_an_epilogue_may_is_not_begun() -> None:
    def chain(x: Any, w: Any, v: Any) -> Any:
        return nn.silu(lnp.tanh((x @ w).astype("float32") * 2.0)).astype(lnp.bfloat16) @ v

    assert written(chain, TALL, WIDE, SQUARE) == [["bf16"], ["bf16"]]
