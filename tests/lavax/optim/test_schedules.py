"""Schedules at many steps: against recorded values, and against optax where it is installed."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lavax as lx
import lavax.numpy as lnp
from lavax import optim

pytestmark = pytest.mark.usefixtures("reference_backend")
STEPS = (0, 1, 7, 10, 30, 64, 85, 99, 100, 101, 250)

# (name, its arguments, values of optax 0.2.8 at STEPS)
CASES: list[tuple[str, dict[str, Any], list[float]]] = [
    (
        "constant_schedule",
        {"value": 0.25},
        [
            0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25,
        ],
    ),
    (
        "linear_schedule",
        {"init_value": 1.0, "end_value": 0.1, "transition_steps": 90, "transition_begin": 5},
        [
            1.0, 1.0, 0.98, 0.95, 0.75, 0.41, 0.2, 0.1, 0.1, 0.1, 0.1,
        ],
    ),
    (
        "polynomial_schedule",
        {"init_value": 1.0, "end_value": 0.1, "power": 2.5, "transition_steps": 100},
        [
            1.0, 0.9776685, 0.8506715, 0.79159, 0.4689671, 0.169984, 0.1078428, 0.100009, 0.1, 0.1, 0.1,
        ],
    ),
    (
        "polynomial_schedule",
        {"init_value": 1.0, "end_value": 0.1, "power": 2, "transition_steps": 0},
        [
            1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0,
        ],
    ),
    (
        "cosine_decay_schedule",
        {"init_value": 0.5, "decay_steps": 100},
        [
            0.5, 0.4998766, 0.4939792, 0.4877641, 0.3969463, 0.1435552, 0.02724838, 0.0001233667, 0.0, 0.0, 0.0,
        ],
    ),
    (
        "cosine_decay_schedule",
        {"init_value": 0.5, "decay_steps": 90, "alpha": 0.1, "exponent": 1.5},
        [
            0.5, 0.4997944, 0.4900121, 0.4798005, 0.3422836, 0.08790866, 0.05029792, 0.05, 0.05, 0.05, 0.05,
        ],
    ),
    (
        "exponential_decay",
        {"init_value": 1.0, "transition_steps": 10, "decay_rate": 0.8},
        [
            1.0, 0.9779328, 0.8553877, 0.8, 0.512, 0.2397596, 0.15006, 0.1097971, 0.1073742, 0.1050047,
            0.003777895,
        ],
    ),
    (
        "exponential_decay",
        {"init_value": 1.0, "transition_steps": 10, "decay_rate": 0.8, "transition_begin": 5, "staircase": True,
        "end_value": 0.2},
        [
            1.0, 1.0, 1.0, 1.0, 0.64, 0.32768, 0.2, 0.2, 0.2, 0.2, 0.2,
        ],
    ),
    (
        "exponential_decay",
        {"init_value": 1.0, "transition_steps": 50, "decay_rate": 1.5, "end_value": 2.0},
        [
            1.0, 1.008142, 1.058407, 1.084472, 1.275424, 1.680339, 1.992302, 2.0, 2.0, 2.0, 2.0,
        ],
    ),
    (
        "piecewise_constant_schedule",
        {"init_value": 1.0, "boundaries_and_scales": {10: 0.5, 85: 0.1}},
        [
            1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.05, 0.05,
        ],
    ),
    (
        "piecewise_interpolate_schedule",
        {"interpolate_type": "linear", "init_value": 1.0, "boundaries_and_scales": {10: 0.5, 85: 0.1}},
        [
            1.0, 0.95, 0.65, 0.5, 0.38, 0.176, 0.05, 0.05, 0.05, 0.05, 0.05,
        ],
    ),
    (
        "piecewise_interpolate_schedule",
        {"interpolate_type": "cosine", "init_value": 1.0, "boundaries_and_scales": {10: 2.0, 85: 0.1}},
        [
            1.0, 1.024472, 1.793893, 2.0, 1.702217, 0.5263183, 0.2, 0.2, 0.2, 0.2, 0.2,
        ],
    ),
    (
        "linear_onecycle_schedule",
        {"transition_steps": 100, "peak_value": 0.1},
        [
            0.004, 0.0072, 0.0264, 0.036, 0.1, 0.04065455, 0.004, 0.00026704, 4e-07, 4e-07, 4e-07,
        ],
    ),
    (
        "cosine_onecycle_schedule",
        {"transition_steps": 100, "peak_value": 0.1},
        [
            0.004000001, 0.004262954, 0.01632905, 0.028, 0.1, 0.05224343, 0.01090878, 5.074486e-05, 4e-07,
            4e-07, 4e-07,
        ],
    ),
    (
        "warmup_constant_schedule",
        {"init_value": 0.01, "peak_value": 0.1, "warmup_steps": 30},
        [
            0.009999998, 0.013, 0.031, 0.04, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1,
        ],
    ),
    (
        "warmup_cosine_decay_schedule",
        {"init_value": 0.0, "peak_value": 0.1, "warmup_steps": 10, "decay_steps": 100, "end_value": 0.01},
        [
            0.0, 0.01000001, 0.07, 0.1, 0.089472, 0.04109423, 0.01602885, 0.01002741, 0.01, 0.01, 0.01,
        ],
    ),
    (
        "warmup_exponential_decay_schedule",
        {"init_value": 0.0, "peak_value": 0.1, "warmup_steps": 10, "transition_steps": 20, "decay_rate": 0.5},
        [
            0.0, 0.01000001, 0.07, 0.1, 0.05, 0.01538931, 0.007432544, 0.004575269, 0.004419418, 0.004268875,
            2.441406e-05,
        ],
    ),
    (
        "sgdr_schedule",
        {"cosine_kwargs": [{"init_value": 0.0, "peak_value": 0.1, "warmup_steps": 5, "decay_steps": 40},
        {"init_value": 0.02, "peak_value": 0.05, "warmup_steps": 10, "decay_steps": 60}]},
        [
            0.0, 0.02, 0.09919649, 0.09504844, 0.01882551, 0.0409356, 0.01030536, 4.933179e-05, 0.0, 0.0, 0.0,
        ],
    ),
]
NAMES = [f"{name}-{number}" for number, (name, _, _) in enumerate(CASES)]


def values(schedule: Any) -> list[float]:
    return [float(schedule(lnp.asarray(step, lnp.int32))) for step in STEPS]


@pytest.mark.parametrize(("name", "arguments", "recorded"), CASES, ids=NAMES)
def test_recorded_values(name: str, arguments: dict[str, Any], recorded: list[float]) -> None:
    # A cosine near its zero is off by a unit of 1, not of itself.
    np.testing.assert_allclose(values(getattr(optim, name)(**arguments)), recorded, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize(("name", "arguments", "recorded"), CASES, ids=NAMES)
def test_every_step_as_in_optax(name: str, arguments: dict[str, Any], recorded: list[float]) -> None:
    optax = pytest.importorskip("optax", reason="optax is the oracle; recorded values stand in")
    steps = np.arange(0, 130, 3)
    ours = lx.vmap(getattr(optim, name)(**arguments))(steps) if name != "constant_schedule" else 0.25
    theirs = [float(getattr(optax, name)(**arguments)(int(step))) for step in steps]
    np.testing.assert_allclose(np.broadcast_to(np.asarray(ours), steps.shape), theirs, rtol=2e-6, atol=1e-7)


def test_the_inverse_square_root_meets_its_peak_after_the_warm_up() -> None:
    found = values(optim.inverse_sqrt_schedule(0.2, 10))
    expected = [0.2 * min(step / 10, (10 / max(step, 1)) ** 0.5) for step in STEPS]  # the paper's minimum
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_restarts_double_the_period_and_lower_the_peak() -> None:
    schedule = optim.cosine_decay_restarts_schedule(0.8, 10, 2, t_mul=2.0, m_mul=0.5)
    found = [float(schedule(step)) for step in (0, 5, 10, 20, 30, 50, 70, 90)]
    np.testing.assert_allclose(found, [0.8, 0.4, 0.4, 0.2, 0.2, 0.1, 0, 0], atol=1e-7)


def test_joined_schedules_count_from_their_boundaries() -> None:
    joined = optim.join_schedules([optim.constant_schedule(1.0), optim.linear_schedule(0.0, 1.0, 10)], [5])
    assert [float(joined(step)) for step in (0, 4, 5, 10, 15, 99)] == [1, 1, 0, 0.5, 1, 1]


def test_an_optimizer_follows_its_schedule_within_one_compiled_step() -> None:
    optimizer = optim.sgd(optim.piecewise_constant_schedule(1.0, {2: 0.5, 3: 0.5}))

    @lx.compile(donate_argnums=(0, 1))
    def step(param: Any, state: Any) -> Any:
        updates, state = optimizer.update(lnp.ones(()), state, param)
        return optim.apply_updates(param, updates), state

    param, state, path = np.float32(10), optimizer.init(np.float32(10)), []
    for _ in range(5):
        param, state = step(param, state)
        path.append(float(param))
    assert path == [9, 8, 7.5, 7.25, 7.0]
    assert state.count.dtype == lnp.int32 and int(state.count) == 5


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: optim.cosine_decay_schedule(1.0, 0), "cosine_decay_schedule: decay_steps .* got 0"),
        (lambda: optim.linear_onecycle_schedule(0, 1.0), "linear_onecycle_schedule: transition_steps"),
        (lambda: optim.piecewise_constant_schedule(1.0, {3: -1.0}), "scales .* got -1.0 at step 3"),
        (lambda: optim.piecewise_interpolate_schedule("cubic", 1.0), "'cubic'"),
        (lambda: optim.join_schedules([optim.constant_schedule(1.0)], [3]), "0 boundaries, got 1"),
        (lambda: optim.inverse_sqrt_schedule(1.0, 0), "warmup_steps"),
        (lambda: optim.cosine_decay_restarts_schedule(1.0, 10, -1), "restarts .* got -1"),
    ],
)
def test_what_cannot_be(call: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
