"""Schedules that go from one value to another by a power of the steps left, or stay."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lavax.numpy as lnp

Schedule = Callable[[Any], Any]


def steps(count: Any) -> Any:
    """Steps done, an integer or an array of rank 0, as float32."""
    return lnp.astype(lnp.asarray(count), lnp.float32)


def constant_schedule(value: Any) -> Schedule:
    """`value` at every step."""
    return lambda count: value


def polynomial_schedule(
    init_value: Any, end_value: Any, power: Any, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """(init_value - end_value) · (1 - s/transition_steps)^power + end_value, s counted from `transition_begin`.

    With `transition_steps` of 0 or less it stays `init_value`.
    """
    if transition_steps <= 0:
        return constant_schedule(init_value)
    begin = max(transition_begin, 0)

    def schedule(count: Any) -> Any:
        left = 1 - lnp.clip(steps(count) - begin, 0, transition_steps) / transition_steps
        share = left if isinstance(power, (int, float)) and power == 1 else left**power
        return (init_value - end_value) * share + end_value

    return schedule


def linear_schedule(init_value: Any, end_value: Any, transition_steps: int, transition_begin: int = 0) -> Schedule:
    """From `init_value` to `end_value` in `transition_steps` even steps, after `transition_begin` steps."""
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def warmup_constant_schedule(init_value: Any, peak_value: Any, warmup_steps: int) -> Schedule:
    """Linear to `peak_value`, which stays."""
    return linear_schedule(init_value, peak_value, warmup_steps)
