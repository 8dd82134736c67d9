"""Linear recurrences, selective state spaces and those of heads against loops over time."""
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


def test_recurrences_of_no_steps_are_empty() -> None:
    none, start = draw(2, 0, 3), draw(2, 3)
    assert nn.linear_recurrence(none, none, start).shape == (2, 0, 3)
    gradient = lx.grad(lambda a, start: lnp.sum(nn.linear_recurrence(a, a, start)), argnums=(0, 1))
    of_none, of_start = gradient(none, start)
    assert of_none.shape == (2, 0, 3)
    assert_close(of_start, np.zeros((2, 3)), 0)


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


# The state spaces of Mamba-2, by chunks, against a loop in float64.
BATCH, HEADS, GROUPS, CHANNELS, SIZE = 2, 4, 2, 3, 5
STATE = (BATCH, HEADS, CHANNELS, SIZE)


def head_operands(length: int) -> tuple[np.ndarray, ...]:
    """x, step, a, b, c, d and the state before."""
    tokens = (BATCH, length)
    return (
        draw(*tokens, HEADS, CHANNELS),
        np.abs(draw(*tokens, HEADS, seed=1)),
        -np.abs(draw(HEADS, seed=2)),
        draw(*tokens, GROUPS, SIZE, seed=3),
        draw(*tokens, GROUPS, SIZE, seed=4),
        draw(HEADS, seed=5),
        draw(*STATE, seed=6),
    )


def heads_by_loop(
    x: Any, step: Any, a: Any, b: Any, c: Any, d: Any, state: Any, stack: Any = np.stack
) -> tuple[Any, Any]:
    exp, repeat, sums = (lnp.exp, lnp.repeat, lnp.sum) if stack is lnp.stack else (np.exp, np.repeat, np.sum)
    b, c = (repeat(each, HEADS // GROUPS, axis=2) for each in (b, c))
    made = []
    for time in range(x.shape[1]):
        decay = exp(step[:, time] * a)[..., None, None]
        state = decay * state + (step[:, time, :, None] * x[:, time])[..., None] * b[:, time, :, None]
        made.append(sums(state * c[:, time, :, None], axis=-1) + d[:, None] * x[:, time])
    return stack(made, axis=1), state


@pytest.mark.parametrize(("length", "chunk"), [(1, 256), (2, 1), (5, 5), (7, 3), (8, 4), (9, 2), (13, 256)])
def test_chunks_are_those_of_a_loop(length: int, chunk: int) -> None:
    given = head_operands(length)
    y, last = nn.state_space_duality(*given, chunk=chunk)
    wanted, wanted_last = heads_by_loop(*(each.astype(np.float64) for each in given))
    assert_close(y, wanted, 1e-5)
    assert_close(last, wanted_last, 1e-5)
    *others, d, _ = given
    y, last = nn.state_space_duality(*others, chunk=chunk)
    wanted, wanted_last = heads_by_loop(*others, np.zeros_like(d), np.zeros(STATE))
    assert_close(y, wanted, 1e-5)
    assert_close(last, wanted_last, 1e-5)


@pytest.mark.parametrize(("length", "chunk"), [(1, 4), (7, 3), (5, 256)])
def test_derivatives_of_chunks_are_those_of_a_loop(length: int, chunk: int) -> None:
    given = tuple(map(lnp.asarray, head_operands(length)))
    weights, last_weights = draw(BATCH, length, HEADS, CHANNELS, seed=7), draw(*STATE, seed=8)

    def loss(y: Any, last: Any) -> Any:
        return lnp.sum(weights * lnp.sin(y)) + lnp.sum(last_weights * lnp.sin(last))

    everything = tuple(range(len(given)))
    ours = lx.grad(lambda *x: loss(*nn.state_space_duality(*x, chunk=chunk)), argnums=everything)(*given)
    wanted = lx.grad(lambda *x: loss(*heads_by_loop(*x, stack=lnp.stack)), argnums=everything)(*given)
    for name, found, each in zip(["x", "step", "a", "b", "c", "d", "state"], ours, wanted, strict=True):
        assert_close(found, each, 2e-5, name)


def test_small_decays_after_a_large_one_are_exact() -> None:
    """After a token with a step of 2000, the logarithms of all later decays are 2000 and something."""
    x, step, a, b, c, d, state = head_operands(6)
    step = np.where(np.arange(6)[:, None] == 1, 2000, 1e-3 * step).astype(np.float32)
    y, _ = nn.state_space_duality(x, step, a, b, c, d, state)
    wanted, _ = heads_by_loop(*(each.astype(np.float64) for each in (x, step, a, b, c, d, state)))
    assert_close(np.asarray(y)[:, 2:], wanted[:, 2:], 1e-6)


def test_a_step_of_zero_leaves_the_states_of_heads() -> None:
    x, step, *others, state = head_operands(5)
    assert np.array_equal(nn.state_space_duality(x, np.zeros_like(step), *others, state, chunk=2)[1], state)


def test_bfloat16_heads_keep_their_dtype_and_states_are_float32() -> None:
    y, last = nn.state_space_duality(*(lnp.asarray(x, "bfloat16") for x in head_operands(5)))
    assert (y.dtype, last.dtype) == ("bfloat16", "float32")


def test_bad_arguments_of_heads_are_named() -> None:
    x, step, a, b, c, d, state = head_operands(5)
    with pytest.raises(lx.ShapeError, match=r"state_space_duality: x is \[B, T, H, P\], step \[B, T, H\]"):
        nn.state_space_duality(x, step, a[:2], b, c, d, state)
    with pytest.raises(lx.ShapeError, match="G divides H"):
        nn.state_space_duality(x, step, a, b[:, :, [0, 1, 0]], c[:, :, [0, 1, 0]], d, state)
    with pytest.raises(ValueError, match="chunk is a number of tokens, got 0"):
        nn.state_space_duality(x, step, a, b, c, chunk=0)
