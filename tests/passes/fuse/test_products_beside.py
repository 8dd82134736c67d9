"""An operation on two products that wait for the same is in the epilogue of neither, where each leaves processors idle.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import Products, Target

ALL_BUSY = Target(Products(stages_operands=True))
ALL_IDLE = replace(ALL_BUSY, products=replace(ALL_BUSY.products, leaves_idle=lambda dot: True))
ONE_BUSY = replace(ALL_BUSY, products=replace(ALL_BUSY.products, leaves_idle=lambda dot: 16 in dot.operands[0].shape))
TALL, WIDE, BACK = (lx.ShapeDtype(shape, lnp.bfloat16) for shape in ((48, 16), (16, 32), (32, 16)))


def kernels_of(function: Callable[..., Any], target: Target, *kinds: Any) -> list[tuple[str, bool]]:
    """The kinds of the kernels in order, and whether each waits."""
    graph = prepare(remove_stop_gradient(lx.trace(function)(*kinds)), target)
    steps = [step for step in schedule(graph, target=target).steps if isinstance(step, KernelStep)]
    return [(kernel.kind, step.barrier) for step in steps for kernel in step.kernels]


def gated(x: Any, gate: Any, up: Any) -> Any:
    return nn.silu(x @ gate) * (x @ up)


def test_a_gate_waits_for_both_products_in_a_kernel_of_its_own() -> None:
    product, waiting = ("contract", False), ("contract", True)
    assert kernels_of(gated, ALL_IDLE, TALL, WIDE, WIDE) == [product, product, ("map", True)]
    assert kernels_of(gated, ALL_BUSY, TALL, WIDE, WIDE) == [product, waiting]


def test_rows_add_two_products_up() -> None:
    def summed(x: Any, y: Any, w: Any, v: Any) -> Any:
        return nn.rms_norm((x @ w + y @ v).astype("float32"))

    kinds = (TALL, TALL, WIDE, WIDE)
    assert [kind for kind, _ in kernels_of(summed, ALL_IDLE, *kinds)] == ["contract", "contract", "row"]


def test_the_last_of_several_products_takes_what_was_there_before_it() -> None:
    def later(x: Any, w: Any, v: Any, back: Any) -> Any:
        first = x @ w
        return first + lnp.tanh(x @ w @ back) @ v

    kinds = (TALL, WIDE, WIDE, BACK)
    assert [kind for kind, _ in kernels_of(later, ALL_IDLE, *kinds)] == ["contract"] * 3


def test_one_product_that_keeps_the_device_busy_is_enough_to_wait() -> None:
    def gated_by_another(x: Any, gate: Any, y: Any, up: Any) -> Any:
        return nn.silu(x @ gate) * (y @ up)

    kinds = (TALL, WIDE, *(lx.ShapeDtype(shape, lnp.bfloat16) for shape in ((48, 24), (24, 32))))
    assert len(kernels_of(gated_by_another, ALL_IDLE, *kinds)) == 3
    assert len(kernels_of(gated_by_another, ONE_BUSY, *kinds)) == 2
