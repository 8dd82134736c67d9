"""Transforms of a few points that are held in registers, written out without loops.

Points of n = a·b are transformed in columns of a points, multiplied by roots that are constants of the shader,
rounded from float64, and transformed in rows of b. Odd primes pair the points at equal distances from the ends, which
halves the products (Singleton 1969); those beyond 31 are convolutions.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import VECTOR, literal, type_name
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType
from lavax.passes.numerics.primes import generator_of
from lavax.passes.numerics.unit_roots import unit_root

# The radices, in the order in which they are split off.
_RADICES = (4, 2, 3, 5)
_CLOSE = 1e-12
LARGEST_DIRECT = 31  # points of a prime number that are no convolution


def vector_type(part: DType, width: int) -> str:
    """The GLSL type of one, two or four numbers of a dtype."""
    return type_name(part, width) if width != 2 else type_name(part, VECTOR).replace("4", "2")


@dataclass(frozen=True)
class Number:
    """The names of a complex number's parts in a shader."""

    real: str
    imaginary: str


@dataclass(frozen=True)
class Registers:
    """Writes arithmetic on complex numbers, whose parts are numbers of a dtype, of one, two or four lines at once.

    `sign` is that of exponents.
    """

    body: Body
    part: DType
    together: int
    sign: int

    @property
    def kind(self) -> str:
        """The GLSL type of a part."""
        return vector_type(self.part, self.together)

    @property
    def zero(self) -> str:
        """A part that is 0 in all lines."""
        return self.text(0.0) if self.together == 1 else f"{self.kind}({self.text(0.0)})"

    def text(self, factor: float) -> str:
        return literal(factor, self.part)

    def named(self, real: str, imaginary: str) -> Number:
        return Number(*(self.body.declare(self.body.scopes[-1], self.kind, text) for text in (real, imaginary)))

    def constant(self, value: complex) -> Number:
        return Number(self.text(value.real), self.text(value.imag))

    def plus(self, x: Number, y: Number) -> Number:
        return self.named(f"{x.real} + {y.real}", f"{x.imaginary} + {y.imaginary}")

    def minus(self, x: Number, y: Number) -> Number:
        return self.named(f"{x.real} - {y.real}", f"{x.imaginary} - {y.imaginary}")

    def times(self, x: Number, y: Number) -> Number:
        real = f"{x.real} * {y.real} - {x.imaginary} * {y.imaginary}"
        return self.named(real, f"{x.real} * {y.imaginary} + {x.imaginary} * {y.real}")

    def scaled(self, x: Number, factor: float) -> Number:
        return self.named(f"{x.real} * {self.text(factor)}", f"{x.imaginary} * {self.text(factor)}")

    def sum_scaled(self, first: Number, terms: Sequence[tuple[Number, float]]) -> Number:
        texts = []
        for side in ("real", "imaginary"):
            parts = [getattr(first, side), *(f"{getattr(x, side)} * {self.text(factor)}" for x, factor in terms)]
            texts.append(" + ".join(parts))
        return self.named(*texts)

    def plus_i_times(self, x: Number, y: Number) -> Number:
        return self.named(f"{x.real} - {y.imaginary}", f"{x.imaginary} + {y.real}")

    def minus_i_times(self, x: Number, y: Number) -> Number:
        return self.named(f"{x.real} + {y.imaginary}", f"{x.imaginary} - {y.real}")

    def turned(self, x: Number, place: int, count: int) -> Number:
        """x·exp(±2πi·place/count)."""
        if place % count == 0:
            return x
        root = unit_root(self.sign * place, count)
        real, imaginary = root.real, root.imag
        if abs(imaginary) < _CLOSE:
            return self.named(f"-{x.real}", f"-{x.imaginary}")
        if abs(real) < _CLOSE:
            sides = (f"-{x.imaginary}", x.real) if imaginary > 0 else (x.imaginary, f"-{x.real}")
            return self.named(*sides)
        if abs(abs(real) - abs(imaginary)) < _CLOSE:
            size = self.text(abs(real))
            sum, difference = f"({x.real} + {x.imaginary}) * ", f"({x.real} - {x.imaginary}) * "
            down = real * imaginary < 0  # the root is ±(1 − i)
            sides = (sum, f"({x.imaginary} - {x.real}) * ") if down else (difference, sum)
            signs = "-" if real < 0 else ""
            return self.named(*(f"{side}{signs}{size}" for side in sides))
        a, b = self.text(real), self.text(imaginary)
        return self.named(f"{x.real} * {a} - {x.imaginary} * {b}", f"{x.real} * {b} + {x.imaginary} * {a}")


