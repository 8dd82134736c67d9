"""Values that memory does not hold over its peak: the same results from fewer bytes."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.ir import interpret
from lavax.passes.kernels.interpreter import interpret_kernels
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.kernels.program import KernelProgram
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule import rematerialization
from lavax.passes.schedule import schedule as scheduling
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import FusionLimits, Target
from tests.passes.program_checks import check_program

GPU = Target(fusion=FusionLimits(operations_per_byte=2.0))
draw = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return draw.normal(size=shape).astype(np.float32)


@pytest.fixture
def limits() -> Iterator[Callable[..., None]]:
    """Sets limits, for this test alone; by default even the smallest peak counts, and no kernel waits for others though
    these arrays are so small that all would."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduling, "WAITING_KERNELS", scheduling.WaitingKernels(all_kept_bytes=0))

        def set_limits(**changes: int) -> None:
            changed = replace(rematerialization.RematerializationLimits(), **{"least_peak": 0, **changes})
            patch.setattr(rematerialization, "_LIMITS", changed)

        set_limits()
        yield set_limits


def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    centred = x - lnp.mean(x, axis=(0, 2, 3), keepdims=True)
    scale = lnp.rsqrt(lnp.mean(centred * centred, axis=(0, 2, 3), keepdims=True) + 1e-5)
    return centred * scale * weight[:, None, None] + bias[:, None, None]


def residual_network(weights: Any, x: Any) -> Any:
    for kernel, weight, bias in weights:
        x = nn.relu(batch_norm(nn.conv(x, kernel, padding=1), weight, bias) + x)
    return lnp.sum(lnp.sin(x))


def gated_network(weights: Any, x: Any) -> Any:
    for norm, gate, up, down in weights:
        hidden = nn.rms_norm(x, norm)
        x = x + (nn.silu(hidden @ gate) * (hidden @ up)) @ down
    return lnp.sum(lnp.sin(x))


def perceptron(weights: Any, x: Any) -> Any:
    for matrix, bias in weights:
        x = nn.gelu(x @ matrix + bias, approximate=False)
    return lnp.sum(lnp.sin(x))


def perceptron_in_shares(weights: Any, x: Any) -> Any:
    """Each product is the weighted sum of four products over a quarter of the contracted axis."""
    parts = 1 - lnp.arange(4)[:, None, None] / 8
    for matrix, bias in weights:
        quarters = lnp.reshape(x, (len(x), 4, -1)), lnp.reshape(matrix, (4, -1, matrix.shape[1]))
        x = nn.mish(lnp.sum(parts * lnp.einsum("imk,mkj->mij", *quarters), axis=0) + bias)
    return lnp.sum(lnp.sin(x))


def attending_network(weights: Any, x: Any) -> Any:
    for matrix, norm in weights:
        hidden = nn.layer_norm(x @ matrix, norm)
        x = x + nn.dot_product_attention(hidden, hidden, hidden, is_causal=True)
    return lnp.sum(lnp.sin(x))


def with_a_loop(weights: Any, x: Any) -> Any:
    for matrix, bias in weights:
        x = lx.fori_loop(0, 2, lambda _, y, m=matrix, b=bias: lnp.tanh(y @ m + b), x)  # type: ignore[misc]
        x = nn.gelu(x, approximate=False) @ matrix
    return lnp.sum(lnp.sin(x))


NETWORKS: dict[str, tuple[Callable[..., Any], Any, np.ndarray]] = {
    "residual": (residual_network, [(normal(4, 4, 3, 3), normal(4), normal(4)) for _ in range(3)], normal(2, 4, 8, 8)),
    "gated": (
        gated_network,
        [(normal(16), normal(16, 48), normal(16, 48), normal(48, 16) / 16) for _ in range(3)],
        normal(20, 16),
    ),
    "perceptron": (perceptron, [(normal(16, 16) / 4, normal(16)) for _ in range(4)], normal(30, 16)),
    "shares": (perceptron_in_shares, [(normal(16, 16) / 4, normal(16)) for _ in range(4)], normal(30, 16)),
    "attention": (attending_network, [(normal(16, 16) / 4, normal(16)) for _ in range(3)], normal(2, 12, 2, 16)),
    "loop": (with_a_loop, [(normal(16, 16) / 4, normal(16)) for _ in range(3)], normal(24, 16)),
}


def program_of(function: Callable[..., Any], *arguments: Any, target: Target = GPU) -> KernelProgram:
    graph = prepare(remove_stop_gradient(lx.compile(function).lower(*arguments).optimized), target)
    program = schedule(graph, target=target)
    if all(isinstance(step, KernelStep) for step in program.steps):  # the check replays no loops
        check_program(program)
    return program


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_the_same_from_less_memory(name: str, limits: Callable[..., None]) -> None:
    loss, weights, x = NETWORKS[name]
    gradient = lx.grad(loss, argnums=(0, 1))
    program = program_of(gradient, weights, x)
    limits(nodes=0)
    before = program_of(gradient, weights, x)
    assert program.arena_bytes < before.arena_bytes
    arrays = [np.asarray(leaf, np.float64) for leaf in lx.tree.leaves((weights, x))]
    expected = interpret(before.graph, *arrays, dtype=np.float64)
    for found, right in zip(interpret_kernels(program, *arrays, dtype=np.float64), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-10 * np.max(np.abs(right)))


