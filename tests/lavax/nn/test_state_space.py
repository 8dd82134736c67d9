"""Linear recurrences and selective state spaces against loops over time."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import nn
from tests.lavax.models.seeded import assert_close

pytestmark = pytest.mark.usefixtures("reference_backend")


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def by_loop(a: Any, b: Any, start: Any) -> list[Any]:
    states = [start]
    for time in range(b.shape[1]):
        states.append(a[:, time] * states[-1] + b[:, time])
    return states[1:]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 13])
def test_recurrences_are_those_of_a_loop(length: int) -> None:
    a, b, start = draw(2, length, 3), draw(2, length, 3, seed=1), draw(2, 3, seed=2)
    assert_close(nn.linear_recurrence(a, b, start), np.stack(by_loop(a, b, start), axis=1), 1e-6)
    assert_close(nn.linear_recurrence(a, b), np.stack(by_loop(a, b, np.zeros((2, 3))), axis=1), 1e-6)


@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_derivatives_are_those_of_a_loop(length: int) -> None:
    a, b, start, weights = (draw(2, length, 3, seed=seed) for seed in range(4))
    start = start[:, 0]

    def by_pairs(a: Any, b: Any, start: Any) -> Any:
        return lnp.sum(weights * nn.linear_recurrence(a, b, start) ** 2)

    def one_by_one(a: Any, b: Any, start: Any) -> Any:
        return lnp.sum(weights * lnp.stack(by_loop(a, b, start), axis=1) ** 2)

    for argument in range(3):
        ours, wanted = (lx.grad(function, argnums=argument)(a, b, start) for function in (by_pairs, one_by_one))
        assert_close(ours, wanted, 1e-5)
        along = [draw(*x.shape, seed=9) for x in (a, b, start)]
        ours, wanted = (
            lx.jvp(lx.grad(function, argnums=argument), (a, b, start), tuple(along))[1]
            for function in (by_pairs, one_by_one)
        )
        assert_close(ours, wanted, 1e-5)


def operands(length: int = 5) -> tuple[np.ndarray, ...]:
    x, step = draw(2, length, 3), np.abs(draw(2, length, 3, seed=1))
    return x, step, -np.abs(draw(3, 4, seed=2)), draw(2, length, 4, seed=3), draw(2, length, 4, seed=4), draw(3, seed=5)


def scan_by_loop(x: Any, step: Any, a: Any, b: Any, c: Any, d: Any, state: Any) -> tuple[np.ndarray, np.ndarray]:
    made = []
    for time in range(x.shape[1]):
        decay = np.exp(step[:, time, :, None] * a)
        state = decay * state + (step[:, time] * x[:, time])[..., None] * b[:, time, None]
        made.append((state * c[:, time, None]).sum(axis=-1) + d * x[:, time])
    return np.stack(made, axis=1), state


def test_state_spaces_are_those_of_a_loop() -> None:
    state = draw(2, 3, 4, seed=6)
    y, last = nn.selective_scan(*operands(), state)
    wanted, wanted_last = scan_by_loop(*operands(), state)
    assert_close(y, wanted, 1e-5)
    assert_close(last, wanted_last, 1e-5)


def test_a_step_of_zero_leaves_the_state() -> None:
    x, _, *others = operands()
    state = draw(2, 3, 4, seed=6)
    assert np.array_equal(nn.selective_scan(x, np.zeros_like(x), *others, state)[1], state)


def test_bfloat16_keeps_its_dtype_and_states_are_float32() -> None:
    y, last = nn.selective_scan(*(lnp.asarray(x, "bfloat16") for x in operands()))
    assert (y.dtype, last.dtype) == ("bfloat16", "float32")


def test_bad_shapes_are_named() -> None:
    with pytest.raises(lx.ShapeError, match=r"linear_recurrence: a and b are \[B, T, ...\] of one shape"):
        nn.linear_recurrence(draw(2, 3), draw(2, 4))
    x, step, a, b, c, d = operands()
    with pytest.raises(lx.ShapeError, match=r"selective_scan: x and step are \[B, T, channels\]"):
        nn.selective_scan(x, step, a.T, b, c, d)
