"""What an operation needs of other arrays at length, beside a product, is left to a map where a device says so."""
from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.plan.profile import CPU_DRIVER, GENERIC_GPU
from lavax.backends.vulkan.target import target_of
from lavax.passes.fuse.fuse import fuse
from lavax.passes.fuse.reasons import Reason
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient

GPU, CPU = (target_of(profile, 1 << 34, 1 << 32) for profile in (GENERIC_GPU, CPU_DRIVER))
KINDS = (lx.ShapeDtype((64, 32), "float32"), lx.ShapeDtype((32, 48), "float32"), lx.ShapeDtype((64, 48), "float32"))
exact_gelu = partial(nn.gelu, approximate=False)


def through(function: Any, x: Any, w: Any, z: Any) -> Any:
    """What the gradient of a gated layer multiplies: a product, and a function's derivative at other numbers."""
    return lx.vjp(function, z)[1](x @ w)[0]


@pytest.mark.parametrize(
    ("function", "target", "kinds"),
    [
        (exact_gelu, GPU, ["contract", "map"]),
        (exact_gelu, CPU, ["contract"]),
        (nn.silu, GPU, ["contract"]),
        (lnp.tanh, GPU, ["contract"]),
    ],
)
def test_derivatives_of_long_functions_have_kernels_of_their_own(function: Any, target: Any, kinds: list[str]) -> None:
    graph = prepare(remove_stop_gradient(lx.trace(partial(through, function))(*KINDS)), target)
    assert [step.kernel.kind for step in schedule(graph, target=target).steps] == kinds
    assert (Reason.EPILOGUE_OPERAND in fuse(graph, target).refusals.values()) is (len(kinds) == 2)


def test_what_is_computed_of_the_product_itself_stays() -> None:
    graph = prepare(remove_stop_gradient(lx.trace(lambda x, w, z: nn.silu(x @ w) * z)(*KINDS)), GPU)
    assert [step.kernel.kind for step in schedule(graph, target=GPU).steps] == ["contract"]


def test_a_sum_with_what_others_read_stays() -> None:
    """A residual stream that no kernel has written yet, because a norm and a sum read it: of two layers."""

    def layers(x: Any, w: Any, v: Any) -> Any:
        stream = exact_gelu(x)
        for _ in range(2):
            stream = stream + nn.layer_norm(stream.astype("float32")).astype("float16") @ w @ v
        return stream

    kinds = [lx.ShapeDtype(shape, "float16") for shape in ((64, 48), (48, 32), (32, 48))]
    graph = prepare(remove_stop_gradient(lx.trace(layers)(*kinds)), GPU)
    assert Reason.EPILOGUE_OPERAND not in fuse(graph, GPU).refusals.values()
