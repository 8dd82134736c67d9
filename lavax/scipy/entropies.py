"""Relative entropies of single terms."""
from __future__ import annotations

import math

from lavax.numpy.application import together
from lavax.numpy.comparison import equal, greater, greater_equal, isnan, less, logical_and, logical_or, where
from lavax.numpy.elementwise import abs, divide, log, log1p, multiply, negative, subtract
from lavax.numpy.operands import ArrayLike
from lavax.scipy.stirling import log_less
from lavax.tracer import with_weak
from lavax.tracer.value import Value

__all__ = ["kl_div", "rel_entr"]


_LEAST = 2.0**-100


def _relative_entropy(x: Value, y: Value) -> Value:
    inside = logical_and(greater(x, 0), greater(y, 0))
    p, q = where(inside, x, 1.0), where(inside, y, 1.0)
    outside = where(logical_and(equal(x, 0), greater_equal(y, 0)), 0.0, math.inf)
    # Near each other their difference is exact, and their ratio is not.
    near = less(abs(subtract(p, q)), multiply(q, 0.5))
    # Far from each other the ratio may be too small, or too large, for a float.
    apart = subtract(log(where(near, 1.0, p)), log(where(near, 1.0, q)))
    ratio = divide(where(near, q, p), q)
    fits = logical_and(greater(ratio, _LEAST), less(ratio, 1 / _LEAST))
    distant = where(fits, log(where(fits, ratio, 1.0)), apart)
    logarithm = where(near, log1p(divide(subtract(where(near, p, q), q), q)), distant)
    found = where(inside, multiply(p, logarithm), outside)
    return where(logical_or(isnan(x), isnan(y)), math.nan, found)


def rel_entr(x: ArrayLike, y: ArrayLike) -> Value:
    """x log(x / y) for positive `x` and `y`, elementwise; 0 for x = 0 and y >= 0, infinite for others."""
    (first, second), weak = together("rel_entr", x, y, real=True)
    return with_weak(_relative_entropy(first, second), weak)


def kl_div(x: ArrayLike, y: ArrayLike) -> Value:
    """x log(x / y) - x + y for positive `x` and `y`, elementwise; `y` for x = 0 and y >= 0, infinite for others."""
    (first, second), weak = together("kl_div", x, y, real=True)
    inside = logical_and(greater(first, 0), greater(second, 0))
    p, q = where(inside, first, 1.0), where(inside, second, 1.0)
    # As x (r - 1 - log r) with r = y / x, which has its digits near 0 too.
    found = negative(multiply(p, log_less(divide(q, p), divide(subtract(q, p), p))))
    is_zero = logical_and(equal(first, 0), greater_equal(second, 0))
    others = where(logical_or(isnan(first), isnan(second)), math.nan, where(is_zero, second, math.inf))
    return with_weak(where(inside, found, others), weak)
