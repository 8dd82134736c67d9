"""The Mamba block: what it starts with, and what it sees."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
from lavax import nn
from tests.lavax.models.seeded import assert_close

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.random.default_rng(0).standard_normal((2, 9, 8)).astype(np.float32)


def test_tokens_see_those_before_them_alone() -> None:
    block = nn.Mamba(8, state_size=4, key=lx.random.key(0))
    changed = X.copy()
    changed[:, 5:] += 1
    ours, others = np.asarray(block(X)), np.asarray(block(changed))
    assert_close(others[:, :5], ours[:, :5], 1e-6)
    assert (np.abs(others - ours)[:, 5:].max(axis=-1) > 1e-4).all()


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_a_text_in_two_parts_gives_the_same(cut: int) -> None:
    block = nn.Mamba(8, state_size=4, key=lx.random.key(0))
    first, state = block.extend(X[:, :cut], block.empty_state(2))
    second, _ = block.extend(X[:, cut:], state)
    assert_close(np.concatenate([first, second], axis=1), block(X), 1e-5)


def test_steps_start_between_a_thousandth_and_a_tenth() -> None:
    block = nn.Mamba(64, key=lx.random.key(0))
    steps = np.log1p(np.exp(np.asarray(block.step.bias, np.float64)))
    assert 0.00099 < steps.min() < 0.003 and 0.05 < steps.max() < 0.1001
    assert_close(-np.exp(block.log_rates[0]), -np.arange(1, 17), 1e-6)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="state_size=0"):
        nn.Mamba(8, state_size=0, key=lx.random.key(0))
    with pytest.raises(lx.ShapeError, match=r"Mamba: x is \[B, T, 8\], got f32\[2,9,7\]"):
        nn.Mamba(8, key=lx.random.key(0))(X[..., :7])
