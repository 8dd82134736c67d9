"""Functions that are rounded to 16 bits: which are marked, and that their results are as good as exact ones."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.backends.vulkan.backend import VulkanBackend
from lavax.ir.graph import Graph, further_inputs, make_node
from lavax.ir.operation import OPERATIONS
from lavax.ir.types import TensorType, float32
from lavax.passes.fuse.costs import cost_of
from lavax.passes.kernels.kernel import KernelStep
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.schedule.schedule import schedule
from lavax.passes.simplify import remove_stop_gradient
from lavax.passes.target.target import ANY_DEVICE, FusionLimits, Products, Target
from lavax.shaders_glsl import elementary_functions
from tests.backends.vulkan.run.execution import backend_with, run

SHORT = replace(ANY_DEVICE, narrow_functions=True)
NARROW, WIDE = lx.ShapeDtype((24, 32), lnp.bfloat16), lx.ShapeDtype((24, 32), "float32")
(_VALUE,) = further_inputs("x", [TensorType((24, 32), float32)], ())
FUNCTIONS = frozenset(("exp", "logistic", "tanh", "erf", "erfc"))


def marks(function: Callable[..., Any], *kinds: Any, target: Target = SHORT) -> dict[str, set[bool]]:
    """Of each function in the prepared graph, how its nodes are marked."""
    found: dict[str, set[bool]] = {}
    for node in prepare(remove_stop_gradient(lx.trace(function)(*kinds)), target).nodes:
        if node.op in FUNCTIONS:
            found.setdefault(node.op, set()).add(node.attrs["narrow"])
    return found


def test_every_operation_that_may_be_narrow_has_a_short_form_and_its_cost() -> None:
    names = {name for name, operation in OPERATIONS.items() if "narrow" in operation.attributes}
    assert names == FUNCTIONS
    for name in sorted(names):
        assert f"lx_narrow_{name}" in elementary_functions()
        exact, short = (make_node(name, (_VALUE,), {"narrow": flag}, _VALUE.type) for flag in (False, True))
        assert 0 < cost_of(short) < cost_of(exact)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (nn.silu, "logistic"),
        (lambda x: nn.gelu(x, approximate=False), "erfc"),
        (lambda x: nn.gelu(x, approximate=True), "logistic"),
        (lnp.tanh, "tanh"),
        (lambda x: lx.scipy.special.erf(x), "erf"),
        (lambda x: lnp.where(x > 0, x, lnp.exp(x) - 1).T, "exp"),
    ],
    ids=["silu", "gelu", "gelu-tanh", "tanh", "erf", "moved"],
)
def test_functions_of_16_bits_are_marked_where_the_device_has_short_forms(function: Any, name: str) -> None:
    assert marks(function, NARROW) == {name: {True}}
    assert marks(function, NARROW, target=ANY_DEVICE) == {name: {False}}
    assert marks(function, WIDE) == {name: {False}}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lnp.sum(lnp.exp(x.astype("float32")), axis=1).astype(x.dtype),
        lambda x: nn.softmax(x),
        lambda x: (lnp.tanh(x.astype("float32")).astype(x.dtype), lnp.tanh(x.astype("float32"))),
        lambda x: lnp.sin(lnp.exp(x.astype("float32"))).astype(x.dtype),
        lambda x: (1 / lnp.exp(x.astype("float32"))).astype("int32"),
    ],
    ids=["sum", "softmax", "returned", "function", "integers"],
)
def test_what_is_read_before_it_is_rounded_is_not_marked(function: Any) -> None:
    assert set().union(*marks(function, NARROW).values()) == {False}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh", "tanh", "elu"])
def test_results_and_gradients_have_the_places_of_16_bits(name: str, dtype: str) -> None:
    """In the middle of a graph: c · Σ(w ⊙ f(x)). A short form moves few results, and those by one place of their dtype
    or, where terms cancel, by a thirtieth of a place of 1."""
    function = {
        "silu": nn.silu,
        "gelu": lambda x: nn.gelu(x, approximate=False),
        "gelu_tanh": lambda x: nn.gelu(x, approximate=True),
        "tanh": lnp.tanh,
        "elu": nn.elu,
    }[name]

    def both(x: Any, w: Any) -> Any:
        loss = lambda x: 3 * lnp.sum((w * function(x)).astype("float32"))  # noqa: E731
        return function(x), lx.grad(loss)(x)

    x = np.concatenate([np.linspace(-12, 12, 700), [0.0, -0.0, -95.0, 60.0]]).astype(np.float32).reshape(8, 88)
    w = np.random.default_rng(1).uniform(0.5, 2, (8, 88)).astype(np.float32)
    kind = lx.ShapeDtype((8, 88), dtype)
    graph: Graph = remove_stop_gradient(lx.trace(both)(kind, kind))
    place = {"bfloat16": 2.0**-8, "float16": 2.0**-10}[dtype]
    x, w = (node.dtype.rounded(array) for node, array in zip(graph.inputs, (x, w), strict=True))
    device, exact = backend_with(kind="gpu"), VulkanBackend()
    assert device.target.narrow_functions
    exact.profile, exact.target = device.profile, replace(device.target, narrow_functions=False)
    for got, want in zip(run(graph, [x, w], device=device), run(graph, [x, w], device=exact), strict=True):
        got, want = got.astype(np.float64), want.astype(np.float64)
        np.testing.assert_allclose(got, want, rtol=place, atol=place / 30)
        assert np.count_nonzero(got != want) <= got.size // 25  # also ties, of what is nearly 1


def test_a_product_computes_all_that_follows_its_narrow_result_or_none_of_it() -> None:
    """Half of it, in 32 bits, would be several times as much to write."""

    def layer(x: Any, w: Any, b: Any) -> Any:
        return nn.gelu(x @ w + b, approximate=False)

    kinds = [lx.ShapeDtype(shape, lnp.bfloat16) for shape in ((48, 16), (16, 32), (32,))]
    for cost in range(8, 40):
        target = Target(Products(stages_operands=True), fusion=FusionLimits(epilogue_cost=cost), narrow_functions=True)
        graph = prepare(remove_stop_gradient(lx.trace(layer)(*kinds)), target)
        steps = [step for step in schedule(graph, target=target).steps if isinstance(step, KernelStep)]
        written = [output.type.dtype.name for step in steps for each in step.kernels for output in each.graph.outputs]
        assert written == ["bf16"] * len(written), cost
        assert len(written) == (1 if cost >= 22 else 2), cost
