"""The sine and the cosine integral."""
from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, square, subtract
from lavax.numpy.elementwise.comparison import equal, greater, isnan, less, where
from lavax.numpy.elementwise.exponential import log
from lavax.numpy.elementwise.trigonometric import cos, sin, sinc
from lavax.scipy.stirling import horner
from lavax.tracer import with_weak
from lavax.tracer.transforms.custom_rules import custom_jvp
from lavax.tracer.values.value import Value

__all__ = ["sici"]

_LARGE = 4.0  # up to here the power series, whose largest term is about that of the result
_SERIES = 20
_TERMS = {32: 14, 64: 32}  # of the polynomials beyond, by the bits of a float


def sici(x: ArrayLike) -> tuple[Value, Value]:
    """The integrals Si and Ci of sin(t)/t from 0 to `x` and of cos(t)/t from infinity to `x`, elementwise.

    Ci is -inf at 0, and for negative `x` that of -x: the real part of its
    continuation; NaN at -inf, as in SciPy. Raises DtypeError for complex numbers.
    """
    value = as_floating(x)
    if value.type.dtype.is_complex:
        raise dtype_error(f"sici is not defined for {value.type} (float dtypes only)")
    sine, cosine = _integrals(value)
    return with_weak(sine, value.weak), with_weak(cosine, value.weak)


@custom_jvp
def _integrals(x: Value) -> tuple[Value, Value]:
    size = abs(x)
    far, ends = greater(size, _LARGE), equal(size, math.inf)
    small = where(far, 1.0, size)
    squared = square(small)
    near_sine = multiply(small, horner(_series(1), squared))
    positive = where(equal(small, 0), 1.0, small)
    logarithm = where(equal(small, 0), -math.inf, log(positive))
    near_cosine = add(add(logarithm, float(np.euler_gamma)), multiply(squared, horner(_series(2), squared)))
    large = where(far, where(ends, _LARGE, size), _LARGE)
    inverse = divide(1.0, large)
    place = subtract(multiply(inverse, 2.0 * _LARGE), 1.0)
    first, second = (horner(found, place) for found in _auxiliary(_TERMS[64 if x.type.dtype.bits == 64 else 32]))
    first, second = multiply(first, inverse), multiply(second, square(inverse))
    along, across = cos(large), sin(large)
    far_sine = subtract(0.5 * math.pi, add(multiply(first, along), multiply(second, across)))
    far_cosine = subtract(multiply(first, across), multiply(second, along))
    sine = where(ends, 0.5 * math.pi, where(far, far_sine, near_sine))
    cosine = where(ends, where(less(x, 0), math.nan, 0.0), where(far, far_cosine, near_cosine))
    return where(isnan(x), x, where(less(x, 0), negative(sine), sine)), where(isnan(x), x, cosine)


@_integrals.defjvp
def _slopes(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    (x,), (direction,) = primals, tangents
    return _integrals(x), (multiply(sinc(divide(x, math.pi)), direction), multiply(divide(cos(x), x), direction))


@cache
def _series(first: int) -> tuple[float, ...]:
    """(-1)^k / (n n!) for n = first, first + 2, …; of the cosine, whose first term is that of t², all are negated."""
    sign = 1 if first % 2 else -1
    return tuple(sign * (-1) ** k / ((n := first + 2 * k) * math.factorial(n)) for k in range(_SERIES))


@cache
def _auxiliary(terms: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """x·f(x) and x²·g(x) as polynomials of 8/x - 1 for x > 4: Si = π/2 - f cos x - g sin x, Ci = f sin x - g cos x.

    f and g are the integrals of exp(-s) and s·exp(-s) over 1 + (s/x)², by a double exponential rule, whose values at
    the nodes of Chebyshev are interpolated.
    """
    nodes = np.cos(np.pi * (np.arange(terms) + 0.5) / terms)
    places = np.arange(-5, 5, 1 / 64)
    s = np.exp(places - np.exp(-places))
    weights = np.exp(-s) * s * (1 + np.exp(-places)) / 64
    under = 1 + (np.multiply.outer((nodes + 1) / (2 * _LARGE), s)) ** 2
    chebyshev = np.polynomial.chebyshev
    found = ((weights * power / under).sum(1) for power in (1.0, s))
    first, second = (chebyshev.cheb2poly(chebyshev.chebfit(nodes, values, terms - 1)) for values in found)
    return tuple(first.tolist()), tuple(second.tolist())
