"""Roots of unity by parts, as exact as float32 allows: the angle is reduced in integers."""
from __future__ import annotations

import math

from lavax.ir.graph import Node
from lavax.ir.types import DType, TensorType, int32
from lavax.passes.build.builder import add, build, cast, divide, equal, iota, multiply, splat, subtract
from lavax.passes.complex_parts.parts import Parts, Real, Truth


def unit_root(position: Node, length: int, part: DType) -> Parts:
    """exp(2πi·p/length) for 0 ≤ p < length.

    With the nearest quarter q of a turn, 4p − q·length counts parts of length/4 from it: an angle of at most π/4.
    """

    def times(x: Node, factor: int) -> Node:
        return multiply(x, splat(factor, x.type))

    quarter = divide(add(times(position, 8), splat(length, position.type)), splat(2 * length, position.type))
    rest = subtract(times(position, 4), times(quarter, length))
    angle = Real(cast(rest, part)) * (math.pi / (2 * length))
    cosine, sine = angle.apply("cos"), angle.apply("sin")

    def quarter_is(number: int) -> Truth:
        return Truth(equal(quarter, splat(number, quarter.type)))

    turned, opposite, back = quarter_is(1), quarter_is(2), quarter_is(3)
    real = turned.choose(-sine, opposite.choose(-cosine, back.choose(sine, cosine)))
    imaginary = turned.choose(cosine, opposite.choose(-sine, back.choose(-cosine, sine)))
    return Parts(real, imaginary)


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