def transformed(registers: Registers, points: Sequence[Number]) -> list[Number]:
    """The transform of the points, in the order of frequencies."""
    count = len(points)
    if count == 1:
        return list(points)
    if count in _OWN:
        return _OWN[count](registers, points)
    width = next((radix for radix in _RADICES if count % radix == 0), least_factor(count))
    if width == count:
        return _prime(registers, points) if count <= LARGEST_DIRECT else _by_convolution(registers, points)
    alone = power_of(least_factor(count), count)
    if alone < count:
        return _of_coprime(registers, points, alone)
    rest = count // width
    columns = [_OWN.get(width, _prime)(registers, points[start::rest]) for start in range(rest)]
    found: list[Number] = [points[0]] * count
    for frequency in range(width):
        row = [registers.turned(column[frequency], frequency * j, count) for j, column in enumerate(columns)]
        for other, value in enumerate(transformed(registers, row)):
            found[other * width + frequency] = value
    return found


def _of_coprime(registers: Registers, points: Sequence[Number], width: int) -> list[Number]:
    """Points of n = a·b without a common factor, a = `width`: in another order they need no roots between columns and
    rows (Good 1958). The point b·j + a·k is in row j and column k, the frequency f in row f and column f modulo their
    numbers."""
    count, rest = len(points), len(points) // width
    columns = [
        transformed(registers, [points[(rest * j + width * k) % count] for j in range(width)]) for k in range(rest)
    ]
    rows = [transformed(registers, [column[row] for column in columns]) for row in range(width)]
    return [rows[frequency % width][frequency % rest] for frequency in range(count)]


def _by_convolution(registers: Registers, points: Sequence[Number]) -> list[Number]:
    """Points of a prime number p as a convolution of p − 1 numbers (Rader 1968), with a spectrum of constants."""
    first, count = points[0], len(points)
    generator = generator_of(count)
    ahead = [pow(generator, place, count) for place in range(count - 1)]
    back = [pow(generator, -place, count) for place in range(count - 1)]
    roots = np.array([unit_root(registers.sign * place, count) for place in back])
    spectrum = (np.fft.fft(roots) / (count - 1)).tolist()
    turned = transformed(replace(registers, sign=-1), [points[place] for place in ahead])
    total = registers.plus(first, turned[0])
    product = [registers.times(x, registers.constant(factor)) for x, factor in zip(turned, spectrum, strict=True)]
    product[0] = registers.plus(product[0], first)
    found = dict(zip(back, transformed(replace(registers, sign=1), product), strict=True))
    return [total, *(found[frequency] for frequency in range(1, count))]


def power_of(prime: int, number: int) -> int:
    """The largest power of the prime that divides the number."""
    found = 1
    while number % (found * prime) == 0:
        found *= prime
    return found


def least_factor(number: int) -> int:
    return next(factor for factor in range(2, number + 1) if number % factor == 0)


def _two(registers: Registers, points: Sequence[Number]) -> list[Number]:
    a, b = points
    return [registers.plus(a, b), registers.minus(a, b)]


def _four(registers: Registers, points: Sequence[Number]) -> list[Number]:
    a, b, c, d = points
    even, other_even = _two(registers, (a, c))
    odd, other_odd = _two(registers, (b, d))
    ahead, back = registers.plus_i_times(other_even, other_odd), registers.minus_i_times(other_even, other_odd)
    second, last = (ahead, back) if registers.sign > 0 else (back, ahead)
    return [registers.plus(even, odd), second, registers.minus(even, odd), last]


def _prime(registers: Registers, points: Sequence[Number]) -> list[Number]:
    first, *others = points
    count, half = len(points), len(others) // 2
    sums = [registers.plus(others[j], others[-1 - j]) for j in range(half)]
    differences = [registers.minus(others[j], others[-1 - j]) for j in range(half)]
    found = [registers.sum_scaled(first, [(sum, 1.0) for sum in sums])] + [first] * (count - 1)
    for frequency in range(1, half + 1):
        roots = [unit_root(registers.sign * frequency * j, count) for j in range(1, half + 1)]
        even = registers.sum_scaled(first, [(x, root.real) for x, root in zip(sums, roots, strict=True)])
        odd_terms = [(x, root.imag) for x, root in zip(differences, roots, strict=True)]
        odd = registers.sum_scaled(registers.scaled(*odd_terms[0]), odd_terms[1:])
        found[frequency] = registers.plus_i_times(even, odd)
        found[count - frequency] = registers.minus_i_times(even, odd)
    return found


_OWN: dict[int, Callable[[Registers, Sequence[Number]], list[Number]]] = {2: _two, 4: _four}
