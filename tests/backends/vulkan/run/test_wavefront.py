"""Loops on top of each other that take their turns together, on the device with a GPU's schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.passes.build.inline import inline_calls
from lavax.passes.simplify import simplify
from tests.backends.vulkan.run.execution import assert_agrees, backend_with

random = np.random.default_rng(4)
ROWS, WIDTH = 4, 64


def lstm(x: Any, w: Any) -> Any:
    def turn(state: Any, row: Any) -> Any:
        h, c = state
        i, f, g, o = lnp.split(row + h @ w, 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * lnp.tanh(g)
        h = nn.sigmoid(o) * lnp.tanh(c)
        return (h, c), h

    return lx.scan(turn, (lnp.zeros((ROWS, WIDTH)), lnp.ones((ROWS, WIDTH))), x)[1]


def layers(x: Any, *w: Any) -> Any:
    for inner, own in w:
        x = lstm(x @ inner, own)
    return x


def gradients(x: Any, *w: Any) -> Any:
    return lx.grad(lambda x, *w: lnp.sum(layers(lnp.sin(x), *w) * x[::-1]), argnums=(0, 1))(x, *w)


@pytest.mark.parametrize("function", [layers, gradients])
@pytest.mark.parametrize(("length", "count"), [(33, 2), (64, 3)])
def test_layers(function: Callable[..., Any], length: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lavax.backends.vulkan.target.slices_of", lambda scan, profile: 0)
    x = random.normal(size=(length, ROWS, WIDTH)).astype("f")
    shape = (WIDTH, 4 * WIDTH)
    w = [tuple(random.normal(size=shape, scale=0.1).astype("f") for _ in range(2)) for _ in range(count)]
    graph = simplify(inline_calls(lx.trace(function)(x, *w)))
    device = backend_with(kind="gpu")
    kernels = device.lower(graph).kernels
    assert sum(node.op == "wavefront" for node in kernels.graph.nodes) == (1 if function is layers else 2)
    assert_agrees(graph, [x, *(each for pair in w for each in pair)], device=device, ulps=64)
