"""Transforms of real points that are held in registers, and their inverses.

Of n = a·b points, b columns of a real points are transformed. The frequencies k and a − k of these are conjugates, so
a/2 + 1 rows of b points are left, of which the first is real, and for an even a the last. A frequency beyond half the
points is the conjugate of the opposite one. The inverse takes the same way back. Powers of two are halved, into points
at even and at odd places, whose half spectra give each two frequencies of the whole one.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from lavax.backends.vulkan.emit.fourier.butterflies import (
    LARGEST_DIRECT,
    Number,
    Registers,
    least_factor,
    power_of,
    transformed,
)
from lavax.passes.numerics.unit_roots import unit_root


def spectrum_of(registers: Registers, points: Sequence[str]) -> list[Number]:
    """The frequencies up to half of the points, in order."""
    count = len(points)
    if count == 1:
        return [Number(points[0], registers.zero)]
    way = _Way(count)
    if way.is_halved:
        return _of_halves(registers, points)
    if way.rows == count:
        return _of_prime(registers, points)
    columns = [spectrum_of(registers, [points[at] for at in way.places(column)]) for column in range(way.columns)]
    first = spectrum_of(registers, [column[0].real for column in columns])
    found = {way.frequency(0, k): number for k, number in enumerate(first)}
    if way.rows % 2 == 0:  # the columns' last frequency is real, too
        last = spectrum_of(registers, [column[-1].real for column in columns])
        found |= {way.frequency(way.rows // 2, k): number for k, number in enumerate(last)}
    for row in range(1, (way.rows + 1) // 2):
        turned = [way.turned(registers, column[row], row, place) for place, column in enumerate(columns)]
        found |= {way.frequency(row, k): number for k, number in enumerate(transformed(registers, turned))}
    return [found[k] if k in found else _conjugate(found[count - k]) for k in range(count // 2 + 1)]


def points_of(registers: Registers, spectrum: Sequence[Number], count: int) -> list[str]:
    """`count` real numbers, the sums over all frequencies, of which those up to half are given. The imaginary part of
    the first frequency is ignored, and for an even count that of the last one."""
    if count == 1:
        return [spectrum[0].real]
    way = _Way(count)
    if way.is_halved:
        return _to_halves(registers, spectrum)
    if way.rows == count:
        return _to_prime(registers, spectrum)

    def at(row: int, column: int) -> Number:
        frequency = way.frequency(row, column)
        return spectrum[frequency] if frequency < len(spectrum) else _conjugate(spectrum[count - frequency])

    def real_row(row: int) -> list[Number]:
        """The opposite of a frequency of this row is in it, so that it is a spectrum of real numbers."""
        line = points_of(registers, [at(row, k) for k in range(way.columns // 2 + 1)], way.columns)
        return [Number(x, registers.zero) for x in line]

    rows = [real_row(0)]
    for row in range(1, (way.rows + 1) // 2):
        line = transformed(registers, [at(row, k) for k in range(way.columns)])
        rows.append([way.turned(registers, x, row, place) for place, x in enumerate(line)])
    if way.rows % 2 == 0:
        rows.append(real_row(way.rows // 2))
    found: dict[int, str] = {}
    for column in range(way.columns):
        points = points_of(registers, [row[column] for row in rows], way.rows)
        found |= zip(way.places(column), points, strict=True)
    return [found[place] for place in range(count)]


def _of_halves(registers: Registers, points: Sequence[str]) -> list[Number]:
    """A power of two: the frequencies k and h − k, for half the points h, are the sum of those of even and odd places
    with a root between them, and the conjugate of their difference."""
    half = len(points) // 2
    even, odd = (spectrum_of(registers, points[side::2]) for side in (0, 1))
    found: dict[int, Number] = {}
    for k in range(half // 2 + 1):
        if 2 * k == half:  # both are real, and the root is ∓i
            sign = "-" if registers.sign < 0 else ""
            found[k] = Number(even[k].real, f"({sign}{odd[k].real})")
            continue
        if k == 0:
            sums = [_named(registers, [(even[0].real, 1.0), (odd[0].real, sign)]) for sign in (1.0, -1.0)]
            found[0], found[half] = (Number(x, registers.zero) for x in sums)
            continue
        turned = registers.turned(odd[k], k, len(points))
        found[k] = registers.plus(even[k], turned)
        real, imaginary = f"{even[k].real} - {turned.real}", f"{turned.imaginary} - {even[k].imaginary}"
        found[half - k] = registers.named(real, imaginary)
    return [found[k] for k in range(half + 1)]


def _to_halves(registers: Registers, spectrum: Sequence[Number]) -> list[str]:
    """The other way: the spectra of the numbers at even and at odd places are sums and differences of the frequencies k
    and the conjugates of h − k, these with a root."""
    half = len(spectrum) - 1
    even, odd = [], []
    for k in range(half // 2 + 1):
        x, mirrored = spectrum[k], spectrum[half - k]
        if 2 * k == half:
            doubled = [_named(registers, [(part, 2.0)]) for part in (x.real, x.imaginary)]
            sign = "-" if registers.sign > 0 else ""
            even.append(Number(doubled[0], registers.zero))
            odd.append(Number(f"({sign}{doubled[1]})", registers.zero))
        elif k == 0:
            ends = [_named(registers, [(x.real, 1.0), (mirrored.real, sign)]) for sign in (1.0, -1.0)]
            even.append(Number(ends[0], registers.zero))
            odd.append(Number(ends[1], registers.zero))
        else:
            even.append(registers.named(f"{x.real} + {mirrored.real}", f"{x.imaginary} - {mirrored.imaginary}"))
            less = registers.named(f"{x.real} - {mirrored.real}", f"{x.imaginary} + {mirrored.imaginary}")
            odd.append(registers.turned(less, k, 2 * half))
    both = (points_of(registers, side, half) for side in (even, odd))
    return [x for pair in zip(*both, strict=True) for x in pair]


class _Way:
    """How n points are taken apart: `rows` points of each of so many `columns`. Numbers without a common factor need no
    roots between them (Good 1958)."""

    def __init__(self, count: int) -> None:
        self.count, prime = count, least_factor(count)
        alone = power_of(prime, count)
        self.is_coprime = 1 < alone < count
        self.rows = alone if self.is_coprime else prime
        self.columns = count // self.rows
        self.is_halved = not self.is_coprime and self.rows == 2

    def places(self, column: int) -> Iterable[int]:
        """Where a column's points are."""
        step = self.rows if self.is_coprime else 1
        return [(self.columns * j + step * column) % self.count for j in range(self.rows)]

    def frequency(self, row: int, column: int) -> int:
        """Of a row's transform at a column."""
        if not self.is_coprime:
            return row + self.rows * column
        inverse = pow(self.rows, -1, self.columns)
        return row + self.rows * ((column - row) * inverse % self.columns)

    def turned(self, registers: Registers, x: Number, row: int, column: int) -> Number:
        return x if self.is_coprime else registers.turned(x, row * column, self.count)


