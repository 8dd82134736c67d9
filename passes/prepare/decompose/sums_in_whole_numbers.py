"""Sums of floats at their places as sums of whole numbers, whose order does not matter.

The largest exponent of the updates of each place is found first. Then each update is a whole number of units of that
exponent, with as many bits below a float's as 64 bits leave for all updates, and atomic operations add these up in any
order: the same sum on every run, with less than is lost when floats are added one after the other.
"""

from __future__ import annotations

from collections.abc import Callable

from lavax.ir.graph import Node
from lavax.ir.types import DTYPES, float32, uint32
from lavax.passes.build.builder import (
    add,
    build,
    cast,
    equal,
    gather,
    logical_and,
    maximum,
    multiply,
    negate,
    splat,
    subtract,
    where,
)

# Of float32: the bits behind the exponent, the exponents of infinities, and what is subtracted from others.
_DIGITS, _SPECIAL, _BIAS = 23, 255, 127
_LONG, _LONG_WORD = DTYPES["i64"], DTYPES["u64"]
# Infinities are counted, by sign, in the halves of a sum; NaN is one of both.
_HALF = 31

Join = Callable[[Node, Node, Node, str], Node]


def summed(array: Node, updates: Node, places: Node, joined_to: Join) -> Node:
    """A flat array of float32 with updates added at their places, of which those beyond the array go nowhere."""
    word = updates.type.with_dtype(uint32)
    bits = build("bitcast", updates, type=word)
    exponent = _and(_shifted_right(bits, _DIGITS), _SPECIAL)
    none = splat(0, array.type.with_dtype(uint32))
    largest = joined_to(none, exponent, places, "maximum")
    spare = _spare_bits(updates.type.size)
    numbers = _whole_numbers(bits, exponent, gather(largest, (places,), (0,)), spare)
    total = joined_to(splat(0, array.type.with_dtype(_LONG)), numbers, places, "add")
    sums = _floats(total, largest, spare)
    return where(equal(total, splat(0, total.type)), array, add(array, sums))


def _spare_bits(count: int) -> int:
    """The bits below a float's last one, so that so many sums of 64 bits with a sign do not overflow."""
    return 63 - (_DIGITS + 1) - count.bit_length()


def _whole_numbers(bits: Node, exponent: Node, largest: Node, spare: int) -> Node:
    """Updates in units of the last spare bit of a float with the largest exponent; counts if that is of no number."""
    is_normal = build("greater", exponent, splat(0, exponent.type))
    hidden = where(is_normal, splat(1 << _DIGITS, bits.type), splat(0, bits.type))
    digits = _and(bits, (1 << _DIGITS) - 1)
    distance = subtract(_at_least_one(largest), _at_least_one(exponent))
    long = bits.type.with_dtype(_LONG_WORD)
    magnitude = build("shift_left", cast(build("or", digits, hidden), _LONG_WORD), splat(spare, long))
    number = cast(build("shift_right_logical", magnitude, cast(distance, _LONG_WORD)), _LONG)
    is_negative = build("greater_equal", bits, splat(1 << 31, bits.type))
    number = where(is_negative, negate(number), number)
    one, other = (splat(value, number.type) for value in (1, 1 << _HALF))
    is_nan = build("greater", digits, splat(0, digits.type))
    counted = where(is_nan, add(one, other), where(is_negative, other, one))
    is_special = equal(exponent, splat(_SPECIAL, exponent.type))
    has_special = equal(largest, splat(_SPECIAL, largest.type))
    return where(has_special, where(is_special, counted, splat(0, number.type)), number)


def _floats(total: Node, largest: Node, spare: int) -> Node:
    """Sums in such units as floats. Two factors, because one of both would be no float."""
    kind = total.type.with_dtype(float32)
    place = build("shift_left", _at_least_one(largest), splat(_DIGITS, largest.type))
    scale = build("bitcast", place, type=kind)
    unit = splat(2.0 ** -(spare + _DIGITS), kind)
    number = multiply(multiply(cast(total, float32), unit), scale)
    low = splat((1 << _HALF) - 1, total.type)
    has_plus, has_minus = (
        build("greater", part, splat(0, total.type))
        for part in (
            build("and", total, low),
            build("shift_right_arithmetic", total, splat(_HALF, total.type)),
        )
    )
    infinity = where(has_minus, splat(float("-inf"), kind), splat(float("inf"), kind))
    special = where(logical_and(has_plus, has_minus), splat(float("nan"), kind), infinity)
    return where(equal(largest, splat(_SPECIAL, largest.type)), special, number)


def _at_least_one(exponent: Node) -> Node:
    """Numbers without a hidden bit have the unit of those with exponent 1."""
    return maximum(exponent, splat(1, exponent.type))


def _and(bits: Node, mask: int) -> Node:
    return build("and", bits, splat(mask, bits.type))


def _shifted_right(bits: Node, distance: int) -> Node:
    return build("shift_right_logical", bits, splat(distance, bits.type))
