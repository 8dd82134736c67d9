"""Owen's function T."""
from __future__ import annotations

import math
from functools import cache

import numpy as np

from lavax.numpy._core.application import real_numbers, together
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, square, subtract
from lavax.numpy.elementwise.comparison import equal, greater, less, where
from lavax.numpy.elementwise.exponential import exp
from lavax.tracer import bind, with_weak
from lavax.tracer.values.value import Value

__all__ = ["owens_t"]

_POINTS = {32: 16, 64: 28}  # of the quadrature, by the bits of a float


def owens_t(h: ArrayLike, a: ArrayLike) -> Value:
    """The probability of x > `h` and 0 < y < `a` x for independent normal variates x and y, elementwise.

    Negative for negative `a`. Raises DtypeError for complex numbers.
    """
    (height, slope), weak = together("owens_t", h, a, real=True)
    real_numbers("owens_t", height)
    across, is_steep = abs(height), greater(abs(slope), 1.0)
    # T(h, a) + T(a h, 1 / a) is known, and infinite slopes of no height have none. T is odd in the slope.
    steep = where(is_steep, slope, 1.0)
    rise = where(is_steep, multiply(across, abs(where(equal(across, 0), 1.0, steep))), across)
    found = _by_quadrature(rise, where(is_steep, divide(1.0, steep), slope))
    low, high = bind("ndtr", negative(across)), bind("ndtr", negative(rise))
    known = subtract(multiply(0.5, add(low, high)), multiply(low, high))
    signed = where(less(slope, 0), negative(known), known)
    return with_weak(where(is_steep, subtract(signed, found), found), weak)


def _by_quadrature(height: Value, slope: Value) -> Value:
    """Gauss's sum for the integral of exp(-h²(1 + x²)/2) / (1 + x²) over x from 0 to a slope of -1 to 1."""
    half = multiply(square(height), -0.5)
    total: ArrayLike = 0.0
    for point, weight in _gauss(_POINTS[64 if height.type.dtype.bits == 64 else 32]):
        spread = add(1.0, square(multiply(slope, point)))
        total = add(total, multiply(divide(exp(multiply(half, spread)), spread), weight))
    return multiply(multiply(slope, total), 0.5 / math.pi)


@cache
def _gauss(count: int) -> tuple[tuple[float, float], ...]:
    """Points and weights for integrals over [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return tuple(zip(((points + 1.0) / 2.0).tolist(), (weights / 2.0).tolist(), strict=True))
