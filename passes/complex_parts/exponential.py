"""Exponentials, logarithms, roots and powers by parts, with C99's special values (annex G) and NumPy's branch cuts."""
from __future__ import annotations

from lavax.passes.complex_parts.arithmetic import absolute, divide, multiply
from lavax.passes.complex_parts.parts import Parts, Real

_INFINITY = float("inf")
# exp(x/2)² is finite where exp(x)·cos(y) may be, though exp(x) is not; below this x exp(x) is finite in float32.
_LARGE = 88.0


def exponential_by(x: Real, factor: Real) -> Real:
    """exp(x)·factor, where exp(x) alone may overflow."""
    is_large = x > _LARGE
    grown = is_large.choose(x * 0.5, x).apply("exp")
    return grown * factor * is_large.choose(grown, 1.0)


def exp(z: Parts) -> Parts:
    """eˣ·(cos y + i·sin y)."""
    x, y = z
    falls, rises, wild = x.equals(-_INFINITY), x.equals(_INFINITY), ~y.is_finite
    real = (falls & wild).choose(0.0, (rises & wild).choose(_INFINITY, exponential_by(x, y.apply("cos"))))
    turned = (falls & wild).choose(0.0, exponential_by(x, y.apply("sin")))
    return Parts(real, y.equals(0.0).choose(y, turned))


def expm1(z: Parts) -> Parts:
    """eˣ·cos y − 1 = (eˣ − 1)·cos y − 2·sin²(y/2), exact for small z."""
    x, y = z
    half = (y * 0.5).apply("sin")
    small = x.apply("expm1") * y.apply("cos") - half * half * 2.0
    whole = exp(z)
    real = (x > 1.0).choose(whole.real - 1.0, (x.equals(-_INFINITY)).choose(-1.0, small))
    return Parts(y.equals(0.0).choose(x.apply("expm1"), real), whole.imaginary)


def log(z: Parts) -> Parts:
    """log|z| + i·arg z; near the unit circle log|z| is half of log1p(|z|² − 1)."""
    return Parts(log_of_length(z), z.imaginary.apply("atan2", z.real))


def log_of_length(z: Parts) -> Real:
    """log|z| = log(m) + log1p((n/m)²)/2 with the greater part m and the smaller one n."""
    a, b = abs(z.real), abs(z.imaginary)
    large, small = a.apply("maximum", b), a.apply("minimum", b)
    ratio = large.equals(0.0).choose(0.0, small / large)
    far = large.apply("log") + (ratio * ratio).apply("log1p") * 0.5
    near_one = (large > 0.5) & (large < 2.0)
    inside = near_one.choose(large, 1.0)
    near = ((inside - 1.0) * (inside + 1.0) + small * small).apply("log1p") * 0.5
    return (a.is_infinite | b.is_infinite).choose(_INFINITY, near_one.choose(near, far))


def log1p(z: Parts) -> Parts:
    """log(1 + z); for small z half of log1p(x(2 + x) + y²)."""
    x, y = z
    moved = Parts(x + 1.0, y)
    is_small = absolute(z) < 0.5
    near = (is_small.choose(x, 0.0) * (x + 2.0) + is_small.choose(y * y, 0.0)).apply("log1p") * 0.5
    return Parts(is_small.choose(near, log_of_length(moved)), y.apply("atan2", moved.real))


def sqrt(z: Parts) -> Parts:
    """The root in the right half plane: t = sqrt((|a| + |z|)/2), and b/2t (Kahan 1987)."""
    a, b = z
    largest = abs(a).apply("maximum", abs(b))
    huge, tiny = largest > 1e37, largest < 1e-35
    before = huge.choose(0.0625, tiny.choose(2.0**48, largest.constant(1.0)))
    after = huge.choose(4.0, tiny.choose(2.0**-24, largest.constant(1.0)))
    p, q = a * before, b * before
    root = ((abs(p) + absolute(Parts(p, q))) * 0.5).apply("sqrt")
    other = abs(q) / (root * 2.0) * after
    root = root * after
    is_right = ~a.has_sign
    real = is_right.choose(root, other)
    imaginary = is_right.choose(other, root).with_sign_of(b)
    is_zero = a.equals(0.0) & b.equals(0.0)
    real, imaginary = is_zero.choose(0.0, real), is_zero.choose(b, imaginary)
    # Beside an infinite imaginary part the real one does not matter, not even NaN.
    return Parts(b.is_infinite.choose(_INFINITY, real), b.is_infinite.choose(b, imaginary))


def rsqrt(z: Parts) -> Parts:
    root = sqrt(z)
    return divide(Parts(root.real.constant(1.0), root.real.constant(0.0)), root)


def logistic(z: Parts) -> Parts:
    """1/(1 + exp(−z))."""
    decay = exp(Parts(-z.real, -z.imaginary))
    one = z.real.constant(1.0)
    return divide(Parts(one, z.real.constant(0.0)), Parts(decay.real + 1.0, decay.imaginary))


def power(z: Parts, w: Parts) -> Parts:
    """exp(w·log z); 0 to a power with a positive real part is 0, and anything to the power 0 is 1."""
    found = exp(multiply(w, log(z)))
    of_zero = z.real.equals(0.0) & z.imaginary.equals(0.0)
    to_zero = w.real.equals(0.0) & w.imaginary.equals(0.0)
    vanishes = of_zero & (w.real > 0.0)
    real = to_zero.choose(1.0, vanishes.choose(0.0, found.real))
    return Parts(real, (to_zero | vanishes).choose(0.0, found.imaginary))
