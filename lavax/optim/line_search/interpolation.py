"""Where to look next in an interval: the minimum of a cubic or a parabola, or else the middle."""
from __future__ import annotations

from typing import Any

import lavax.numpy as lnp


def cubic_minimum(low: Any, high: Any, third: Any) -> Any:
    """The minimum of the cubic with the value and slope of `low` and the values of the two others; NaN if none.

    Nocedal and Wright 2006, section 3.5.
    """
    b, c = high.size - low.size, third.size - low.size
    to_high, to_third = high.value - low.value - low.slope * b, third.value - low.value - low.slope * c
    scale = (b * c) ** 2 * (b - c)
    cubic = (c**2 * to_high - b**2 * to_third) / scale
    square = (b**3 * to_third - c**3 * to_high) / scale
    return low.size + (lnp.sqrt(square * square - 3 * cubic * low.slope) - square) / (3 * cubic)


def parabola_minimum(low: Any, high: Any) -> Any:
    """The minimum of the parabola with the value and slope of `low` and the value of `high`."""
    width = high.size - low.size
    return low.size - low.slope / (2 * (high.value - low.value - low.slope * width) / width**2)


def trial_within(low: Any, high: Any, third: Any) -> Any:
    """The cubic's minimum if it is well within the interval, else the parabola's if that is, else the middle.

    Well within is a fifth of the interval from its ends for the cubic, a tenth for the parabola. NaN is not within.
    """
    width = lnp.abs(high.size - low.size)
    left, right = lnp.minimum(low.size, high.size), lnp.maximum(low.size, high.size)

    def within(place: Any, margin: float) -> Any:
        return (place > left + margin * width) & (place < right - margin * width)

    cubic, parabola = cubic_minimum(low, high, third), parabola_minimum(low, high)
    middle = lnp.where(within(parabola, 0.1), parabola, (low.size + high.size) / 2)
    return lnp.where(within(cubic, 0.2), cubic, middle)
