"""Schedules one after the other: warm-up and decay, and restarts."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.optim.schedules.decays import cosine_decay_schedule, exponential_decay
from lavax.optim.schedules.polynomials import Schedule, linear_schedule


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Each of `schedules` from its boundary on, counted from there; the first from step 0.

    Raises ValueError unless there is one boundary less than schedules.
    """
    if len(schedules) != len(boundaries) + 1:
        raise ValueError(
            f"join_schedules: {len(schedules)} schedules need {len(schedules) - 1} boundaries, got {len(boundaries)}"
        )

    def schedule(count: Any) -> Any:
        done = lnp.asarray(count)
        value: Any = schedules[0](done)
        for boundary, following in zip(boundaries, schedules[1:], strict=True):
            value = lnp.where(done < boundary, value, following(done - boundary))
        return value

    return schedule


def warmup_cosine_decay_schedule(
    init_value: Any, peak_value: Any, warmup_steps: int, decay_steps: int, end_value: Any = 0.0, exponent: Any = 1.0
) -> Schedule:
    """Linear to `peak_value`, then half a cosine to `end_value` at step `decay_steps`, which counts the warm-up too."""
    is_zero = isinstance(peak_value, (int, float)) and peak_value == 0
    alpha = 0.0 if is_zero else end_value / peak_value
    rise = linear_schedule(init_value, peak_value, warmup_steps)
    fall = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, alpha, exponent)
    return join_schedules([rise, fall], [warmup_steps])


def warmup_exponential_decay_schedule(
    init_value: Any, peak_value: Any, warmup_steps: int, transition_steps: int, decay_rate: Any,
    transition_begin: int = 0, staircase: bool = False, end_value: Any = None,
) -> Schedule:
    """Linear to `peak_value`, then `exponential_decay` from it."""
    rise = linear_schedule(init_value, peak_value, warmup_steps)
    fall = exponential_decay(peak_value, transition_steps, decay_rate, transition_begin, staircase, end_value)
    return join_schedules([rise, fall], [warmup_steps])


def sgdr_schedule(cosine_kwargs: Iterable[Mapping[str, Any]]) -> Schedule:
    """Cosine decays with warm restarts (Loshchilov and Hutter 2017), each by arguments of a warm-up with cosine decay.

    Each restart comes after the `decay_steps` of the one before.
    """
    periods = [dict(arguments) for arguments in cosine_kwargs]
    ends, done = [], 0
    for period in periods[:-1]:
        done += period["decay_steps"]
        ends.append(done)
    return join_schedules([warmup_cosine_decay_schedule(**period) for period in periods], ends)


def cosine_decay_restarts_schedule(
    init_value: Any, decay_steps: int, restarts: int, t_mul: float = 2.0, m_mul: Any = 1.0, alpha: Any = 0.0
) -> Schedule:
    """Cosine decays, each `t_mul` times as long as the one before and from `m_mul` times its value.

    There are `restarts` restarts after the first decay. Raises ValueError for a negative number.
    """
    if restarts < 0:
        raise ValueError(f"cosine_decay_restarts_schedule: restarts must not be negative, got {restarts}")
    lengths = [max(round(decay_steps * t_mul**period), 1) for period in range(restarts + 1)]
    parts = [
        cosine_decay_schedule(init_value * m_mul**period, length, alpha) for period, length in enumerate(lengths)
    ]
    return join_schedules(parts, [sum(lengths[: period + 1]) for period in range(restarts)])
