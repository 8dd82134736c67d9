"""The numbers that the first step of a cosine transform of type 3 begins with, of the words of its line.

The spectrum is s[k] = (x[k] − i·x[n − k])·w for n = 2h real numbers x and w = exp(πi·k/2n). What is joined are the
numbers s[k] ± s̄[h − k], and s̄[h − k] = exp(−πi/4)·(x[h − k] + i·x[h + k])·w: so four words and the root w make two
numbers, w·(sum) ± i·w⁵·(difference), which belong to the places k and h − k.
"""
from __future__ import annotations

from math import sqrt

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers
from lavax.backends.vulkan.emit.fourier.roots import unit_root
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, clamp, linear, unflatten
from lavax.passes.numerics.unit_roots import unit_root as host_root

_ROOT_OF_HALF = sqrt(0.5)


@dataclass(frozen=True)
class Spectrum:
    """A line of 2·`half` real numbers whose spectrum an invocation reads, from a place of its `own` on."""

    routine: RoutineShader
    single: Registers
    line: Index
    half: int
    own: Index
    roots: tuple[Number, Number] | None  # w and i·w⁵ of its own place; None if this is 0

    def joined(self, behind: int) -> tuple[Number, Number]:
        """The numbers of the place k that is so far behind the invocation's own, and of h − k."""
        place, length = linear([(self.own, 1)], behind), 2 * self.half
        words = self._words(place, length)
        return joined_words(self.single, words, self._roots(behind))

    def _words(self, place: Index, length: int) -> tuple[str, str, str, str]:
        """x at k, n − k, h − k and h + k; there is no x[n]."""
        body, zero = self.routine.body, self.single.text(0.0)
        ahead = self._ahead(place)
        first, second = (self._read(linear([(place, side)], self.half)) for side in (-1, 1))
        if place.high == 0:
            return ahead, zero, first, second
        opposite = self._read(linear([(clamp(place, 1, place.high), -1)], length))
        if place.low == 0:
            text = f"{body.index(place)} == 0 ? {zero} : {opposite}"
            opposite = body.declare(body.scopes[-1], self.single.kind, text)
        return ahead, opposite, first, second

    def _ahead(self, place: Index) -> str:
        """x at a place, of which the first one may have a factor."""
        return with_first(self.routine, self.single, place, self._read(place))

    def _read(self, place: Index) -> str:
        (operand,) = self.routine.operands
        return self.routine.read(operand, unflatten(linear([(self.line, 2 * self.half), (place, 1)]), operand.shape))

    def _roots(self, behind: int) -> tuple[Number, Number]:
        first, fifth = (host_root(power * behind, 8 * self.half) for power in (1, 5))
        if self.roots is None:
            return self.single.constant(first), self.single.constant(1j * fifth)
        if behind == 0:
            return self.roots
        own, own_fifth = self.roots
        turned = self.single.times(own_fifth, self.single.constant(fifth))
        return self.single.times(own, self.single.constant(first)), turned


def spectrum_of(
    routine: RoutineShader, single: Registers, line: Index, half: int, own: Index
) -> Spectrum:
    """The line's spectrum, for an invocation with that place of its own."""
    if own.is_constant and own.constant == 0:
        return Spectrum(routine, single, line, half, own, None)
    first, fifth = (unit_root(single, routine.body.index(linear([(own, power)])), 8 * half) for power in (1, 5))
    return Spectrum(routine, single, line, half, own, (first, single.named(f"-{fifth.imaginary}", fifth.real)))


def with_first(routine: RoutineShader, registers: Registers, place: Index, text: str) -> str:
    """What a step reads at a place of a line, the first one of which is multiplied by a factor (`first`)."""
    factor = routine.node.attrs["first"]
    if factor == 1.0 or place.low > 0:
        return text
    size = registers.text(factor)
    if place.high > 0:
        size = f"({routine.body.index(place)} == 0 ? {size} : {registers.text(1.0)})"
    return routine.body.declare(routine.body.scopes[-1], registers.kind, f"{size} * {text}")


def joined_words(
    single: Registers, words: tuple[str, str, str, str], roots: tuple[Number, Number]
) -> tuple[Number, Number]:
    """The numbers of the places k and h − k, by x at k, n − k, h − k and h + k, and the roots w and i·w⁵."""
    ahead, behind, first, second = words
    size = single.text(_ROOT_OF_HALF)
    turned = single.named(f"{size} * ({first} + {second})", f"{size} * ({second} - {first})")
    sum = single.named(f"{ahead} + {turned.real}", f"{turned.imaginary} - {behind}")
    difference = single.named(f"{ahead} - {turned.real}", f"-{turned.imaginary} - {behind}")
    even, odd = (single.times(x, root) for x, root in zip((sum, difference), roots, strict=True))
    mirrored = single.named(f"{even.real} - {odd.real}", f"{odd.imaginary} - {even.imaginary}")
    return single.plus(even, odd), mirrored
