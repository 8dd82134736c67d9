"""The mixture-of-experts layer against loops over tokens, by both ways of evaluation."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from tests.lavax.models.seeded import assert_close

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.random.default_rng(0).standard_normal((3, 5, 6)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).standard_normal(X.shape).astype(np.float32)


def layer(**settings: Any) -> nn.MixtureOfExperts:
    return nn.MixtureOfExperts(6, 8, experts=4, k=2, key=lx.random.key(0), **settings)


def by_loops(made: nn.MixtureOfExperts, x: np.ndarray, room: int) -> np.ndarray:
    """Each token by itself; experts take `room` tokens, first choices before second ones."""
    tokens = x.reshape(-1, x.shape[-1]).astype(np.float64)
    parts = made.router.weight, made.gate, made.up, made.down
    router, gate, up, down = (np.asarray(part, np.float64) for part in parts)
    logits = tokens @ router.T
    chances = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    order = np.argsort(-logits, axis=-1)[:, : made.k]
    result, taken = np.zeros_like(tokens), np.zeros(len(gate), int)
    for choice in range(made.k):
        for index, token in enumerate(tokens):
            expert = order[index, choice]
            taken[expert] += 1
            if taken[expert] > room:
                continue
            weight = chances[index, expert] / (chances[index, order[index]].sum() if made.normalize else 1)
            gated = gate[expert] @ token
            result[index] += weight * down[expert] @ (gated / (1 + np.exp(-gated)) * (up[expert] @ token))
    return result.reshape(x.shape)


@pytest.mark.parametrize("normalize", [True, False])
def test_every_token_passes_through_its_experts(normalize: bool) -> None:
    made = layer(normalize=normalize)
    assert_close(made(X), by_loops(made, X, 100), 1e-5)
    assert_close(made(X[0, 0]), by_loops(made, X[0, 0], 100), 1e-5)


def test_few_tokens_fetch_their_experts() -> None:
    made = nn.MixtureOfExperts(6, 8, experts=12, k=2, key=lx.random.key(0))
    few = X[0, :2]
    assert_close(made(few), by_loops(made, few, 100), 1e-5)
    programs = [lx.compile(made).lower(x).as_text("ir") for x in (few, X)]
    assert [("f32[2,2,8,6]" in text) for text in programs] == [True, False]

    def loss(made: nn.MixtureOfExperts, x: np.ndarray) -> Any:
        return lnp.sum(made(x) * WEIGHTS[0, :2])

    ours, wanted = (lx.grad(loss)(each, few) for each in (made, made.replace(capacity_factor=12.0)))
    for one, other in zip(lx.tree.leaves(ours), lx.tree.leaves(wanted), strict=True):
        assert_close(one, other, 1e-5)


@pytest.mark.parametrize("factor", [0.3, 0.8, 1.25])
def test_experts_take_as_many_tokens_as_they_have_room_for(factor: float) -> None:
    made = layer(capacity_factor=factor)
    room = math.ceil(factor * 2 * 15 / 4)
    wanted = by_loops(made, X, room)
    assert_close(made(X), wanted, 1e-5)
    assert (not np.allclose(wanted, by_loops(made, X, 100))) == (factor < 1)


def loss(made: nn.MixtureOfExperts, x: np.ndarray) -> Any:
    return lnp.sum(WEIGHTS * made(x)) + 0.1 * nn.load_balancing_loss(made.router(x), made.k)


def test_both_ways_have_the_same_gradients() -> None:
    made = layer()
    roomy = made.replace(capacity_factor=4.0)
    ours, others = (lx.grad(loss, argnums=(0, 1))(each, X) for each in (made, roomy))
    for one, other in zip(lx.tree.leaves(ours), lx.tree.leaves(others), strict=True):
        assert_close(one, other, 1e-5)


@pytest.mark.parametrize("factor", [None, 0.8])
def test_gradients_are_differences(factor: float | None) -> None:
    made = layer(capacity_factor=factor)
    found = lx.grad(loss)(made, X)
    direction = lx.tree.map(lambda leaf: np.random.default_rng(2).standard_normal(leaf.shape).astype(np.float32), made)
    slope = sum(float(lnp.sum(a * b)) for a, b in zip(lx.tree.leaves(found), lx.tree.leaves(direction), strict=True))

    def along(step: float) -> float:
        return float(loss(lx.tree.map(lambda leaf, change: leaf + step * change, made, direction), X))

    assert slope == pytest.approx((along(1e-3) - along(-1e-3)) / 2e-3, rel=1e-2)


def test_a_bfloat16_layer_gives_bfloat16() -> None:
    for factor in (None, 1.0):
        assert layer(dtype="bfloat16", capacity_factor=factor)(lnp.asarray(X, "bfloat16")).dtype == "bfloat16"


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="k=5 must be between 1 and experts=4"):
        nn.MixtureOfExperts(6, 8, experts=4, k=5, key=lx.random.key(0))
    with pytest.raises(ValueError, match="capacity_factor=0 must be positive"):
        layer(capacity_factor=0)
    with pytest.raises(lx.ShapeError, match=r"x is \[..., 6\], got f32\[7\]"):
        layer()(np.zeros(7, np.float32))
