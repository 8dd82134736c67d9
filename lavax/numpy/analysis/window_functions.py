"""Windows that taper a signal at its ends, and the Bessel function of one of them."""
from __future__ import annotations

import math

from lavax.ir.default_dtypes import default_float
from lavax.ir.types import TensorType
from lavax.numpy._core.application import as_floating, real_function
from lavax.numpy._core.errors import shape_error
from lavax.numpy._core.number_arguments import whole_number
from lavax.numpy._core.operands import ArrayLike
from lavax.numpy.arrays.creation import iota
from lavax.numpy.elementwise.arithmetic import abs, add, divide, multiply, subtract
from lavax.numpy.elementwise.exponential import exp
from lavax.numpy.elementwise.extrema import maximum
from lavax.numpy.elementwise.powers import sqrt
from lavax.numpy.elementwise.trigonometric import cos
from lavax.tracer.values.value import Value

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]

i0 = real_function("bessel_i0", "The modified Bessel function of the first kind of order 0", "i0")
_scaled_i0 = real_function("bessel_i0e", "i0(x) exp(-|x|)", "i0e")


def _places(name: str, count: int) -> Value:
    """From -1 to 1 at equal distances; 0 for one point."""
    number = whole_number("the number of points", count)
    if number < 0:
        raise shape_error(f"{name}: {number} is not a number of points")
    line = iota(TensorType((number,), default_float()), 0)
    return divide(subtract(multiply(line, 2.0), float(number - 1)), float(max(number - 1, 1)))


def bartlett(M: int) -> Value:
    """A triangle of `M` points with zeros at its ends."""
    return subtract(1.0, abs(_places("bartlett", M)))


def hanning(M: int) -> Value:
    """`M` points of 0.5 + 0.5 cos(pi t), t from -1 to 1."""
    return add(0.5, multiply(0.5, cos(multiply(_places("hanning", M), math.pi))))


def hamming(M: int) -> Value:
    """`M` points of 0.54 + 0.46 cos(pi t), t from -1 to 1."""
    return add(0.54, multiply(0.46, cos(multiply(_places("hamming", M), math.pi))))


def blackman(M: int) -> Value:
    """`M` points of 0.42 + 0.5 cos(pi t) + 0.08 cos(2 pi t), t from -1 to 1."""
    # By cos(2 a) = 2 cos(a)^2 - 1 it is a product, without cancellation at the ends.
    wave = cos(multiply(_places("blackman", M), math.pi))
    return multiply(0.16, multiply(add(1.0, wave), add(2.125, wave)))


def kaiser(M: int, beta: ArrayLike) -> Value:
    """`M` points of i0(beta sqrt(1 - t^2)) / i0(beta), t from -1 to 1, without overflow at large `beta`.

    Raises ShapeError if `beta` is not one number.
    """
    breadth = as_floating(beta)
    if breadth.ndim:
        raise shape_error(f"kaiser: beta must be one number, got {breadth.type}")
    places = _places("kaiser", M)
    # The root has no derivative at 0, at the ends; the derivative by `beta` is 0 there.
    height = sqrt(maximum(multiply(subtract(1.0, places), add(1.0, places)), 0.0))
    argument = multiply(breadth, height)
    fall = exp(subtract(abs(argument), abs(breadth)))
    return multiply(divide(_scaled_i0(argument), _scaled_i0(breadth)), fall)
