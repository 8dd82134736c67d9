"""Schedules that fall: by a cosine, a power of a number, or the inverse square root of the steps."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax.optim.schedules.polynomials import Schedule, constant_schedule, steps


def cosine_decay_schedule(init_value: Any, decay_steps: float, alpha: Any = 0.0, exponent: Any = 1.0) -> Schedule:
    """From `init_value` to `alpha` times it by half a cosine over `decay_steps` (Loshchilov and Hutter 2017).

    The cosine, from 1 to 0, is taken to the power `exponent`. Raises ValueError for steps of 0 or less.
    """
    if not decay_steps > 0:
        raise ValueError(f"cosine_decay_schedule: decay_steps must be positive, got {decay_steps}")

    def schedule(count: Any) -> Any:
        done = lnp.minimum(steps(count), decay_steps) / decay_steps
        share = 0.5 * (1 + lnp.cos(math.pi * done))
        if not (isinstance(exponent, (int, float)) and exponent == 1):
            share = share**exponent
        return init_value * ((1 - alpha) * share + alpha)

    return schedule


def exponential_decay(
    init_value: Any, transition_steps: int, decay_rate: Any, transition_begin: int = 0, staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """init_value · decay_rate^(s/transition_steps), s counted from `transition_begin`, as far as `end_value`.

    `staircase` takes whole numbers of s/transition_steps only. It stays `init_value` if the rate is 0 or the steps are
    0 or less.
    """
    if transition_steps <= 0 or (isinstance(decay_rate, (int, float)) and decay_rate == 0):
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Any:
        since = steps(count) - begin
        exponent = lnp.maximum(since, 0) / transition_steps
        value = init_value * lnp.power(decay_rate, lnp.floor(exponent) if staircase else exponent)
        if end_value is None:
            return value
        return lnp.where(decay_rate < 1, lnp.maximum(value, end_value), lnp.minimum(value, end_value))

    return schedule


def inverse_sqrt_schedule(peak_value: Any, warmup_steps: int, init_value: Any = 0.0) -> Schedule:
    """Linear to `peak_value`, then peak_value · √(warmup_steps / s) (Vaswani et al. 2017, section 5.3).

    Raises ValueError for a warm-up of less than one step.
    """
    if warmup_steps < 1:
        raise ValueError(f"inverse_sqrt_schedule: warmup_steps must be at least 1, got {warmup_steps}")

    def schedule(count: Any) -> Any:
        done = steps(count)
        rising = init_value + (peak_value - init_value) * (done / warmup_steps)
        return lnp.where(done < warmup_steps, rising, peak_value * lnp.sqrt(warmup_steps / lnp.maximum(done, 1)))

    return schedule
