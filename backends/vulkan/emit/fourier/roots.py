"""Twiddle factors in shaders: roots of unity at places that are multiples of a frequency."""
from __future__ import annotations

from collections.abc import Callable

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, vector_type


def multiples(registers: Registers, count: int, root: Callable[[int], Number]) -> list[Number]:
    """The roots of the frequencies 1 to `count` − 1, given those of powers of two: products of few of these."""
    found: dict[int, Number] = {}
    for frequency in range(1, count):
        highest = 1 << frequency.bit_length() - 1
        rest = frequency - highest
        found[frequency] = registers.times(found[highest], found[rest]) if rest else root(frequency)
    return list(found.values())


def multiples_from(registers: Registers, start: Number, count: int, root: Callable[[int], Number]) -> list[Number]:
    """`start` times the roots of the frequencies 0 to `count` − 1, given those of powers of two."""
    found, highest = [start], 1
    while highest < count:
        power = root(highest)
        found += [registers.times(x, power) for x in found[: count - highest]]
        highest *= 2
    return found


def unit_root(registers: Registers, position: str, length: int) -> Number:
    """exp(±2πi·position/length), for one line, with the sign of the transform."""
    body = registers.body
    call = f"{body.uses.function('lx_unit_root', registers.part)}({position}, {length})"
    name = body.declare(body.scopes[-1], vector_type(registers.part, 2), call)
    return Number(f"{name}.x", f"{name}.y") if registers.sign > 0 else Number(f"{name}.x", f"(-{name}.y)")


def of_both(double: Registers, first: Number, second: Number) -> Number:
    """Numbers of two lines, side by side."""
    pairs = (first.real, second.real), (first.imaginary, second.imaginary)
    return double.named(*(f"{double.kind}({a})" if a == b else f"{double.kind}({a}, {b})" for a, b in pairs))


def of_one(both: Number, line: int) -> Number:
    """The number of a line, of which 0 is the first."""
    return Number(f"{both.real}.{'xyzw'[line]}", f"{both.imaginary}.{'xyzw'[line]}")
