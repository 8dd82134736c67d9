"""The Mamba-2 block: what it starts with, and what it sees."""
from __future__ import annotations

import numpy as np
import pytest

import lavax as lx
from lavax import nn
from tests.lavax.models.seeded import assert_close

pytestmark = pytest.mark.usefixtures("reference_backend")

X = np.random.default_rng(0).standard_normal((2, 9, 8)).astype(np.float32)


def test_tokens_see_those_before_them_alone() -> None:
    block = nn.Mamba2(8, state_size=4, head_size=4, groups=2, chunk=4, key=lx.random.key(0))
    changed = X.copy()
    changed[:, 5:] += 1
    ours, others = np.asarray(block(X)), np.asarray(block(changed))
    assert_close(others[:, :5], ours[:, :5], 1e-6)
    assert (np.abs(others - ours)[:, 5:].max(axis=-1) > 1e-4).all()


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_a_text_in_two_parts_gives_the_same(cut: int) -> None:
    block = nn.Mamba2(8, state_size=4, head_size=4, groups=2, chunk=4, key=lx.random.key(0))
    first, state = block.extend(X[:, :cut], block.empty_state(2))
    second, _ = block.extend(X[:, cut:], state)
    assert_close(np.concatenate([first, second], axis=1), block(X), 1e-5)


def test_steps_start_between_a_thousandth_and_a_tenth() -> None:
    block = nn.Mamba2(64, head_size=1, key=lx.random.key(0))
    assert block.heads == 128
    steps = np.log1p(np.exp(np.asarray(block.step_bias, np.float64)))
    assert 0.00099 < steps.min() < 0.003 and 0.05 < steps.max() < 0.1001
    assert_close(np.exp(block.log_rates), np.arange(1, 129), 1e-6)


def test_a_token_after_the_longest_step_forgets_what_was_before() -> None:
    block = nn.Mamba2(8, state_size=4, head_size=4, step_limits=(200.0, 300.0), key=lx.random.key(0))
    changed = X.copy()
    changed[:, :3] += 1
    ours, others = np.asarray(block(X)), np.asarray(block(changed))
    assert (np.abs(others - ours)[:, :3].max(axis=-1) > 1e-4).all()
    assert_close(others[:, 6:], ours[:, 6:], 1e-6)  # the convolution sees 3 tokens back


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="state_size=0"):
        nn.Mamba2(8, state_size=0, key=lx.random.key(0))
    with pytest.raises(ValueError, match="groups=3 and chunk=256 must be positive, and groups divide heads"):
        nn.Mamba2(8, head_size=4, groups=3, key=lx.random.key(0))
    with pytest.raises(lx.ShapeError, match=r"Mamba2: x is \[B, T, 8\], got f32\[2,9,7\]"):
        nn.Mamba2(8, key=lx.random.key(0))(X[..., :7])