def kept_per_layer(network: str, layers: int) -> float:
    """How many arrays of the size of x, per layer, the gradient's temporaries hold when they take most."""
    loss, weights, x = NETWORKS[network]
    sizes = [program_of(lx.grad(loss), weights[:1] * n, x).arena_bytes for n in (layers, 2 * layers)]
    return (sizes[1] - sizes[0]) / layers / x.nbytes


def test_a_residual_layer_keeps_the_convolution_and_the_result(limits: Callable[..., None]) -> None:
    """The normalised values and the mask of the ReLU are computed from them."""
    assert kept_per_layer("residual", 4) == pytest.approx(2.25, abs=0.1)  # 0.25 for numbers per channel
    limits(nodes=0)
    assert kept_per_layer("residual", 4) > 3


def test_a_perceptron_keeps_what_its_activations_take(limits: Callable[..., None]) -> None:
    assert kept_per_layer("perceptron", 6) == pytest.approx(1, abs=0.3)
    limits(nodes=0)
    assert kept_per_layer("perceptron", 6) > 1.7


@pytest.mark.usefixtures("limits")
def test_sums_of_narrow_products_stay_narrow_for_the_gradient() -> None:
    """The activation and its derivatives are made from the product's rounded result, not from its float32 sums."""

    def loss(weights: Any, x: Any) -> Any:
        for gate, up, down in weights:
            x = x + (nn.silu(x @ gate) * (x @ up)) @ down
        return lnp.sum(x.astype("float32") ** 2)

    kinds = [lx.ShapeDtype(shape, lnp.bfloat16) for shape in ((16, 40), (16, 40), (40, 16))]
    program = program_of(lx.grad(loss), [tuple(kinds)] * 3, lx.ShapeDtype((30, 16), lnp.bfloat16))
    stored = [output.type for step in program.steps for kernel in step.kernels for output in kernel.graph.outputs]
    inner = [type.dtype.name for type in stored if type.shape == (30, 40)]
    assert inner and set(inner) <= {"bf16", "bool"}


@pytest.mark.usefixtures("limits")
def test_products_compute_an_activation_and_its_derivative_in_16_bits() -> None:
    """The product before a GELU writes its argument, for the gradient, and the GELU; the product of the gradient
    writes what the derivative makes of it, for two products and a sum. The GELU itself is kept."""

    def loss(weights: Any, x: Any) -> Any:
        for matrix, bias in weights:
            x = nn.gelu(x @ matrix + bias)
        return lnp.sum(x.astype("float32") ** 2)

    kinds = [lx.ShapeDtype(shape, lnp.bfloat16) for shape in ((16, 16), (16,))]
    program = program_of(lx.grad(loss), [tuple(kinds)] * 4, lx.ShapeDtype((30, 16), lnp.bfloat16))
    kernels = [kernel for step in program.steps for kernel in step.kernels]
    whole = [kernel for kernel in kernels if kernel.graph.outputs[0].shape == (30, 16)]
    written = [(kernel.kind, *(output.type.dtype.name for output in kernel.graph.outputs)) for kernel in whole]
    # The last layer's result is read by a sum, and its derivative comes after no product.
    assert [found for found in written if found[0] == "map"] == [("map", "bf16")]
    assert written.count(("contract", "bf16", "bf16")) == 3
    assert written.count(("contract", "bf16")) == 1 + 3


def test_an_activation_and_its_derivatives_share_what_they_are_made_from(limits: Callable[..., None]) -> None:
    """Though the kernel that adds up the shares of a product writes it for no other reason.

    The other array per layer is the activation itself, a factor of the next product.
    """
    assert kept_per_layer("shares", 6) == pytest.approx(2, abs=0.3)
    limits(nodes=0)
    assert kept_per_layer("shares", 6) > 3


def test_small_programs_are_left_alone(limits: Callable[..., None]) -> None:
    loss, weights, x = NETWORKS["residual"]
    recomputing = str(program_of(lx.grad(loss), weights, x))
    limits(nodes=0)
    keeping = str(program_of(lx.grad(loss), weights, x))
    limits(least_peak=32 << 20)
    assert str(program_of(lx.grad(loss), weights, x)) == keeping != recomputing


def test_costly_values_are_kept(limits: Callable[..., None]) -> None:
    limits(cost=40)
    assert kept_per_layer("perceptron", 6) > 1.7  # a GELU takes more
