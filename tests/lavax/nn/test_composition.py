"""Layers made of layers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from lavax.base.errors import ShapeError
from tests.closeness import close
from tests.lavax.numpy.arrays import sample

pytestmark = pytest.mark.usefixtures("reference_backend")


def test_an_mlp_is_its_matrices() -> None:
    model = nn.MLP(3, 2, 8, 2, final_activation=lnp.tanh, key=lx.random.key(0))
    x = sample((5, 3))
    hidden = x.astype(np.float64)
    for layer in model.layers[:-1]:
        hidden = np.maximum(hidden @ np.asarray(layer.weight).T + np.asarray(layer.bias), 0)
    last = model.layers[-1]
    expected = np.tanh(hidden @ np.asarray(last.weight).T + np.asarray(last.bias))
    close(model(x), expected)
    close(lx.vmap(model)(x), expected)
    close(lx.compile(lambda m, x: m(x))(model, x[0]), expected[0])
    assert len(model.layers) == 3
    linear = nn.MLP(3, 2, 8, 0, use_final_bias=False, key=lx.random.key(0))
    close(linear(x), x @ np.asarray(linear.layers[0].weight).T)
    with pytest.raises(ValueError, match="depth is the number of hidden layers"):
        nn.MLP(3, 2, 8, -1, key=lx.random.key(0))


def test_an_mlp_learns() -> None:
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    y = np.array([0, 1, 1, 0], np.float32)

    def loss(model: Any) -> Any:
        return nn.binary_cross_entropy_with_logits(model(x)[:, 0], y)

    @lx.compile
    def step(model: Any) -> Any:
        return lx.tree.map(lambda p, g: p - 0.5 * g, model, lx.grad(loss)(model))

    model = nn.MLP(2, 1, 16, 1, activation=lnp.tanh, key=lx.random.key(1))
    for _ in range(200):
        model = step(model)
    assert float(loss(model)) < 0.1


def test_a_sequence_hands_keys_to_the_layers_that_take_them() -> None:
    keys = lx.random.split(lx.random.key(0), 2)
    model = nn.Sequential([nn.Linear(4, 64, key=keys[0]), nn.relu, nn.Dropout(0.5), nn.Linear(64, 2, key=keys[1])])
    x = sample((3, 4))
    plain = model[3](nn.relu(model[0](x)))
    close(model(x), plain)
    key = lx.random.key(7)
    dropped = np.asarray(model(x, key=key))
    assert (dropped != np.asarray(plain)).any()
    close(dropped, model(x, key=key))
    close(model[:2](x), nn.relu(model[0](x)))
    assert len(model) == 4 and [type(layer).__name__ for layer in model] == ["Linear", "Lambda", "Dropout", "Linear"]
    assert [str(path) for path, _ in lx.tree.leaves_with_path(model)][:2] == ["layers.0.weight", "layers.0.bias"]


def test_identity_and_functions() -> None:
    close(nn.Identity()(sample((3,))), sample((3,)))
    assert float(nn.Lambda(lnp.sum)(np.ones(3, np.float32))) == 3
    assert lx.tree.structure(nn.Lambda(nn.relu)) is lx.tree.structure(nn.Lambda(nn.relu))


def test_axes_as_one() -> None:
    x = sample((2, 3, 4, 5))
    assert nn.Flatten()(x).shape == (2, 60)
    assert nn.Flatten(0, 1)(x).shape == (6, 4, 5)
    assert nn.Flatten()(x[:, :0]).shape == (2, 0)
    with pytest.raises(ShapeError, match=r"Flatten: axis 2 of f32\[2,3,4,5\] does not come before axis 1"):
        nn.Flatten(2, 1)(x)
