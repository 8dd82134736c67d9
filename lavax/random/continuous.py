"""Continuous distributions that take one uniform draw an element."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import lavax.numpy as lnp
from lavax.ir.types import float32, uint32
from lavax.numpy.application import apply
from lavax.numpy.operands import ArrayLike, cast
from lavax.random.bits import drawn_bits
from lavax.random.keys import result_shape
from lavax.random.parameters import drawn_shape, floating_dtype, spread_parameter
from lavax.tracer import bind
from lavax.tracer.value import Value

Extents = int | Sequence[int]

_MANTISSA = 23  # bits of a float32 in [0, 1): all multiples of 2^-23


def uniform(
    key: ArrayLike, shape: Extents = (), dtype: Any = "float32", minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0
) -> Value:
    """Floats of `shape`, evenly spread over [minval, maxval), to which arrays broadcast.

    Rounding may give maxval itself where the range is not [0, 1).
    """
    held = floating_dtype("uniform", dtype)
    return cast(uniform_between("uniform", key, drawn_shape("uniform", shape, minval, maxval), minval, maxval), held)


def uniform_between(
    name: str, key: ArrayLike, shape: tuple[int, ...], low: ArrayLike = 0.0, high: ArrayLike = 1.0
) -> Value:
    """The float32 draws of `uniform`, for the function `name`."""
    part = drawn_bits(name, key, shape)
    unit = apply("multiply", cast(apply("shift_right_logical", part, 32 - _MANTISSA), float32), 2.0**-_MANTISSA)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        least = float(np.float32(low))
        span = float(np.float32(high) - np.float32(low))
        if (least, span) == (0.0, 1.0):
            return unit
        if math.frexp(span)[0] == 0.5:  # the product is exact
            return lnp.maximum(least, lnp.add(lnp.multiply(unit, span), least))
    first = spread_parameter(low, shape, float32)
    length = lnp.subtract(spread_parameter(high, shape, float32), first)
    return lnp.maximum(first, _product_and_sum(unit, length, first))


def _product_and_sum(x: Value, y: Value, z: Value) -> Value:
    """x y + z, rounded once but for rare ties, whether or not the driver contracts products and sums."""
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    product = lnp.multiply(x, y)
    rest = lnp.subtract(lnp.multiply(x_high, y_high), product)
    rest = lnp.add(rest, lnp.add(lnp.multiply(x_high, y_low), lnp.multiply(x_low, y_high)))
    rest = lnp.add(rest, lnp.multiply(x_low, y_low))
    total = lnp.add(product, z)
    part = lnp.subtract(total, product)
    lost = lnp.add(lnp.subtract(product, lnp.subtract(total, part)), lnp.subtract(z, part))
    return lnp.add(total, lnp.add(lost, rest))


def _halves(x: Value) -> tuple[Value, Value]:
    """Two float32 of at most 12 bits whose sum is `x`: a product of two such is exact."""
    bits = bind("bitcast", x, type=x.type.with_dtype(uint32))
    high = bind("bitcast", apply("and", bits, 0xFFFFF000), type=x.type)
    return high, lnp.subtract(x, high)


def normal(key: ArrayLike, shape: Extents = (), dtype: Any = "float32") -> Value:
    """Floats of `shape` from the normal distribution of mean 0 and variance 1, by the inverse of its integral."""
    held = floating_dtype("normal", dtype)
    return cast(standard_normal("normal", key, result_shape("normal", shape)), held)


def standard_normal(name: str, key: ArrayLike, shape: tuple[int, ...]) -> Value:
    """The float32 draws of `normal`, for the function `name`."""
    above_minus_one = float(np.nextafter(np.float32(-1), np.float32(0)))
    u = uniform_between(name, key, shape, above_minus_one, 1.0)
    return lnp.multiply(bind("erfinv", u), math.sqrt(2))


def truncated_normal(
    key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Extents | None = None, dtype: Any = "float32"
) -> Value:
    """Standard normal numbers that lie between `lower` and `upper`; the shape is theirs if not given.

    By the inverse of the integral, so bounds beyond about 5 standard deviations on one side lose their resolution.
    """
    held = floating_dtype("truncated_normal", dtype)
    extents = drawn_shape("truncated_normal", shape, lower, upper)
    low, high = (spread_parameter(bound, extents, float32) for bound in (lower, upper))
    first, last = (bind("erf", lnp.multiply(bound, math.sqrt(0.5))) for bound in (low, high))
    u = uniform_between("truncated_normal", key, extents, first, last)
    drawn = lnp.multiply(bind("erfinv", u), math.sqrt(2))
    inside = lnp.clip(drawn, lnp.nextafter(low, math.inf), lnp.nextafter(high, -math.inf))
    return cast(inside, held)


def exponential(key: ArrayLike, shape: Extents = (), dtype: Any = "float32") -> Value:
    """Floats of `shape` from the exponential distribution of mean 1."""
    held = floating_dtype("exponential", dtype)
    return cast(standard_exponential("exponential", key, result_shape("exponential", shape)), held)


def standard_exponential(name: str, key: ArrayLike, shape: tuple[int, ...]) -> Value:
    """The float32 draws of `exponential`, for the function `name`."""
    return lnp.negative(lnp.log1p(lnp.negative(uniform_between(name, key, shape))))


def gumbel(key: ArrayLike, shape: Extents = (), dtype: Any = "float32") -> Value:
    """Floats of `shape` from the Gumbel distribution of location 0 and scale 1: -log(-log(u))."""
    held = floating_dtype("gumbel", dtype)
    return cast(standard_gumbel("gumbel", key, result_shape("gumbel", shape)), held)


def standard_gumbel(name: str, key: ArrayLike, shape: tuple[int, ...]) -> Value:
    """The float32 draws of `gumbel`, for the function `name`."""
    u = uniform_between(name, key, shape, float(np.finfo(np.float32).tiny), 1.0)
    return lnp.negative(lnp.log(lnp.negative(lnp.log(u))))


def laplace(key: ArrayLike, shape: Extents = (), dtype: Any = "float32") -> Value:
    """Floats of `shape` from the Laplace distribution of location 0 and scale 1."""
    held = floating_dtype("laplace", dtype)
    lowest = float(np.float32(-1) + np.finfo(np.float32).eps)
    u = uniform_between("laplace", key, result_shape("laplace", shape), lowest, 1.0)
    return cast(lnp.multiply(lnp.sign(u), lnp.log1p(lnp.negative(lnp.abs(u)))), held)
