"""Dawson's integral and Faddeeva's function, and the Fresnel integrals that follow from it."""
from __future__ import annotations

import math
from functools import cache

import numpy as np

from lavax.ir.types import complex_of
from lavax.numpy._core.application import as_floating
from lavax.numpy._core.errors import dtype_error
from lavax.numpy._core.operands import ArrayLike, cast
from lavax.numpy.arrays.complex_parts import imag, real
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, negative, square, subtract
from lavax.numpy.elementwise.comparison import greater, less, where
from lavax.numpy.elementwise.exponential import exp
from lavax.numpy.elementwise.rounding import rint
from lavax.scipy.stirling import horner
from lavax.tracer import with_weak
from lavax.tracer.values.value import Value

__all__ = ["dawsn", "fresnel", "wofz"]

_ROOT = math.sqrt(math.pi)
_SMALL, _LARGE = 0.25, 100.0  # within, Dawson's integral is Rybicki's sum; outside, a power series
_NEAR = tuple((-2.0) ** k / math.prod(range(1, 2 * k + 2, 2)) for k in range(9))
_FAR = (1.0, 0.5, 0.75, 1.875)
# By the bits of a float: the step of Rybicki's sum, which floats hold exactly, and its last term. Its error is
# exp(-(pi / 2 step)^2).
_STEPS = {32: (0.375, 13), 64: (0.25, 25)}
_TERMS = {32: 24, 64: 40}  # of Weideman's approximation
_FRESNEL = 10  # terms of the power series up to 1


def _real(name: str, x: ArrayLike) -> Value:
    value = as_floating(x)
    if value.type.dtype.is_complex:
        raise dtype_error(f"{name} is not defined for {value.type} (float dtypes only)")
    return value


def dawsn(x: ArrayLike) -> Value:
    """Dawson's integral, exp(-x²) times the integral of exp(t²) over t from 0 to `x`, elementwise.

    Raises DtypeError for complex numbers.
    """
    value = _real("dawsn", x)
    size = abs(value)
    near, far = less(size, _SMALL), greater(size, _LARGE)
    small, large = square(where(near, value, 0.0)), where(far, value, _LARGE)
    inverse = square(divide(1.0, large))
    outer = divide(multiply(0.5, horner(_FAR, inverse)), large)
    between = _rybicki(where(near, 1.0, where(far, 1.0, value)))
    return with_weak(where(near, multiply(value, horner(_NEAR, small)), where(far, outer, between)), value.weak)


def _rybicki(x: Value) -> Value:
    """Σ exp(-(x - n·step)²) / n over odd n, divided by √π: those next to x suffice."""
    step, last = _STEPS[64 if x.type.dtype.bits == 64 else 32]
    middle = multiply(rint(multiply(x, 0.5 / step)), 2.0)
    rest = subtract(x, multiply(middle, step))
    total: ArrayLike = 0.0
    for n in range(-last, last + 1, 2):
        total = add(total, divide(exp(negative(square(subtract(rest, n * step)))), add(middle, float(n))))
    return divide(total, _ROOT)


def wofz(z: ArrayLike) -> Value:
    """Faddeeva's function, exp(-z²) erfc(-i z), of complex numbers, elementwise."""
    value = as_floating(z)
    if not value.type.dtype.is_complex:
        value = cast(value, complex_of(value.type.dtype))
    lower = less(imag(value), 0)
    upper = _in_upper_half(where(lower, negative(value), value))
    reflected = subtract(multiply(2.0, exp(negative(square(where(lower, value, 0.0))))), upper)
    return with_weak(where(lower, reflected, upper), value.weak)


def _in_upper_half(z: Value) -> Value:
    length, coefficients = _weideman(_TERMS[64 if z.type.dtype.bits == 128 else 32])
    turned = multiply(z, 1j)
    inverse = divide(1.0, subtract(length, turned))
    series = horner(coefficients, multiply(add(turned, length), inverse))
    return multiply(inverse, add(multiply(multiply(inverse, 2.0), series), 1.0 / _ROOT))


@cache
def _weideman(terms: int) -> tuple[float, tuple[float, ...]]:
    """The scale L and the coefficients of powers of (L + iz) / (L - iz), by a discrete Fourier transform."""
    count = 4 * terms
    length = math.sqrt(terms / math.sqrt(2.0))
    points = length * np.tan(np.arange(1 - count // 2, count // 2) * np.pi / count)
    samples = np.concatenate([[0.0], np.exp(-(points**2)) * (length**2 + points**2)])
    found = np.fft.fft(np.fft.fftshift(samples)).real / count
    return length, tuple(found[1 : terms + 1].tolist())


def fresnel(x: ArrayLike) -> tuple[Value, Value]:
    """The integrals (S, C) of sin(πt²/2) and cos(πt²/2) over t from 0 to `x`, elementwise.

    Raises DtypeError for complex numbers.
    """
    value = _real("fresnel", x)
    near = less(abs(value), 1.0)
    small = where(near, value, 0.0)
    fourth = square(square(small))
    sine = multiply(multiply(small, square(small)), horner(_fresnel_series(1), fourth))
    cosine = multiply(small, horner(_fresnel_series(0), fourth))
    sign, size = where(less(value, 0), -1.0, 1.0), abs(value)
    ends = greater(size, 2.0 ** (53 if value.type.dtype.bits == 64 else 24))  # from here on both are a half
    outer = cast(where(near, 1.0, where(ends, 1.0, size)), complex_of(value.type.dtype))
    turn = exp(multiply(square(outer), 0.5j * math.pi))
    whole = multiply(0.5 + 0.5j, subtract(1.0, multiply(turn, _in_upper_half(multiply(outer, _ROOT * (0.5 + 0.5j))))))
    far = (multiply(sign, where(ends, 0.5, part)) for part in (imag(whole), real(whole)))
    parts = [where(near, part, outside) for part, outside in zip((sine, cosine), far, strict=True)]
    s, c = (with_weak(cast(part, value.type.dtype), value.weak) for part in parts)
    return s, c


def _fresnel_series(odd: int) -> tuple[float, ...]:
    powers = range(odd, 2 * _FRESNEL, 2)
    return tuple((-1.0) ** (n // 2) * (math.pi / 2) ** n / (math.factorial(n) * (2 * n + 1)) for n in powers)
