"""The dilogarithm."""
from __future__ import annotations

import math

from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.elementwise.arithmetic import add, divide, multiply, negative, square, subtract
from lavax.numpy.elementwise.comparison import equal, greater, less, less_equal, where
from lavax.numpy.elementwise.exponential import log, log1p
from lavax.scipy.stirling import horner
from lavax.tracer import with_weak
from lavax.tracer.values.value import Value

__all__ = ["spence"]

# B(2k) / (2k + 1)!, k from 1 on.
_TERMS = (1 / 36, -1 / 3600, 1 / 211680, -1 / 10886400, 1 / 526901760, -691 / 16999766784000, 1 / 1120863744000,
          -3617 / 181400588328960000, 43867 / 97072790126247936000)  # fmt: skip
_SIXTH = math.pi**2 / 6


def spence(x: ArrayLike) -> Value:
    """The integral of log(t) / (1 - t) over t from 1 to `x`, elementwise: Li2(1 - x); NaN below 0.

    Raises DtypeError for complex numbers.
    """
    value = as_floating(x)
    if value.type.dtype.is_complex:
        raise dtype_error(f"spence is not defined for {value.type} (float dtypes only)")
    positive = where(less_equal(value, 0), 1.0, value)
    low, high = less(positive, 0.5), greater(positive, 2.0)
    # Li2(w) is computed for w = 1 - z from -1 to 1/2, where few terms in u = -log(1 - w) suffice.
    below = where(low, positive, 0.25)
    above = where(high, positive, 3.0)
    inverse = divide(1.0, subtract(above, 1.0))
    u = where(low, log1p(negative(below)), where(high, log1p(inverse), log(where(high, 1.0, positive))))
    u = negative(u)
    squared = square(u)
    found = subtract(add(u, multiply(multiply(u, squared), horner(_TERMS, squared))), multiply(squared, 0.25))
    reflected = subtract(subtract(_SIXTH, multiply(log(below), log1p(negative(below)))), found)
    inverted = subtract(negative(multiply(square(log(subtract(above, 1.0))), 0.5)), add(found, _SIXTH))
    inside = where(low, reflected, where(high, inverted, found))
    found = where(less(value, 0), math.nan, inside)
    return with_weak(where(equal(value, 0), _SIXTH, found), value.weak)