def _conjugate(x: Number) -> Number:
    return Number(x.real, f"(-{x.imaginary})")


def _of_prime(registers: Registers, points: Sequence[str]) -> list[Number]:
    """Points at equal distances from the ends have the same cosine, and opposite sines."""
    count, half = len(points), len(points) // 2
    if count > LARGEST_DIRECT:
        zero = registers.zero
        return transformed(registers, [Number(x, zero) for x in points])[: half + 1]
    named = partial(_named, registers)
    sums = [named([(points[j], 1.0), (points[-j], 1.0)]) for j in range(1, half + 1)]
    differences = [named([(points[j], 1.0), (points[-j], -1.0)]) for j in range(1, half + 1)]
    found = [Number(named([(x, 1.0) for x in (points[0], *sums)]), registers.zero)]
    for frequency in range(1, half + 1):
        roots = [unit_root(registers.sign * frequency * j, count) for j in range(1, half + 1)]
        even = named([(points[0], 1.0), *((x, root.real) for x, root in zip(sums, roots, strict=True))])
        found.append(Number(even, named([(x, root.imag) for x, root in zip(differences, roots, strict=True)])))
    return found


def _to_prime(registers: Registers, spectrum: Sequence[Number]) -> list[str]:
    count, half = 2 * len(spectrum) - 1, len(spectrum) - 1
    first, others = spectrum[0].real, spectrum[1:]
    if count > LARGEST_DIRECT:
        whole = [Number(first, registers.zero), *others, *map(_conjugate, reversed(others))]
        return [x.real for x in transformed(registers, whole)]
    named = partial(_named, registers)
    found = [named([(first, 1.0), *((x.real, 2.0) for x in others)])] * count
    for place in range(1, half + 1):
        roots = [2 * unit_root(registers.sign * place * k, count) for k in range(1, half + 1)]
        even = named([(first, 1.0), *((x.real, root.real) for x, root in zip(others, roots, strict=True))])
        odd = named([(x.imaginary, root.imag) for x, root in zip(others, roots, strict=True)])
        found[place] = named([(even, 1.0), (odd, -1.0)])
        found[count - place] = named([(even, 1.0), (odd, 1.0)])
    return found


def _named(registers: Registers, terms: Sequence[tuple[str, float]]) -> str:
    """A sum of numbers times factors."""
    known = {1.0: "", -1.0: "-"}
    texts = [f"{known[by]}{x}" if by in known else f"{x} * {registers.text(by)}" for x, by in terms]
    text = " + ".join(texts).replace("+ -", "- ")
    return registers.body.declare(registers.body.scopes[-1], registers.kind, text)
