"""Roots of unity by parts, as exact as their dtype allows: the angle is reduced in integers."""
from __future__ import annotations

import math
from collections.abc import Sequence

from lavax.ir.graph import Node
from lavax.ir.types import DType, TensorType, float64, int32
from lavax.passes.build.builder import add, build, cast, divide, equal, iota, multiply, splat, subtract
from lavax.passes.complex_parts.parts import Parts, Real, Truth

# sin r = r + r³·p(r²) and cos r = 1 − r²/2 + r⁴·q(r²) for |r| ≤ π/4 in float64, the highest powers first.
_SINE = (
    -7.586682497157786e-13, 1.6058531370931902e-10, -2.505210623088241e-08, 2.755731921933466e-06,
    -0.0001984126984126506, 0.008333333333333331, -0.16666666666666666,
)  # fmt: skip
_COSINE = (
    4.7458637732829623e-14, -1.1470460749696862e-11, 2.0876755790210228e-09, -2.755731922140032e-07,
    2.4801587301584642e-05, -0.0013888888888888887, 0.041666666666666664,
)  # fmt: skip


def unit_root(position: Node, length: int, part: DType) -> Parts:
    """exp(2πi·p/length) for 0 ≤ p < length.

    With the nearest quarter q of a turn, 4p − q·length counts parts of length/4 from it: an angle of at most π/4.
    """

    def times(x: Node, factor: int) -> Node:
        return multiply(x, splat(factor, x.type))

    quarter = divide(add(times(position, 8), splat(length, position.type)), splat(2 * length, position.type))
    rest = subtract(times(position, 4), times(quarter, length))
    angle = Real(cast(rest, part)) * (math.pi / (2 * length))
    cosine, sine = _of_small_angle(angle)

    def quarter_is(number: int) -> Truth:
        return Truth(equal(quarter, splat(number, quarter.type)))

    turned, opposite, back = quarter_is(1), quarter_is(2), quarter_is(3)
    real = turned.choose(-sine, opposite.choose(-cosine, back.choose(sine, cosine)))
    imaginary = turned.choose(cosine, opposite.choose(-sine, back.choose(-cosine, sine)))
    return Parts(real, imaginary)


def _of_small_angle(angle: Real) -> tuple[Real, Real]:
    """Cosine and sine of at most π/4. Those of float64 for any angle reduce it by 192 bits of 2/π in integers, which a
    CPU driver compiles for seconds, in each kernel that computes roots."""
    if angle.node.dtype != float64:
        return angle.apply("cos"), angle.apply("sin")
    square = angle * angle
    cosine = 1.0 - square * 0.5 + square * square * _polynomial(square, _COSINE)
    return cosine, angle + angle * square * _polynomial(square, _SINE)


def _polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    found = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        found = found * x + coefficient
    return found


def counted_roots(shape: tuple[int, ...], axes: tuple[int, ...], length: int, part: DType, forward: bool) -> Parts:
    """exp(∓2πi·jk/length) for positions j and k along two axes; − if `forward`."""
    type = TensorType(shape, int32)
    first, second = (iota(type, axis) for axis in axes)
    position = build("remainder", multiply(first, second), splat(length, type))
    return _directed(unit_root(position, length, part), forward)


def chirp(count: int, part: DType, forward: bool) -> Parts:
    """exp(∓πi·j²/count) for j below `count`: roots of twice the order, at j² modulo 2·count.

    The square is formed three bits of j at a time, so that it stays below 2^31.
    """
    type = TensorType((count,), int32)
    modulus = 2 * count
    line = iota(type, 0)
    square = splat(0, type)
    for shift in reversed(range(0, max(count - 1, 1).bit_length(), _BITS)):
        digit = divide(line, splat(1 << shift, type))
        digit = build("remainder", digit, splat(1 << _BITS, type))
        grown = add(multiply(square, splat(1 << _BITS, type)), multiply(line, digit))
        square = build("remainder", grown, splat(modulus, type))
    return _directed(unit_root(square, modulus, part), forward)


_BITS = 3


def _directed(roots: Parts, forward: bool) -> Parts:
    return Parts(roots.real, -roots.imaginary) if forward else roots
