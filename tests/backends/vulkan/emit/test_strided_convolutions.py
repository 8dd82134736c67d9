"""Transposed and strided convolutions with kernels of GPUs: values, and gradients in the middle of a graph."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import lax, mixed_precision
from lavax.ir import Graph, interpret
from lavax.mixed_precision import Policy
from lavax.passes.build.inline import inline_calls
from lavax.passes.prepare.decompose import phases
from lavax.passes.prepare.decompose.phases import PhaseLimits
from lavax.passes.prepare.pipeline import prepare
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import backend_with, run
from tests.sweeps import each_value

RANDOM = np.random.default_rng(42)
# The image with channels first, the weights as [in, out, window], and the arguments of the convolution.
TRANSPOSED = [
    ((2, 16, 5, 4, 6), (16, 1, 4, 4, 4), dict(lhs_dilation=(2, 2, 2), padding=((2, 2),) * 3)),
    ((2, 16, 5, 6), (16, 3, 4, 3), dict(lhs_dilation=(2, 3), padding=((1, 2), (0, 1)))),
    ((3, 24, 9), (24, 1, 5), dict(lhs_dilation=(2,), padding=((2, 3),))),
]
STRIDED = [
    ((2, 4, 6, 7, 8), (4, 8, 3, 3, 3), dict(window_strides=(2, 2, 2), padding=((1, 1),) * 3)),
    ((2, 8, 9, 10), (8, 4, 3, 2), dict(window_strides=(2, 3), padding=((0, 1), (1, 1)))),
]


def _convolved(x: Any, w: Any, settings: dict[str, Any]) -> Any:
    spatial = "DHW"[-(x.ndim - 2) :]
    arguments = {"window_strides": (1,) * len(spatial), **settings}
    return lax.conv_general_dilated(
        x, w, **arguments, dimension_numbers=(f"NC{spatial}", f"IO{spatial}", f"NC{spatial}")
    )


def _graph_of(x: np.ndarray, w: np.ndarray, settings: dict[str, Any], policy: Policy | None) -> Graph:
    def loss(both: Any) -> Any:
        found = _convolved(lnp.tanh(both[0]), both[1], settings)
        return 3 * lnp.sum(lnp.sin(found).astype("float32")), found

    def function(x: Any, w: Any) -> Any:
        if policy is None:
            gradient = lx.value_and_grad(loss, has_aux=True)
        else:
            gradient = mixed_precision.value_and_grad(loss, policy=policy, has_aux=True)
        (_, found), gradients = gradient((x, w))
        return found, *gradients

    return simplify(inline_calls(lx.trace(function)(x, w)))


@pytest.fixture(autouse=True)
def of_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "_LIMITS", PhaseLimits(least_products=0))


@each_value(sizes=[*TRANSPOSED, *STRIDED], dtype=["float32", "bfloat16"])
def test_values_and_gradients_are_those_of_the_interpreter(
    sizes: tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]], dtype: str
) -> None:
    """A driver for a processor takes half a minute for the first of them in bfloat16, and a second in float32."""
    shape, weights, settings = sizes
    policy = Policy("float32", "bfloat16", "float32") if dtype == "bfloat16" else None
    x, w = (RANDOM.normal(size=each, scale=0.5).astype(np.float32) for each in (shape, weights))
    graph = _graph_of(x, w, settings, policy)
    device = backend_with(kind="gpu")
    assert any(node.op == "unshear" for node in prepare(graph, device.target).nodes)
    bound = 2e-6 if policy is None else 2e-2
    found, wanted = run(graph, [x, w], device=device), interpret(graph, x, w)
    for got, want in zip(found, wanted, strict=True):
        want = np.asarray(want, np.float64)
        np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=0, atol=bound * np.abs(want).max())


@pytest.mark.parametrize(("period", "dilation"), [(2, 2), (4, 6), (3, 2), (2, 3)])
def test_windows_that_are_dilated_have_neighbours_in_a_phase(period: int, dilation: int) -> None:
    """Also where the dilation and the distance of the image's elements have a factor in common, or are equal."""
    settings = {"lhs_dilation": (period,), "rhs_dilation": (dilation,), "padding": ((5, 8),)}
    x, w = (RANDOM.normal(size=each).astype(np.float32) for each in ((2, 16, 9), (16, 3, 4)))
    graph = _graph_of(x, w, settings, None)
    for got, want in zip(run(graph, [x, w], device=backend_with(kind="gpu")), interpret(graph, x, w), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max())
