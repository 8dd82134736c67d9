"""A small problem for the tests of training: a line through points, by noisy gradients."""
from __future__ import annotations

from typing import Any

import numpy as np

import lavax as lx
import lavax.numpy as lnp
from lavax import data, nn, optim, random, train

DRAW = np.random.default_rng(0)
INPUTS = DRAW.standard_normal((50, 3)).astype("f")
TARGETS = (INPUTS @ np.array([[1.0], [-2.0], [0.5]]) + 0.3).astype("f")
OPTIMIZER = optim.adam(0.05)


def loss(model: Any, batch: Any, key: Any = None) -> Any:
    inputs, targets = batch
    if key is not None:
        inputs = inputs + 0.01 * random.normal(key, inputs.shape)
    error = model(inputs) - targets
    return lnp.mean(error**2), {"largest": lnp.max(lnp.abs(error))}


def loader(**settings: Any) -> data.Loader:
    return data.Loader((INPUTS, TARGETS), 8, shuffle=True, seed=5, **settings)


def state(noise: bool = True) -> train.State:
    model = nn.Linear(3, 1, key=lx.random.key(2))
    return train.initial_state(model, OPTIMIZER, key=lx.random.key(9) if noise else None)
