"""Bessel functions of the first kind, by their recurrence."""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike
from lavax.tracer.control_flow.fori_loop import fori_loop
from lavax.tracer.values.value import Value

_LARGE = 1e15  # beyond it all values are scaled down


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Value:
    """J₀ … J_v of real `z`: [v + 1, ...].

    By the recurrence from order `n_iter` downwards, normalised by J₀ + 2·ΣJ₂ₖ = 1 (Miller's algorithm; Abramowitz and
    Stegun 9.12). It is accurate while |z| and `v` are well below `n_iter`: up to 35 for the default. Raises ValueError
    unless 0 <= v < n_iter.
    """
    order, steps = whole_number("v", v), whole_number("n_iter", n_iter)
    if not 0 <= order < steps:
        raise ValueError(f"bessel_jn: v must be at least 0 and less than n_iter, got {v} and {n_iter}")
    value: Any = as_floating(z)
    is_zero = value == 0
    safe = lnp.where(is_zero, 1.0, value)
    orders = lnp.reshape(lnp.arange(order + 1), (-1, *(1 for _ in value.shape)))
    nothing, one = lnp.zeros_like(safe), lnp.ones_like(safe)

    def lower(step: Any, state: Any) -> Any:
        above, here, total, found = state
        k = steps - step
        below = 2.0 * k / safe * here - above
        total = total + lnp.where((k - 1) % 2 == 0, lnp.where(k == 1, below, 2 * below), 0.0)
        found = lnp.where(orders == k - 1, below, found)
        scale = lnp.where(lnp.abs(below) > _LARGE, 1 / _LARGE, 1.0)
        return here * scale, below * scale, total * scale, found * scale

    start = (nothing, one, nothing, lnp.zeros((order + 1, *value.shape), dtype=value.dtype))
    _, _, total, found = fori_loop(0, steps, lower, start)
    squares = value * value  # the first terms of the series, whose derivatives are right at 0
    at_zero = lnp.where(orders == 0, 1 - squares / 4, lnp.where(orders == 1, value / 2, 0.0))
    at_zero = lnp.where(orders == 2, squares / 8, at_zero)
    result: Value = lnp.where(is_zero, at_zero, lnp.where(lnp.isfinite(value), found / total, math.nan))
    return result
