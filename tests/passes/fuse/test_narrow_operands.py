"""Operands of products that a kernel of their own computes: stored in 16 bits, once, and no longer computed there."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, nn
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import simplify
from lavax.passes.target.target import Products, Target

IMAGE, CHANNELS = lx.ShapeDtype((2, 9, 9, 32), "bfloat16"), lx.ShapeDtype((32,), "float32")
WINDOWS = [lx.ShapeDtype((32, 32, size, size), "bfloat16") for size in (1, 3)]
LAST = ("NHWC", "OIHW", "NHWC")


def kernels_of(function: Callable[..., Any], products: Products, *kinds: Any) -> list[Kernel]:
    target = Target(products)
    program: KernelProgram = schedule(prepare(simplify(lx.trace(function)(*kinds)), target), target=target)
    return [kernel for step in program.steps for kernel in step.kernels]  # type: ignore[union-attr]


def _written(kernels: list[Kernel], kind: str) -> list[list[str]]:
    return [[str(output.type) for output in each.graph.outputs] for each in kernels if each.kind == kind]


def test_what_windows_repeat_is_stored_in_16_bits_and_once() -> None:
    """Windows of one pixel and of nine, the second padded, of a value that is too much for both products."""

    def function(x: Any, mean: Any, scale: Any, small: Any, large: Any) -> Any:
        wide = (x.astype("float32") - mean) * scale
        x = nn.relu((wide * lnp.sqrt(1 + wide * wide)).astype("bfloat16"))
        return [lax.conv_general_dilated(x, each, (1, 1), "SAME", dimension_numbers=LAST) for each in (small, large)]

    found = kernels_of(function, Products(stages_operands=True), IMAGE, CHANNELS, CHANNELS, *WINDOWS)
    assert _written(found, "map") == [["bf16[2,9,9,32]"]]
    assert _written(found, "contract") == [["bf16[2,9,9,32]"]] * 2


def test_arrays_that_a_rounded_operand_was_made_of_leave_room_for_the_epilogue() -> None:
    def function(x: Any, weight: Any, *more: Any) -> Any:
        for each in more:
            x = x * each
        found = x.astype("bfloat16") @ weight
        return nn.relu(found)

    square = lx.ShapeDtype((64, 64), "float32")
    products = Products(stages_operands=True, stores_rounded=lambda dot, side: side == 0)
    kinds = square, lx.ShapeDtype((64, 64), "bfloat16"), *[square] * 7
    found = kernels_of(function, products, *kinds)
    assert [kernel.kind for kernel in found] == ["map", "contract"]
    assert _written(found, "contract") == [["bf16[64,64]"]]


def test_a_mask_of_a_value_that_a_product_has_stored_is_in_an_epilogue() -> None:
    """The mask is computed, and the arrays that it reads are noted, before the product asks for the value."""

    def function(weight: Any, gradient: Any, *more: Any) -> Any:
        x = more[0]
        for each in more[1:]:
            x = x * each
        x = x.astype("bfloat16")
        mask = x > 0
        return x @ weight, lnp.where(mask, gradient @ weight.T, 0)

    square, narrow = lx.ShapeDtype((64, 64), "float32"), lx.ShapeDtype((64, 64), "bfloat16")
    found = kernels_of(function, Products(stages_operands=True), narrow, narrow, *[square] * 7)
    assert [kernel.kind for kernel in found] == ["map", "contract", "contract"]
    assert sorted(len(kernel.graph.inputs) for kernel in found) == [2, 3, 7]
