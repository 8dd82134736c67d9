"""The Poisson distribution.

Below a rate of 10 a number is counted: how many exponential waiting times fit in the rate (Knuth). From 10 on,
Hörmann's transformed rejection (PTRS, 1993) is used. Both loops run until all elements have a number; an element for
which several were accepted until then has the last one.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy.elementwise.comparison import where
from lavax.random.continuous import uniform_between
from lavax.random.keys import as_key, split
from lavax.random.parameters import drawn_shape, integer_dtype, spread_parameter
from lavax.random.reuse import consume
from lavax.tracer.compiled.one_program import one_program
from lavax.tracer.control_flow.while_loop import while_loop
from lavax.tracer.values.value import Value

_COUNTED_BELOW = 10.0


@one_program("shape", "dtype")
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: int | Sequence[int] | None = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Value:
    """Integers from the Poisson distribution of rate `lam`, by default of its shape.

    -1 where the rate is negative or NaN. Raises DtypeError for a `dtype` that is not an integer dtype.
    """
    held = integer_dtype("poisson", dtype)
    extents = drawn_shape("poisson", shape, lam)
    rate = spread_parameter(lam, extents, float32)
    checked = as_key("poisson", key)
    consume("poisson", key)
    number = _drawn(checked, lnp.where(lnp.greater_equal(rate, 0.0), rate, 0.0))
    return cast(lnp.where(lnp.greater_equal(rate, 0.0), number, -1.0), held)


def _drawn(key: Value, rate: Value) -> Value:
    """By the method for the rate; the other method gets a rate with which its loop ends soon."""
    small = lnp.less(rate, _COUNTED_BELOW)
    return where(small, _counted(key, lnp.where(small, rate, 0.0)), _proposed(key, lnp.where(small, 1e5, rate)))


def _counted(key: Value, rate: Value) -> Value:
    """The number of waiting times that end before `rate`: one less than are drawn."""
    zero = lnp.multiply(lnp.zeros_like(rate), 0.0)

    def goes_on(state: Any) -> Value:
        return lnp.any(lnp.greater(state[2], lnp.negative(rate)))

    def wait(state: Any) -> Any:
        remaining, number, log_product = state
        remaining, drawn = split(remaining)
        passed = cast(lnp.greater(log_product, lnp.negative(rate)), float32)
        u = uniform_between("poisson", drawn, rate.shape)
        return remaining, lnp.add(number, passed), lnp.add(log_product, lnp.log(u))

    number: Value = while_loop(goes_on, wait, (key, zero, zero))[1]
    return lnp.maximum(lnp.subtract(number, 1.0), 0.0)


def _proposed(key: Value, rate: Value) -> Value:
    """Hörmann's PTRS, for rates from 10 on."""
    b = lnp.add(0.931, lnp.multiply(2.53, lnp.sqrt(rate)))
    a = lnp.add(-0.059, lnp.multiply(0.02483, b))
    height = lnp.add(1.1239, lnp.divide(1.1328, lnp.subtract(b, 3.4)))
    certain = lnp.subtract(0.9277, lnp.divide(3.6224, lnp.subtract(b, 2.0)))

    def is_open(state: Any) -> Value:
        return lnp.any(lnp.logical_not(state[2]))

    def propose(state: Any) -> Any:
        remaining, number, accepted = state
        remaining, for_u, for_v = split(remaining, 3)
        u = lnp.subtract(uniform_between("poisson", for_u, rate.shape), 0.5)
        v = uniform_between("poisson", for_v, rate.shape)
        margin = lnp.subtract(0.5, lnp.abs(u))
        slope = lnp.add(lnp.divide(lnp.multiply(2.0, a), margin), b)
        found = lnp.floor(lnp.add(lnp.add(lnp.multiply(slope, u), rate), 0.43))
        area = lnp.add(lnp.divide(a, lnp.square(margin)), b)
        under = lnp.less_equal(lnp.log(lnp.divide(lnp.multiply(v, height), area)), _log_probability(found, rate))
        outside = lnp.logical_or(
            lnp.less(found, 0.0), lnp.logical_and(lnp.less(margin, 0.013), lnp.greater(v, margin))
        )
        squeezed = lnp.logical_and(lnp.greater_equal(margin, 0.07), lnp.less_equal(v, certain))
        fits = lnp.logical_or(squeezed, lnp.logical_and(lnp.logical_not(outside), under))
        return remaining, lnp.where(fits, found, number), lnp.logical_or(accepted, fits)

    start = key, lnp.subtract(lnp.multiply(rate, 0.0), 1.0), lnp.zeros_like(rate, bool)
    number: Value = while_loop(is_open, propose, start)[1]
    return number


def _log_probability(k: Value, rate: Value) -> Value:
    """log(rate^k e^-rate / k!), by Stirling's series for k!; sorted so that no large terms cancel."""
    positive = lnp.maximum(k, 1.0)
    relative = lnp.divide(lnp.subtract(positive, rate), rate)
    distance = lnp.subtract(lnp.multiply(positive, lnp.log1p(relative)), lnp.subtract(positive, rate))
    inverse = lnp.divide(1.0, positive)
    square = lnp.square(inverse)
    series = lnp.multiply(
        inverse, lnp.add(1 / 12, lnp.multiply(square, lnp.add(-1 / 360, lnp.multiply(square, 1 / 1260))))
    )
    logarithm = lnp.add(lnp.multiply(0.5, lnp.log(lnp.multiply(2 * math.pi, positive))), series)
    chosen: Value = lnp.where(lnp.less(k, 1.0), lnp.negative(rate), lnp.negative(lnp.add(distance, logarithm)))
    return chosen
