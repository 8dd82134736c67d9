"""What derivatives cost, counted in operations of kernels weighted by elements, against the function itself."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from tests.passes.lowering import program_of_function
from tests.passes.reports.test_cost import cost_of

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return (RANDOM.normal(size=shape) / max(1, shape[-1]) ** 0.5).astype("f")


def perceptron(weights: Any, x: Any) -> Any:
    *hidden, last = weights
    for weight, bias in hidden:
        x = nn.relu(x @ weight + bias)
    weight, bias = last
    return -lnp.mean(nn.log_softmax(x @ weight + bias)[:, 0])


def convolution_net(weights: Any, x: Any) -> Any:
    first, second, last = weights
    x = nn.relu(nn.conv(x, first, padding="SAME"))
    x = nn.max_pool(nn.relu(nn.conv(x, second, 2, "SAME")), (2, 2))
    return lnp.mean(lnp.mean(x, axis=(2, 3)) @ last)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + lnp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def attention_block(weights: Any, x: Any) -> Any:
    """Two heads, a residual, and a layer of a network behind."""
    batch, length, width = x.shape
    q, k, v = (
        lnp.reshape(x @ weight, (batch, length, 2, width // 2)).transpose(0, 2, 1, 3) for weight in weights["qkv"]
    )
    scores = lnp.einsum("bhqd,bhkd->bhqk", q, k) / (width // 2) ** 0.5
    mixed = lnp.einsum("bhqk,bhkd->bhqd", nn.softmax(scores), v)
    x = x + lnp.reshape(mixed.transpose(0, 2, 1, 3), (batch, length, width)) @ weights["out"]
    return lnp.mean((x + gelu(x @ weights["up"]) @ weights["down"]) ** 2)


NETWORKS: dict[str, tuple[Callable[..., Any], Any, np.ndarray]] = {
    "perceptron": (
        perceptron,
        [(normal(64, 128), normal(128)), (normal(128, 128), normal(128)), (normal(128, 10), normal(10))],
        normal(32, 64),
    ),
    "convolution net": (
        convolution_net,
        (normal(16, 3, 3, 3), normal(32, 16, 3, 3), normal(32, 10)),
        normal(4, 3, 16, 16),
    ),
    "attention block": (
        attention_block,
        {
            "qkv": [normal(32, 32) for _ in range(3)],
            "out": normal(32, 32),
            "up": normal(32, 128),
            "down": normal(128, 32),
        },
        normal(4, 24, 32),
    ),
}


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], Any, np.ndarray]:
    return NETWORKS[request.param]


def test_a_gradient_costs_at_most_four_times_the_function(network: Any) -> None:
    function, weights, x = network
    forward = cost_of(function, weights, x).operations
    by_weights = cost_of(lx.value_and_grad(function), weights, x).operations
    by_everything = cost_of(lx.value_and_grad(function, argnums=(0, 1)), weights, x).operations
    assert forward < by_weights <= by_everything <= 4 * forward, (forward, by_weights, by_everything)


def test_a_directional_derivative_costs_at_most_three_times_the_function(network: Any) -> None:
    function, weights, x = network
    forward = cost_of(function, weights, x).operations
    push = cost_of(lambda w, x, t, u: lx.jvp(function, (w, x), (t, u)), weights, x, weights, x).operations
    assert forward < push <= 3 * forward, (forward, push)


def test_a_hessian_is_one_program() -> None:
    def function(parameters: Any, x: Any) -> Any:
        hidden = lnp.tanh(x @ parameters[:90].reshape(9, 10))
        return lnp.mean((hidden @ parameters[90:]) ** 2)

    parameters, x = normal(100), normal(7, 9)
    hessian = lx.compile(lx.hessian(function))
    expected = np.asarray(hessian(parameters, x))
    before = lx.profiler.counters()
    matrix = hessian(parameters, x).block_until_ready()
    after = lx.profiler.counters()  # a download may be a submission of its own
    found = np.asarray(matrix)
    assert after["submits"] - before["submits"] == 1 and after["traces"] == before["traces"]
    np.testing.assert_array_equal(found, expected)
    assert found.shape == (100, 100)
    np.testing.assert_allclose(found, found.T, atol=1e-6)
    step, place = 1e-2, 17
    around = [np.asarray(lx.grad(function)(parameters + s * step * np.eye(100, dtype="f")[place], x)) for s in (1, -1)]
    np.testing.assert_allclose(found[place], (around[0] - around[1]) / (2 * step), atol=1e-3)


def test_the_hessian_of_many_parameters_is_no_longer_program() -> None:
    def kernels(count: int) -> int:
        function = lx.hessian(lambda p: lnp.sum(lnp.tanh(p) ** 3) * lnp.sum(p**2))
        return len(program_of_function(function, np.zeros(count, "f")).steps)

    assert kernels(10) == kernels(100)
