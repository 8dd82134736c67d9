"""One step of the method of Dormand and Prince (1980), of order 5, with its error and its values between."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import lavax.numpy as lnp
from lavax.tracer.values.value import Value

Slope = Callable[[Value, Value], Value]  # slope(y, t)

# The stages: where in the step, and the weights of the slopes before. The last stage is the first of the next step.
_STAGES: tuple[tuple[float, tuple[float, ...]], ...] = (
    (1 / 5, (1 / 5,)),
    (3 / 10, (3 / 40, 9 / 40)),
    (4 / 5, (44 / 45, -56 / 15, 32 / 9)),
    (8 / 9, (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729)),
    (1.0, (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656)),
    (1.0, (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)),
)
# The difference of the weights of orders 5 and 4.
_ERRORS = (
    71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40,
)  # fmt: skip
# The weights of the value in the middle of the step (Shampine 1986).
_MIDDLE = (
    6025192743 / 30085553152 / 2, 0.0, 51252292925 / 65400821598 / 2, -2691868925 / 45128329728 / 2,
    187940372067 / 1594534317056 / 2, -1776094331 / 19743644256 / 2, 11237099 / 235043384 / 2,
)  # fmt: skip

_LEAST_FACTOR, _MOST_FACTOR, _SAFETY = 0.2, 10.0, 0.9  # of the following step, and what it is shortened by


class Step(NamedTuple):
    """The end of a step and the slope there, its error, and the polynomial of degree 4 between its ends."""

    y: Value
    slope: Value
    error: Value
    polynomial: Value  # [5, n]: coefficients, highest first, of the fraction of the step


def step(slope: Slope, y: Value, first: Value, t: Value, dt: Value) -> Step:
    """A step of length `dt` from `y` at `t`, where the slope is `first`."""
    slopes = [first]
    for place, weights in _STAGES:
        slopes.append(slope(y + dt * _sum(weights, slopes), t + place * dt))
    end = y + dt * _sum(_STAGES[-1][1], slopes)
    middle = y + dt * _sum(_MIDDLE, slopes)
    return Step(end, slopes[-1], dt * _sum(_ERRORS, slopes), _fitted(y, end, middle, dt * first, dt * slopes[-1]))


def _sum(weights: tuple[float, ...], slopes: list[Value]) -> Any:
    terms = [weight * slope for weight, slope in zip(weights, slopes, strict=False) if weight]
    total: Any = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _fitted(start: Value, end: Value, middle: Value, at_start: Value, at_end: Value) -> Value:
    """The polynomial with these values at 0, 1 and 1/2, and these slopes at 0 and 1."""
    return lnp.stack(
        [
            2 * (at_end - at_start) - 8 * (start + end) + 16 * middle,
            5 * at_start - 3 * at_end + 18 * start + 14 * end - 32 * middle,
            at_end - 4 * at_start - 11 * start - 5 * end + 16 * middle,
            at_start,
            start,
        ]
    )


def first_length(slope: Slope, y: Value, first: Value, t: Value, rtol: float, atol: float) -> Value:
    """A length for the first step (Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, II.4)."""
    scale = atol + rtol * lnp.abs(y)
    value, change = _size(y / scale), _size(first / scale)
    is_small = (value < 1e-5) | (change < 1e-5)
    trial = lnp.where(is_small, 1e-6, 0.01 * value / lnp.where(is_small, 1.0, change))
    turn = _size((slope(y + trial * first, t + trial) - first) / scale) / trial
    steepest = lnp.maximum(change, turn)
    is_flat = steepest <= 1e-15
    length = lnp.power(0.01 / lnp.where(is_flat, 1.0, steepest), 1 / 5)
    result: Value = lnp.minimum(100 * trial, lnp.where(is_flat, lnp.maximum(1e-6, trial * 1e-3), length))
    return result


def error_ratio(found: Step, y: Value, rtol: float, atol: float) -> Value:
    """The error of a step from `y` over what is tolerated: root mean square over the components."""
    return _size(found.error / (atol + rtol * lnp.maximum(lnp.abs(y), lnp.abs(found.y))))


def following_length(dt: Value, ratio: Value) -> Value:
    """The length of the next step, or of the next attempt if the error was too large."""
    most = lnp.where(ratio < 1, _MOST_FACTOR, 1.0)
    is_exact = ratio == 0
    factor = _SAFETY * lnp.power(lnp.where(is_exact, 1.0, ratio), -1 / 5)
    result: Value = dt * lnp.where(is_exact, _MOST_FACTOR, lnp.clip(factor, _LEAST_FACTOR, most))
    return result


def _size(x: Value) -> Value:
    result: Value = lnp.sqrt(lnp.mean(x * x))
    return result
