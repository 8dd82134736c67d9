"""Schedules: functions from the number of steps done to a learning rate or another number."""
from lavax.optim.schedules.decays import cosine_decay_schedule, exponential_decay, inverse_sqrt_schedule
from lavax.optim.schedules.joined import (
    cosine_decay_restarts_schedule,
    join_schedules,
    sgdr_schedule,
    warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
)
from lavax.optim.schedules.pieces import (
    cosine_onecycle_schedule,
    linear_onecycle_schedule,
    piecewise_constant_schedule,
    piecewise_interpolate_schedule,
)
from lavax.optim.schedules.polynomials import (
    Schedule,
    constant_schedule,
    linear_schedule,
    polynomial_schedule,
    warmup_constant_schedule,
)

__all__ = [
    "Schedule",
    "constant_schedule",
    "cosine_decay_restarts_schedule",
    "cosine_decay_schedule",
    "cosine_onecycle_schedule",
    "exponential_decay",
    "inverse_sqrt_schedule",
    "join_schedules",
    "linear_onecycle_schedule",
    "linear_schedule",
    "piecewise_constant_schedule",
    "piecewise_interpolate_schedule",
    "polynomial_schedule",
    "sgdr_schedule",
    "warmup_constant_schedule",
    "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule",
]
