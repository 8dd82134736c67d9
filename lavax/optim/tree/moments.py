"""Running means of gradients and of their powers, and the correction for their start at zero.

Kingma and Ba 2015, "Adam", section 3: m_t = b · m_{t-1} + (1 - b) · g_t, divided by 1 - b^t.
"""
from __future__ import annotations

import math
from typing import Any

import lavax.numpy as lnp
from lavax.optim.tree.leafwise import leafwise
from lavax.optim.tree.precision import squared_size, wide


def update_moment(updates: Any, moments: Any, decay: Any, order: int) -> Any:
    """`decay * moments + (1 - decay) * updates**order`, leaf by leaf; for order 2 with |updates|²."""

    def mean(update: Any, moment: Any) -> Any:
        value = wide(update)
        power = value if order == 1 else squared_size(value) if order == 2 else value**order
        return decay * wide(moment) + (1 - decay) * power

    return leafwise(mean, updates, moments)


def filled_part(decay: Any, count: Any) -> Any:
    """1 - decay^count, exact also where the power is near 1. `count` is an integer array of rank 0."""
    if isinstance(decay, (int, float)):
        return lnp.ones(()) if decay == 0 else -lnp.expm1(count * math.log(decay))
    # An array, as in inject_hyperparams: the logarithm of 0 is infinite, and gives 1 as it should.
    return -lnp.expm1(count.astype(lnp.asarray(decay).dtype) * lnp.log(decay))


def bias_correction(moment: Any, decay: Any, count: Any) -> Any:
    """`moment` divided by 1 - decay^count: the mean without the zero it began with."""
    factor = 1 / filled_part(decay, count)
    return leafwise(lambda leaf: wide(leaf) * factor, moment)


def increment(count: Any) -> Any:
    """`count + 1`, or the largest number of its dtype once that is reached, so that it never turns negative."""
    largest = lnp.iinfo(lnp.asarray(count).dtype).max
    return lnp.where(count < largest, count + 1, count)


def nesterov_mean(updates: Any, mean: Any, decay: Any, count: Any) -> Any:
    """The mean one step ahead (Dozat 2016, "Incorporating Nesterov momentum into Adam").

    b · m / (1 - b^(t+1)) + (1 - b) · g / (1 - b^t), where t is `count`.
    """
    ahead = bias_correction(mean, decay, increment(count))
    now = bias_correction(updates, decay, count)
    return leafwise(lambda m, g: decay * m + (1 - decay) * g, ahead, now)
