"""Numbers of cosine transforms of lines whose neighbours in memory are neighbouring lines, real ones for spectra.

Of type 3 the spectrum is s[k] = (x[k] − i·x[n − k])·exp(πi·k/2n) for n real numbers x with x[n] = 0. Beyond half the
line, where it is the conjugate of s[n − k], the same expression gives it.
"""
from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers
from lavax.backends.vulkan.emit.fourier.cosine_spectra import with_first
from lavax.backends.vulkan.emit.fourier.roots import unit_root
from lavax.backends.vulkan.emit.fourier.rows_across import RealRows
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, clamp, linear, remainder
from lavax.passes.numerics.unit_roots import unit_root as host_root


def write_cosines(rows: RealRows, frequency: Index, x: Number) -> None:
    """Writes what two tables make of the number of a frequency up to half of the line: at n − k, and then at k, which
    may be the same place."""
    routine, length, two = rows.routine, rows.length, rows.registers.text(2.0)
    cosine, sine = (routine.read(table, (frequency,)) for table in routine.operands[1:])
    found = [f"{two} * ({x.real} * {cosine} + {x.imaginary} * {sine})"]
    places = [frequency, remainder(linear([(frequency, -1)], length), length)]
    if places[1] != places[0]:
        found.append(f"{two} * ({x.real} * {sine} - {x.imaginary} * {cosine})")
    for place, text in reversed([*zip(places, found, strict=False)]):
        is_reversed = routine.node.attrs["cosines"] < 0
        rows.write(linear([(place, -1)], length - 1) if is_reversed else place, text)


@dataclass(frozen=True)
class Spectrum:
    """The spectrum that lines of a type 3 have at the frequencies from one of an invocation's `own` on, whose root is
    exp(πi·own/2n)."""

    rows: RealRows
    own: Index
    root: Number | None  # None if its own frequency is 0

    def number(self, behind: int) -> Number:
        """That of a frequency that is so far behind its own."""
        frequency, registers = linear([(self.own, 1)], behind), self.rows.registers
        ahead = with_first(self.rows.routine, registers, frequency, self.rows.read(frequency))
        if frequency.high == 0:
            return Number(ahead, registers.zero)
        back = self.rows.read(linear([(clamp(frequency, 1, frequency.high), -1)], self.rows.length))
        if frequency.low == 0:
            back = f"({registers.body.index(frequency)} == 0 ? {registers.zero} : {back})"
        return registers.times(registers.named(ahead, f"-{back}"), self._root(behind))

    def _root(self, behind: int) -> Number:
        registers = self.rows.registers
        constant = registers.constant(host_root(behind, 4 * self.rows.length))
        if self.root is None:
            return constant
        single = Registers(registers.body, registers.part, 1, registers.sign)
        return single.times(self.root, constant) if behind else self.root


def spectrum_across(single: Registers, rows: RealRows, own: Index) -> Spectrum:
    """The spectrum for an invocation whose lowest frequency that is."""
    is_first = own.is_constant and own.constant == 0
    return Spectrum(rows, own, None if is_first else unit_root(single, single.body.index(own), 4 * rows.length))
