"""Twiddle factors in shaders: roots of unity at places that are multiples of a frequency."""
from __future__ import annotations

from collections.abc import Callable

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers


def multiples(registers: Registers, count: int, root: Callable[[int], Number]) -> list[Number]:
    """The roots of the frequencies 1 to `count` − 1, given those of powers of two: products of few of these."""
    found: dict[int, Number] = {}
    for frequency in range(1, count):
        highest = 1 << frequency.bit_length() - 1
        rest = frequency - highest
        found[frequency] = registers.times(found[highest], found[rest]) if rest else root(frequency)
    return list(found.values())


def unit_root(registers: Registers, position: str, length: int) -> Number:
    """exp(±2πi·position/length), for one line, with the sign of the transform."""
    body = registers.body
    call = f"{body.uses.function('lx_unit_root')}({position}, {length})"
    name = body.declare(body.scopes[-1], "vec2", call)
    return Number(f"{name}.x", f"{name}.y") if registers.sign > 0 else Number(f"{name}.x", f"(-{name}.y)")
