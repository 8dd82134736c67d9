"""The Poisson distribution.

Below a rate of 10 a number is counted: how many exponential waiting times fit in the rate. From 10 on it is found by
Hörmann's transformed rejection (PTRS, 1993), with a fixed number of proposals for every element, drawn together, of
which it takes the first that is accepted. More waiting times, or no accepted proposal, would be needed with a
probability below 1e-12; the number is then the greatest that can be counted, or the rate rounded down.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import lavax.numpy as lnp
from lavax.ir.types import float32
from lavax.numpy.cumulative import cumsum
from lavax.numpy.dtypes import canonical_dtype
from lavax.numpy.errors import dtype_error
from lavax.numpy.operands import ArrayLike, cast
from lavax.random.continuous import standard_exponential, uniform_between
from lavax.random.keys import split
from lavax.random.parameters import drawn_shape, spread_parameter
from lavax.tracer.value import Value

_COUNTED_BELOW = 10.0
_WAITS = 41  # P(Poisson(10) >= 41) is 2e-13
_PROPOSALS = 20  # at a rate of 10, the worst, one fails with a probability of 0.248


def poisson(
    key: ArrayLike, lam: ArrayLike, shape: int | Sequence[int] | None = None, dtype: Any = "int32"
) -> Value:
    """Integers from the Poisson distribution of rate `lam`, whose shape it is if none is given.

    -1 where the rate is negative or NaN. Raises DtypeError for a `dtype` that is no integer dtype.
    """
    held = canonical_dtype(dtype)
    if not held.is_integer:
        raise dtype_error(f"poisson: dtype must be an integer dtype, got {held.numpy}")
    extents = drawn_shape("poisson", shape, lam)
    rate = spread_parameter(lam, extents, float32)
    for_small, for_large = split(key)
    small = lnp.less(rate, _COUNTED_BELOW)
    few = _counted(for_small, lnp.where(small, rate, 0.0))
    many = _proposed(for_large, lnp.where(small, _COUNTED_BELOW, rate))
    number = lnp.where(small, few, many)
    return cast(lnp.where(lnp.greater_equal(rate, 0.0), number, -1.0), held)


def _counted(key: ArrayLike, rate: Value) -> Value:
    """How many waiting times pass before `rate` is over."""
    waits = standard_exponential("poisson", key, (_WAITS, *rate.shape))
    ends = cumsum(waits, axis=0)
    return lnp.sum(cast(lnp.less(ends, rate), float32), axis=0)


def _proposed(key: ArrayLike, rate: Value) -> Value:
    """Hörmann's PTRS, for rates from 10 on."""
    b = lnp.add(0.931, lnp.multiply(2.53, lnp.sqrt(rate)))
    a = lnp.add(-0.059, lnp.multiply(0.02483, b))
    height = lnp.add(1.1239, lnp.divide(1.1328, lnp.subtract(b, 3.4)))
    shape = (_PROPOSALS, *rate.shape)
    for_u, for_v = split(key)
    u = lnp.subtract(uniform_between("poisson", for_u, shape), 0.5)
    v = uniform_between("poisson", for_v, shape)
    margin = lnp.subtract(0.5, lnp.abs(u))
    spread = lnp.add(lnp.divide(lnp.multiply(2.0, a), margin), b)
    number = lnp.floor(lnp.add(lnp.add(lnp.multiply(spread, u), rate), 0.43))
    area = lnp.add(lnp.divide(a, lnp.square(margin)), b)
    under = lnp.less(lnp.log(lnp.divide(lnp.multiply(v, height), area)), _log_probability(number, rate))
    accepted = lnp.logical_and(lnp.greater_equal(number, 0.0), under)
    first = lnp.expand_dims(lnp.argmax(accepted, axis=0), 0)
    held = lnp.where(accepted, number, lnp.floor(rate))
    return lnp.squeeze(lnp.take_along_axis(held, first, axis=0), axis=0)


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
