"""Arithmetic of complex numbers by their parts: z = a + bi and w = c + di."""
from __future__ import annotations

from lavax.passes.complex_parts.parts import Parts, Real, Truth


def negate(z: Parts) -> Parts:
    return Parts(-z.real, -z.imaginary)


def conjugate(z: Parts) -> Parts:
    return Parts(z.real, -z.imaginary)


def multiply(z: Parts, w: Parts) -> Parts:
    (a, b), (c, d) = z, w
    return Parts(a * c - b * d, a * d + b * c)


def divide(z: Parts, w: Parts) -> Parts:
    """Smith's algorithm (1962), which divides by the greater part of w first, as NumPy does: w² need not be finite.

    By a zero of whatever signs both parts are divided on their own, as by 0: a part that is infinite or NaN leaves the
    other as it is.
    """
    (a, b), (c, d) = z, w
    flat = abs(c) >= abs(d)
    large, small = flat.choose(c, d), flat.choose(d, c)
    is_zero = c.equals(0.0) & d.equals(0.0)
    ratio = is_zero.choose(0.0, small / large)
    scale = 1.0 / is_zero.choose(0.0, large + small * ratio)
    # With c the greater: (a + b·d/c, b − a·d/c); with d the greater: (a·c/d + b, b·c/d − a).
    real = is_zero.choose(a, flat.choose(a + b * ratio, a * ratio + b)) * scale
    imaginary = is_zero.choose(b, flat.choose(b - a * ratio, b * ratio - a)) * scale
    return Parts(real, imaginary)


def absolute(z: Parts) -> Real:
    """The length without overflow; infinite where a part is, even beside NaN."""
    a, b = abs(z.real), abs(z.imaginary)
    large, small = a.apply("maximum", b), a.apply("minimum", b)
    ratio = large.equals(0.0).choose(0.0, small / large)
    length = large * (ratio * ratio + 1.0).apply("sqrt")
    return (a.is_infinite | b.is_infinite).choose(float("inf"), length)


def equal(z: Parts, w: Parts) -> Truth:
    return z.real.equals(w.real) & z.imaginary.equals(w.imaginary)


def not_equal(z: Parts, w: Parts) -> Truth:
    return ~equal(z, w)
