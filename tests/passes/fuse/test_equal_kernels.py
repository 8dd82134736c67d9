"""Kernels that are equal in all are one object, and others are not."""
from __future__ import annotations

from typing import Any

import lavax as lx
import lavax.numpy as lnp
from lavax.passes.kernels.kernel import Kernel, KernelStep, kernel_key, once_a_kernel
from tests.passes.lowering import f32, program_of_function


def kernels_of(function: Any, *kinds: Any) -> list[Kernel]:
    steps = program_of_function(function, *kinds).steps
    return [kernel for step in steps if isinstance(step, KernelStep) for kernel in step.kernels]


def test_kernels_of_equal_layers_are_one_object() -> None:
    def network(x: Any, *weights: Any) -> Any:
        for weight in weights:
            x = lnp.tanh(x @ weight)
        return x

    assert len(set(kernels_of(network, f32(8, 16), *[f32(16, 16)] * 5))) == 1


def test_kernels_over_equal_shapes_have_one_domain() -> None:
    def network(x: Any, w: Any, v: Any) -> Any:
        return lnp.exp((x @ w) / lnp.sum(x @ w, axis=1, keepdims=True)) @ v, lnp.max((x + 1) @ v, axis=1) + 1

    by_extents: dict[Any, set[int]] = {}
    for kernel in kernels_of(network, f32(8, 16), f32(16, 16), f32(16, 16)):
        by_extents.setdefault((kernel.domain.outer, kernel.domain.reduced), set()).add(id(kernel.domain))
    assert len(by_extents) > 1
    assert all(len(domains) == 1 for domains in by_extents.values())


def test_kernels_that_differ_in_anything_are_several() -> None:
    def network(x: Any, *weights: Any) -> Any:
        for weight, number in zip(weights, (0.5, 2.0, 0.0, -0.0), strict=True):
            x = (x @ weight) * number
        return x @ weights[0].T

    kernels = kernels_of(network, f32(8, 16), *[f32(16, 16)] * 4)
    assert len(kernels) == len(set(kernels)) == len({kernel_key(kernel) for kernel in kernels}) == 5


def test_names_of_scopes_stay_with_their_kernels() -> None:
    def network(x: Any, *weights: Any) -> Any:
        for number, weight in enumerate(weights):
            with lx.named_scope(f"layer{number}"):
                x = lnp.tanh(x @ weight)
        return x

    kernels = kernels_of(network, f32(8, 16), *[f32(16, 16)] * 3)
    assert [f"layer{number}" in str(kernel.graph) for number, kernel in enumerate(kernels)] == [True] * 3


def test_gathers_keep_kernels_of_their_own() -> None:
    def network(x: Any, places: Any) -> Any:
        for _ in range(2):
            x = lnp.sum(x[places], axis=1, keepdims=True) * lnp.ones((1, 16))
        return x

    kernels = kernels_of(network, f32(8, 16), lx.ShapeDtype((8,), "int32"))
    with_gathers = [kernel for kernel in kernels if any(node.op == "gather" for node in kernel.graph.nodes)]
    assert len(set(with_gathers)) == len(with_gathers) == 2


def test_what_is_found_of_a_kernel_is_found_once() -> None:
    asked = []

    @once_a_kernel
    def times(kernel: Kernel, factor: int) -> int:
        asked.append(factor)
        return factor * kernel.domain.rows

    (kernel,) = kernels_of(lambda x: x + 1, f32(4))
    assert [times(kernel, 2), times(kernel, 3), times(kernel, 2)] == [8, 12, 8]
    assert asked == [2, 3]
