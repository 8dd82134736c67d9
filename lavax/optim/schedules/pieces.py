"""Schedules given by their values at some steps, and the one-cycle schedules made of such."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import lavax.numpy as lnp
from lavax.optim.schedules.polynomials import Schedule, steps

_INTERPOLATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "linear": lambda start, end, part: start + (end - start) * part,
    "cosine": lambda start, end, part: end + (start - end) / 2 * (lnp.cos(math.pi * part) + 1),
}


def _checked_scales(name: str, boundaries_and_scales: Mapping[int, Any] | None) -> list[tuple[int, Any]]:
    scales = sorted((boundaries_and_scales or {}).items())
    for boundary, scale in scales:
        if isinstance(scale, (int, float)) and not scale >= 0:
            raise ValueError(f"{name}: scales must not be negative, got {scale} at step {boundary}")
    return scales


def piecewise_constant_schedule(
    init_value: Any, boundaries_and_scales: Mapping[int, Any] | None = None
) -> Schedule:
    """`init_value`, times the scale of each boundary from that step on. Raises ValueError for a negative scale."""
    scales = _checked_scales("piecewise_constant_schedule", boundaries_and_scales)

    def schedule(count: Any) -> Any:
        done = lnp.asarray(count)
        value: Any = lnp.asarray(init_value, lnp.float32)
        for boundary, scale in scales:
            value = lnp.where(done < boundary, value, value * scale)
        return value

    return schedule


def piecewise_interpolate_schedule(
    interpolate_type: str, init_value: Any, boundaries_and_scales: Mapping[int, Any] | None = None
) -> Schedule:
    """From `init_value` to its multiples at the boundaries, "linear" or by half a "cosine" between.

    Each scale multiplies the value at the boundary before. Raises ValueError for another type or a negative scale.
    """
    if interpolate_type not in _INTERPOLATIONS:
        raise ValueError(
            f"piecewise_interpolate_schedule: interpolate_type must be 'linear' or 'cosine', got {interpolate_type!r}"
        )
    interpolate = _INTERPOLATIONS[interpolate_type]
    corners = [(0, init_value)]
    for boundary, scale in _checked_scales("piecewise_interpolate_schedule", boundaries_and_scales):
        corners.append((boundary, corners[-1][1] * scale))

    def schedule(count: Any) -> Any:
        done = steps(count)
        value: Any = lnp.asarray(corners[-1][1], lnp.float32)
        for (begin, start), (end, target) in reversed(list(pairwise(corners))):
            value = lnp.where(done < end, interpolate(start, target, (done - begin) / max(end - begin, 1)), value)
        return value

    return schedule


def _check_transition(name: str, transition_steps: int) -> None:
    if transition_steps <= 0:
        raise ValueError(f"{name}: transition_steps must be positive, got {transition_steps}")


def linear_onecycle_schedule(
    transition_steps: int, peak_value: Any, pct_start: float = 0.3, pct_final: float = 0.85, div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Linear from peak_value/div_factor to the peak, back, and to final_div_factor times less (Smith and Topin 2018).

    The peak is at `pct_start` of all steps, the way back ends at `pct_final`. Raises ValueError for steps of 0 or less.
    """
    _check_transition("linear_onecycle_schedule", transition_steps)
    corners = {
        int(pct_start * transition_steps): div_factor,
        int(pct_final * transition_steps): 1 / div_factor,
        transition_steps: 1 / final_div_factor,
    }
    return piecewise_interpolate_schedule("linear", peak_value / div_factor, corners)


def cosine_onecycle_schedule(
    transition_steps: int, peak_value: Any, pct_start: float = 0.3, div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """By cosines from peak_value/div_factor to the peak and to final_div_factor · div_factor times less.

    Smith and Topin 2018. Raises ValueError for steps of 0 or less.
    """
    _check_transition("cosine_onecycle_schedule", transition_steps)
    corners = {
        int(pct_start * transition_steps): div_factor,
        transition_steps: 1 / (div_factor * final_div_factor),
    }
    return piecewise_interpolate_schedule("cosine", peak_value / div_factor, corners)
