"""Relative entropies of single terms."""
from __future__ import annotations

import math

from lavax.ir.types import float64
from lavax.numpy._core.application import real_numbers, together
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.creation import ones_like
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, subtract
from lavax.numpy.elementwise.comparison import (
    equal,
    greater,
    greater_equal,
    isnan,
    less,
    logical_and,
    logical_or,
    where,
)
from lavax.numpy.elementwise.exponential import log, log1p
from lavax.scipy.stirling import log_less
from lavax.tracer import bind, with_weak
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.transforms.jvp import jvp
from lavax.tracer.values.value import Value

__all__ = ["kl_div", "rel_entr"]


_LEAST = 2.0**-100


def _log_of_ratio(p: Value, q: Value) -> Value:
    """log(p / q) of positive numbers."""
    # If they are near each other, their difference is exact, and their ratio is not.
    near = less(abs(subtract(p, q)), multiply(q, 0.5))
    # If they are far apart, the ratio may be too small, or too large, for a float.
    apart = subtract(log(where(near, 1.0, p)), log(where(near, 1.0, q)))
    ratio = divide(where(near, q, p), q)
    fits = logical_and(greater(ratio, _LEAST), less(ratio, 1 / _LEAST))
    distant = where(fits, log(where(fits, ratio, 1.0)), apart)
    return where(near, log1p(divide(subtract(where(near, p, q), q), q)), distant)


def _relative_entropy(x: Value, y: Value) -> Value:
    inside = logical_and(greater(x, 0), greater(y, 0))
    p, q = where(inside, x, 1.0), where(inside, y, 1.0)
    outside = where(logical_and(equal(x, 0), greater_equal(y, 0)), 0.0, math.inf)
    found = where(inside, multiply(p, _log_of_ratio(p, q)), outside)
    return where(logical_or(isnan(x), isnan(y)), math.nan, found)


def rel_entr(p: ArrayLike, q: ArrayLike) -> Value:
    """p log(p / q) for positive `p` and `q`, elementwise; 0 for p = 0 and q >= 0, infinite for others.

    Raises DtypeError for complex numbers.
    """
    (first, second), weak = together("rel_entr", p, q, real=True)
    real_numbers("rel_entr", first)
    return with_weak(_relative_entropy(first, second), weak)


def kl_div(p: ArrayLike, q: ArrayLike) -> Value:
    """p log(p / q) - p + q for positive `p` and `q`, elementwise; `q` for p = 0 and q >= 0, infinite for others.

    Raises DtypeError for complex numbers.
    """
    (first, second), weak = together("kl_div", p, q, real=True)
    real_numbers("kl_div", first)
    return with_weak(_kl_div(first, second), weak)


@custom_jvp
def _kl_div(x: Value, y: Value) -> Value:
    return _composed_kl_div(x, y) if x.type.dtype == float64 else bind("kl_div", x, y)


_kl_div.defjvps(
    lambda tangent, _, x, y: multiply(tangent, jvp(lambda p: _composed_kl_div(p, y), (x,), (ones_like(x),))[1]),
    lambda tangent, _, x, y: multiply(tangent, jvp(lambda q: _composed_kl_div(x, q), (y,), (ones_like(y),))[1]),
)


def _composed_kl_div(first: Value, second: Value) -> Value:
    inside = logical_and(greater(first, 0), greater(second, 0))
    p, q = where(inside, first, 1.0), where(inside, second, 1.0)
    # As x (r - 1 - log r) with r = y / x, which is accurate near 0 too, unless r is tiny or vast.
    fits = logical_and(less(p, multiply(q, 1e3)), less(q, multiply(p, 1e3)))
    r, s = where(fits, p, 1.0), where(fits, q, 1.0)
    near = negative(multiply(r, log_less(divide(s, r), divide(subtract(s, r), r))))
    found = where(fits, near, add(multiply(p, subtract(_log_of_ratio(p, q), 1.0)), q))
    found = where(equal(p, math.inf), math.nan, found)  # infinite terms have either sign
    is_zero = logical_and(equal(first, 0), greater_equal(second, 0))
    others = where(logical_or(isnan(first), isnan(second)), math.nan, where(is_zero, second, math.inf))
    return where(inside, found, others)
