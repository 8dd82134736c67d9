"""Circular and hyperbolic functions and their inverses by parts, with C99's special values (annex G).

A circular function is a hyperbolic one turned by i: sin z = −i·sinh(iz), cos z = cosh(iz), tan z = −i·tanh(iz), and so
for inverses. The inverses follow Hull, Fairgrieve and Tang (1997), "Implementing the complex arcsine and arccosine
functions using exception handling".
"""
from __future__ import annotations

import math
from collections.abc import Callable

from lavax.ir.types import float64
from lavax.passes.complex_parts.arithmetic import absolute
from lavax.passes.complex_parts.exponential import exponential_by, log_of_length
from lavax.passes.complex_parts.parts import Parts, Real

_INFINITY = float("inf")
_FLAT = 20.0  # beyond, tanh is ±1 in float64
_STEEP = 0.6417  # asin(b) and acos(b) lose digits above this b
_NEAR = 1.5  # log(a + sqrt(a² − 1)) loses digits below this a


def _grown(function: str, x: Real, factor: Real) -> Real:
    """sinh(x)·factor or cosh(x)·factor, where the function alone may overflow."""
    is_large = abs(x) > 20.0
    half = exponential_by(abs(x), factor * 0.5)
    far = half if function == "cosh" else x.has_sign.choose(-half, half)
    return is_large.choose(far, is_large.choose(0.0, x).apply(function) * factor)


def sinh(z: Parts) -> Parts:
    """sinh x·cos y + i·cosh x·sin y."""
    x, y = z
    wild = ~y.is_finite
    kept = wild & (x.equals(0.0) | x.is_infinite)
    real = kept.choose(x, _grown("sinh", x, y.apply("cos")))
    return Parts(real, y.equals(0.0).choose(y, _grown("cosh", x, y.apply("sin"))))


def cosh(z: Parts) -> Parts:
    """cosh x·cos y + i·sinh x·sin y."""
    x, y = z
    wild = ~y.is_finite
    real = (wild & x.is_infinite).choose(_INFINITY, _grown("cosh", x, y.apply("cos")))
    grown = _grown("sinh", x, y.apply("sin"))
    imaginary = y.equals(0.0).choose(x.has_sign.choose(-y, y), (wild & x.equals(0.0)).choose(x, grown))
    return Parts(real, imaginary)


def tanh(z: Parts) -> Parts:
    """(sinh x·cosh x + i·sin y·cos y) / (sinh²x + cos²y); a sum of squares does not cancel."""
    x, y = z
    is_far, wild = abs(x) > _FLAT, ~y.is_finite
    held, limit = is_far.choose(0.0, x), x.constant(1.0).with_sign_of(x)
    sine, cosine, grown = y.apply("sin"), y.apply("cos"), held.apply("sinh")
    length = grown * grown + cosine * cosine
    tail = (abs(x) * -2.0).apply("exp") * 4.0
    imaginary = is_far.choose(sine * cosine * tail, sine * cosine / length)
    imaginary = y.equals(0.0).choose(y, (x.is_infinite & wild).choose(0.0, imaginary))
    at_wild = x.is_infinite.choose(limit, x.equals(0.0).choose(x, float("nan")))
    real = y.equals(0.0).choose(x.apply("tanh"), is_far.choose(limit, grown * held.apply("cosh") / length))
    return Parts(wild.choose(at_wild, real), imaginary)


