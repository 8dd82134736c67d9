"""Kernels have one key just when the same code does for both."""
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import lavax.numpy as lnp
from lavax.passes.kernels.kernel import Kernel, KernelStep, kernel_key
from tests.passes.lowering import f32, i32, program_of_function


def kernels_of(function: Any, *kinds: Any) -> list[Kernel]:
    steps = program_of_function(function, *kinds).steps
    return [kernel for step in steps if isinstance(step, KernelStep) for kernel in step.kernels]


def key_of(function: Any, *kinds: Any) -> Hashable | None:
    (kernel,) = kernels_of(function, *kinds)
    return kernel_key(kernel)


def test_layers_of_one_form_have_one_key() -> None:
    def network(x: Any, *weights: Any) -> Any:
        for weight in weights:
            x = lnp.tanh(x @ weight)
        return x

    kernels = kernels_of(network, f32(8, 16), *[f32(16, 16)] * 5)
    assert len(kernels) == 5
    assert len({kernel_key(kernel) for kernel in kernels}) == 1


def test_other_code_has_another_key() -> None:
    keys = [
        key_of(lambda x: x + 1, f32(4, 3)),
        key_of(lambda x: x + 2, f32(4, 3)),
        key_of(lambda x: x - 1, f32(4, 3)),
        key_of(lambda x: x + 1, f32(3, 4)),
        key_of(lambda x: x + 1, i32(4, 3)),
        key_of(lambda x: lnp.sum(x, axis=0), f32(4, 3)),
        key_of(lambda x: lnp.sum(x, axis=1), f32(4, 3)),
        key_of(lambda x: -0.0 * x, f32(4, 3)),
        key_of(lambda x: 0.0 * x, f32(4, 3)),
    ]
    assert None not in keys and len(set(keys)) == len(keys)


def test_where_a_kernel_moves_and_how_elements_are_packed_count() -> None:
    (kernel,) = kernels_of(lambda x: x + 1, f32(4))
    moving = replace(kernel, moving={kernel.graph.inputs[0]: (16,)})
    assert len({kernel_key(kernel), kernel_key(moving), kernel_key(replace(kernel, packed=frozenset((8,))))}) == 3
