"""Choices of experts and the losses that balance them, against NumPy and recorded values of transformers."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
from lavax import nn

pytestmark = pytest.mark.usefixtures("reference_backend")

LOGITS = np.random.default_rng(0).standard_normal((2, 6, 5)).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    made = np.exp(x - x.max(axis=-1, keepdims=True))
    return made / made.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_likeliest_experts_are_chosen(k: int, normalize: bool) -> None:
    made = nn.route(LOGITS, k, normalize=normalize)
    order = np.argsort(-LOGITS, axis=-1)[..., :k]
    weights = np.take_along_axis(softmax(LOGITS), order, axis=-1)
    assert np.array_equal(made.experts, order)
    wanted = weights / weights.sum(axis=-1, keepdims=True) if normalize else weights
    assert np.allclose(made.weights, wanted, rtol=1e-5)


def balance(logits: np.ndarray, k: int, mask: np.ndarray) -> float:
    """By loops over tokens and experts."""
    tokens, probability = np.zeros(5), np.zeros(5)
    for row in logits[mask]:
        tokens[np.argsort(-row)[:k]] += 1
        probability += softmax(row)
    return float(5 * np.sum(tokens * probability) / mask.sum() ** 2)


@pytest.mark.parametrize("k", [1, 2])
def test_the_balance_of_tokens(k: int) -> None:
    mask = np.arange(6) < np.array([[6], [4]])
    everything = np.ones((2, 6), bool)
    assert float(nn.load_balancing_loss(LOGITS, k)) == pytest.approx(balance(LOGITS, k, everything), rel=1e-5)
    assert float(nn.load_balancing_loss(LOGITS, k, mask)) == pytest.approx(balance(LOGITS, k, mask), rel=1e-5)


def test_the_balance_is_least_if_experts_share_the_tokens() -> None:
    logits = 20 * np.eye(4, dtype=np.float32)
    assert float(nn.load_balancing_loss(logits, 1)) == pytest.approx(1, rel=1e-5)
    assert float(nn.load_balancing_loss(logits[:1], 1)) == pytest.approx(4, rel=1e-5)


def test_gradients_of_the_balance_lead_to_experts_with_few_tokens() -> None:
    found = np.asarray(lx.grad(lambda x: nn.load_balancing_loss(x, 1))(np.array([[2.0, 1.0], [1.0, 0.0]], np.float32)))
    assert (found[:, 0] > 0).all() and (found[:, 1] < 0).all()


def test_large_logits_cost() -> None:
    wanted = np.mean(np.log(np.exp(LOGITS).sum(axis=-1)) ** 2)
    assert float(nn.router_z_loss(LOGITS)) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("k", [0, 6])
def test_a_number_of_experts_that_there_are_not_is_named(k: int) -> None:
    with pytest.raises(lx.ShapeError, match=f"route: k={k} must be between 1 and the number of experts, 5"):
        nn.route(LOGITS, k)