def _turned(function: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """−i·f(iz)."""
    return lambda z: function(z.times_i()).times_minus_i()


def cos(z: Parts) -> Parts:
    return cosh(z.times_i())


class _Arc:
    """What the inverses have in common, for the size of the parts: x = |a| and y = |b|."""

    def __init__(self, x: Real, y: Real) -> None:
        self.x, self.y = x, y
        precise = x.node.dtype == float64
        epsilon = 2.0**-53 if precise else 2.0**-24
        self.is_large = x.apply("maximum", y) > 1 / epsilon
        self.right, self.left = absolute(Parts(x + 1.0, y)), absolute(Parts(x - 1.0, y))
        self.mean = (self.right + self.left) * 0.5
        self.is_inside = x <= 1.0
        self.is_thin = (y <= abs(x - 1.0) * epsilon) & (x < 1.0)

    @property
    def log_part(self) -> Real:
        """log(a + sqrt(a² − 1)), where a is the mean distance from 1 and −1: the part that grows."""
        x, y, mean = self.x, self.y, self.mean
        above = y * y / (self.right + (x + 1.0))
        below = self.is_inside.choose(y * (y / (self.left + (1.0 - x))), self.left + (x - 1.0))
        below = (self.is_inside & y.equals(0.0)).choose(0.0, below)
        excess = (above + below) * 0.5
        near = (excess + (excess * (mean + 1.0)).apply("sqrt")).apply("log1p")
        thin = y / ((1.0 - x) * (1.0 + x)).apply("sqrt")
        far = (mean + (mean * mean - 1.0).apply("sqrt")).apply("log")
        found = self.is_thin.choose(thin, (mean <= _NEAR).choose(near, far))
        return self.is_large.choose(log_of_length(Parts(x, y)) + math.log(2), found)

    @property
    def adjacent(self) -> Real:
        """The length whose angle with x is that of asin, for a steep quotient."""
        x, y = self.x, self.y
        whole, right = self.mean + x, self.right + (x + 1.0)
        inside = (whole * 0.5 * (y * y / right + (self.left + (1.0 - x)))).apply("sqrt")
        outside = y * (whole * 0.5 * (1.0 / right + 1.0 / (self.left + (x - 1.0)))).apply("sqrt")
        return self.is_inside.choose(inside, outside)

    @property
    def sine(self) -> Real:
        """asin of the quotient x/a."""
        quotient = self.x / self.mean
        is_steep = quotient > _STEEP
        steep = self.x.apply("atan2", self.adjacent)
        found = is_steep.choose(steep, is_steep.choose(0.0, quotient).apply("asin"))
        return self.is_large.choose(self.x.apply("atan2", self.y), found)

    def cosine(self, is_left: Real) -> Real:
        """acos of the quotient, which has the sign of `is_left`."""
        quotient = self.x / self.mean
        is_steep = quotient > _STEEP
        steep = self.adjacent.apply("atan2", self.x)
        found = is_steep.choose(steep, is_steep.choose(0.0, quotient).apply("acos"))
        found = self.is_large.choose(self.y.apply("atan2", self.x), found)
        return is_left.has_sign.choose(math.pi - found, found)


def asinh(z: Parts) -> Parts:
    x, y = z
    arc = _Arc(abs(y), abs(x))
    real, imaginary = arc.log_part.with_sign_of(x), arc.sine.with_sign_of(y)
    return Parts(real, y.equals(0.0).choose(y, imaginary))


def acos(z: Parts) -> Parts:
    x, y = z
    arc = _Arc(abs(x), abs(y))
    real = x.equals(0.0).choose(math.pi / 2, arc.cosine(x))
    return Parts(real, y.has_sign.choose(arc.log_part, -arc.log_part))


def acosh(z: Parts) -> Parts:
    """acos turned by ±i, into the right half plane."""
    found = acos(z)
    return Parts(abs(found.imaginary), found.real.with_sign_of(z.imaginary))


def atanh(z: Parts) -> Parts:
    """log1p(4x/((1 − x)² + y²))/4 + i·atan2(2y, (1 − x)(1 + x) − y²)/2, for x ≥ 0; far away 1/z + iπ/2.

    Beside the pole at 1, where y² may vanish, the real part is log(2/y)/2, by log1p of 2/(y·2ⁿ).
    """
    x, y = abs(z.real), abs(z.imaginary)
    precise = x.node.dtype == float64
    limit = 2.0**27 if precise else 2.0**12
    close, power = (2.0**-400, 60) if precise else (2.0**-50, 24)
    is_pole = x.equals(1.0) & (y < close)
    is_large = (x > limit) | (y > limit)
    held, beside = is_large.choose(0.5, x), is_large.choose(0.5, y)
    away = 1.0 - held
    divisor = is_pole.choose(beside * 2.0**power, away * away + beside * beside)
    near = (held * is_pole.choose(2.0, x.constant(4.0)) / divisor).apply("log1p")
    near = is_pole.choose((near + power * math.log(2)) * 0.5, near * 0.25)
    angle = (beside * 2.0).apply("atan2", away * (1.0 + held) - beside * beside) * 0.5
    length = absolute(Parts(x, y))
    far = length.is_infinite.choose(0.0, x / length / length)
    real = is_large.choose(far, near).with_sign_of(z.real)
    turned = y.is_infinite.choose(math.pi / 2, is_large.choose(math.pi / 2 - y / length / length, angle))
    vanishes = x.equals(0.0) | y.is_infinite
    real = vanishes.choose(x.constant(0.0).with_sign_of(z.real), real)
    return Parts(real, turned.with_sign_of(z.imaginary))


sin, tan, asin, atan = map(_turned, (sinh, tanh, asinh, atanh))
