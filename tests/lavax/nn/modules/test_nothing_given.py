"""Sequences without tokens and batches without rows: results are empty, and states stay as they are."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn

pytestmark = pytest.mark.usefixtures("reference_backend")

KEY = lx.random.key(0)
LAYERS: dict[str, Callable[[], Any]] = {
    "Mamba": lambda: nn.Mamba(4, key=KEY),
    "Mamba2": lambda: nn.Mamba2(4, state_size=4, head_size=4, groups=2, key=KEY),
    "LSTM": lambda: nn.LSTM(4, 4, key=KEY),
    "GRU": lambda: nn.GRU(4, 4, key=KEY),
    "RNN": lambda: nn.RNN(4, 4, key=KEY),
    "MultiHeadAttention": lambda: nn.MultiHeadAttention(4, 2, key=KEY),
    "Linear": lambda: nn.Linear(4, 4, key=KEY),
    "LayerNorm": lambda: nn.LayerNorm(4),
}


# An attention's query without a key has no result, and is refused.
@pytest.mark.parametrize(
    ("name", "shape"),
    [(name, shape) for name in LAYERS for shape in [(0, 3, 4), (2, 0, 4)] if name != "MultiHeadAttention" or shape[1]],
)
def test_layers_of_tokens(name: str, shape: tuple[int, ...]) -> None:
    found = LAYERS[name]()(lnp.ones(shape))
    assert lx.tree.leaves(found)[0].shape == shape


@pytest.mark.parametrize("name", ["Mamba", "Mamba2"])
def test_states_stay(name: str) -> None:
    layer = LAYERS[name]()
    _, state = layer.extend(lnp.cos(lnp.arange(24.0).reshape(2, 3, 4)), layer.empty_state(2))
    found, kept = layer.extend(lnp.ones((2, 0, 4)), state)
    assert found.shape == (2, 0, 4)
    for before, after in zip(lx.tree.leaves(state), lx.tree.leaves(kept), strict=True):
        np.testing.assert_array_equal(after, before)


def test_state_spaces_give_the_state_they_were_given() -> None:
    none, rates, state = lnp.zeros((2, 0, 3)), lnp.ones((3, 4)), lnp.arange(24.0).reshape(2, 3, 4)
    numbers = lnp.zeros((2, 0, 4))
    made, last = nn.selective_scan(none.astype("bfloat16"), none, rates, numbers, numbers, lnp.ones(3), state)
    assert (made.shape, made.dtype, last.dtype) == ((2, 0, 3), "bfloat16", "float32")
    np.testing.assert_array_equal(last, state)
    slope = lx.grad(lambda s: lnp.sum(lnp.sin(nn.selective_scan(none, none, rates, numbers, numbers, None, s)[1])))
    np.testing.assert_allclose(slope(state), np.cos(np.asarray(state)), rtol=1e-6)
    np.testing.assert_array_equal(nn.selective_scan(none, none, rates, numbers, numbers)[1], np.zeros((2, 3, 4)))

    heads, groups, states = lnp.zeros((2, 0, 4, 3)), lnp.zeros((2, 0, 2, 5)), lnp.arange(120.0).reshape(2, 4, 3, 5)
    made, last = nn.state_space_duality(heads, heads[..., 0], lnp.ones(4), groups, groups, lnp.ones(4), states)
    assert made.shape == (2, 0, 4, 3)
    np.testing.assert_array_equal(last, states)
    of_none = nn.state_space_duality(heads, heads[..., 0], lnp.ones(4), groups, groups)[1]
    np.testing.assert_array_equal(of_none, np.zeros((2, 4, 3, 5)))


@pytest.mark.parametrize("shape", [(0, 4, 3, 3), (2, 4, 0, 3)])
def test_layers_of_images(shape: tuple[int, ...]) -> None:
    x = lnp.ones(shape)
    assert nn.group_norm(x, 2).shape == shape
    assert nn.Flatten()(x).shape == (shape[0], int(np.prod(shape[1:])))
