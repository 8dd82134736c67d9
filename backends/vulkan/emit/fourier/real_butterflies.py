"""Transforms of an odd number of real points that are held in registers, and their inverses.

Of n = a·b points, b columns of a real points are transformed. The frequencies k and a − k of these are conjugates, so
(a + 1)/2 rows of b points are left, of which the first is real. A frequency beyond half the points is the conjugate of
the opposite one. The inverse takes the same way back.
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
        return [Number(points[0], registers.text(0.0))]
    way = _Way(count)
    if way.rows == count:
        return _of_prime(registers, points)
    columns = [spectrum_of(registers, [points[at] for at in way.places(column)]) for column in range(way.columns)]
    first = spectrum_of(registers, [column[0].real for column in columns])
    found = {way.frequency(0, k): number for k, number in enumerate(first)}
    for row in range(1, way.rows // 2 + 1):
        turned = [way.turned(registers, column[row], row, place) for place, column in enumerate(columns)]
        found |= {way.frequency(row, k): number for k, number in enumerate(transformed(registers, turned))}
    return [found[k] if k in found else _conjugate(found[count - k]) for k in range(count // 2 + 1)]


def points_of(registers: Registers, spectrum: Sequence[Number]) -> list[str]:
    """The sums over all frequencies, of which those up to half are given: as many real numbers as there are of both
    kinds. The imaginary part of the first frequency is ignored."""
    count = 2 * len(spectrum) - 1
    if count == 1:
        return [spectrum[0].real]
    way = _Way(count)
    if way.rows == count:
        return _to_prime(registers, spectrum)

    def at(row: int, column: int) -> Number:
        frequency = way.frequency(row, column)
        return spectrum[frequency] if frequency < len(spectrum) else _conjugate(spectrum[count - frequency])

    # The opposite of a frequency of the first row is in that row, so it is a spectrum of real numbers.
    first = points_of(registers, [at(0, k) for k in range(way.columns // 2 + 1)])
    rows = [[Number(x, registers.text(0.0)) for x in first]]
    for row in range(1, way.rows // 2 + 1):
        line = transformed(registers, [at(row, k) for k in range(way.columns)])
        rows.append([way.turned(registers, x, row, place) for place, x in enumerate(line)])
    found: dict[int, str] = {}
    for column in range(way.columns):
        found |= zip(way.places(column), points_of(registers, [row[column] for row in rows]), strict=True)
    return [found[place] for place in range(count)]


class _Way:
    """How n points are taken apart: `rows` points of each of so many `columns`. Numbers without a common factor need no
    roots between them (Good 1958)."""

    def __init__(self, count: int) -> None:
        self.count, prime = count, least_factor(count)
        alone = power_of(prime, count)
        self.is_coprime = 1 < alone < count
        self.rows = alone if self.is_coprime else prime
        self.columns = count // self.rows

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
        zero = registers.text(0.0)
        return transformed(registers, [Number(x, zero) for x in points])[: half + 1]
    named = partial(_named, registers)
    sums = [named([(points[j], 1.0), (points[-j], 1.0)]) for j in range(1, half + 1)]
    differences = [named([(points[j], 1.0), (points[-j], -1.0)]) for j in range(1, half + 1)]
    found = [Number(named([(x, 1.0) for x in (points[0], *sums)]), registers.text(0.0))]
    for frequency in range(1, half + 1):
        roots = [unit_root(registers.sign * frequency * j, count) for j in range(1, half + 1)]
        even = named([(points[0], 1.0), *((x, root.real) for x, root in zip(sums, roots, strict=True))])
        found.append(Number(even, named([(x, root.imag) for x, root in zip(differences, roots, strict=True)])))
    return found


def _to_prime(registers: Registers, spectrum: Sequence[Number]) -> list[str]:
    count, half = 2 * len(spectrum) - 1, len(spectrum) - 1
    first, others = spectrum[0].real, spectrum[1:]
    if count > LARGEST_DIRECT:
        whole = [Number(first, registers.text(0.0)), *others, *map(_conjugate, reversed(others))]
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
