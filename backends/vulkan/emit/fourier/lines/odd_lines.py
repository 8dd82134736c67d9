"""Steps of transforms of real lines of odd length: on real numbers, and the complex ones that know half of a spectrum.

The steps on real numbers hold a line in registers (real_butterflies.py). Between the steps only half of the columns
are there, and one more if that makes them an even number. So the last complex step writes each frequency beyond half
the line as the conjugate of the opposite one, and the first one of the inverse reads it so.
"""
from __future__ import annotations

from contextlib import nullcontext

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.choose import REGISTER_LIMITS
from lavax.backends.vulkan.emit.fourier.folded_places import place_of_folded
from lavax.backends.vulkan.emit.fourier.numbers import (
    open_step,
    read_neighbours,
    read_number,
    write_neighbours,
    write_number,
    write_real,
)
from lavax.backends.vulkan.emit.fourier.real_butterflies import points_of, spectrum_of
from lavax.backends.vulkan.emit.fourier.roots import multiples, of_both, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.spectra import write_odd_frequency
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, constant, linear, quotient, remainder, unflatten
from lavax.passes.kernels.kernel import Kernel


def emit_from_reals(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a first step."""
    routine = open_step(kernel, profile, lifted)
    lines, points, rest = routine.operands[0].shape
    is_real, held = routine.node.attrs["cosines"] != 0, routine.node.type.size // (2 * lines * rest)
    with routine.open_turns(lines * rest, turns_of(lines * rest, profile, lifted)) as number:
        single = Registers(routine.body, routine.node.dtype, 1, -1)
        line, place = quotient(number, rest), remainder(number, rest)
        starts = (linear([(line, points * rest), (place, 1)], point * rest) for point in range(points))
        half = spectrum_of(single, [routine.read(routine.operands[0], _at(routine, start)) for start in starts])
        if is_real:
            for k, x in enumerate(half):
                write_odd_frequency(routine, single, number, points, constant(k), x)
        else:
            found = [half[k] if k < len(half) else _conjugate(half[points - k]) for k in range(held)]
            turned = _turned(single, found, place, points * rest) if rest > 1 else found
            _write_row(routine, linear([(number, held)]), turned)
    return routine.close(lines * rest)


def emit_to_reals(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step of the inverse."""
    routine = open_step(kernel, profile, lifted)
    (lines, rest, held, _), points = routine.operands[0].shape, routine.node.attrs["columns"]
    with routine.open_turns(lines * rest, turns_of(lines * rest, profile, lifted)) as number:
        single = Registers(routine.body, routine.node.dtype, 1, 1)
        line, place = quotient(number, rest), remainder(number, rest)
        row = _read_row(routine, linear([(number, held)]), held)[: points // 2 + 1]
        if rest > 1:
            row = _turned(single, row, place, points * rest)
        for point, text in enumerate(points_of(single, row, points)):
            at, sign = place_of_folded(routine, linear([(place, 1)], point * rest), points * rest)
            write_real(routine, linear([(line, points * rest), (at, 1)]), f"{sign}({text})" if sign else text)
    return routine.close(lines * rest)


def _at(routine: RoutineShader, position: Index) -> tuple[Index, ...]:
    return unflatten(position, routine.operands[0].shape)


def _conjugate(x: Number) -> Number:
    return Number(x.real, f"(-{x.imaginary})")


def _turned(single: Registers, numbers: list[Number], place: Index, length: int) -> list[Number]:
    """The numbers times the roots of their frequency and their place."""

    def root(frequency: int) -> Number:
        return unit_root(single, single.body.index(linear([(place, frequency)])), length)

    roots = multiples(single, len(numbers), root)
    return [numbers[0], *(single.times(x, root) for x, root in zip(numbers[1:], roots, strict=True))]


def _read_row(routine: RoutineShader, start: Index, count: int) -> list[Number]:
    operand = routine.operands[0]
    if count % 2:
        return [read_number(routine, operand, linear([(start, 1)], k)) for k in range(count)]
    fours = [read_neighbours(routine, operand, linear([(start, 1)], k)) for k in range(0, count, 2)]
    return [Number(*(f"{four}.{side}" for side in sides)) for four in fours for sides in ("xy", "zw")]


def _write_row(routine: RoutineShader, start: Index, numbers: list[Number]) -> None:
    if len(numbers) % 2:
        for k, x in enumerate(numbers):
            write_number(routine, linear([(start, 1)], k), x)
        return
    for k in range(0, len(numbers), 2):
        write_neighbours(routine, linear([(start, 1)], k), *numbers[k : k + 2])


def emit_to_half(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step."""
    routine = open_step(kernel, profile, lifted)
    lines, points, rest, held, _ = routine.operands[0].shape
    together = _together(points, held)
    count = lines * rest * held // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _HalfStep(routine, points, rest, held, together, number, -1)
        every = rest * held
        at = linear([(step.line, points * every), (step.first, 1)])
        found = transformed(step.registers, [step.read(linear([(at, 1)], point * every)) for point in range(points)])
        for side in range(together):
            step.write(side, found)
    return routine.close(count)


def emit_from_half(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a first step of the inverse."""
    routine = open_step(kernel, profile, lifted)
    lines, half, _ = routine.operands[0].shape
    columns, rest = routine.node.attrs["columns"], routine.node.attrs["rest"]
    points = (2 * half - 1) // (columns * rest)
    held = routine.node.type.size // (2 * lines * points * rest)
    together = _together(points, held)
    count = lines * rest * held // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _HalfStep(routine, points, rest, held, together, number, 1)
        found = transformed(step.registers, [step.read_whole(point) for point in range(points)])
        if rest > 1:
            found = _turned_together(step, found)
        row = linear([(step.line, rest), (step.place, 1)])
        for k, x in enumerate(found):
            start = linear([(row, points * held), (step.column(0), 1)], k * held)
            if together == 2:
                write_neighbours(routine, start, of_one(x, 0), of_one(x, 1))
            else:
                write_number(routine, start, x)
    return routine.close(count)


def _together(points: int, held: int) -> int:
    """How many columns that are neighbours an invocation transforms."""
    return 2 if held % 2 == 0 and points <= REGISTER_LIMITS.together else 1


def _turned_together(step: _HalfStep, numbers: list[Number]) -> list[Number]:
    """Both columns have the same place, and so the same roots."""
    length = step.points * step.rest
    roots = multiples(
        step.single,
        step.points,
        lambda k: unit_root(step.single, step.single.body.index(linear([(step.place, k)])), length),
    )
    turned = (step.registers.times(x, root) for x, root in zip(numbers[1:], roots, strict=True))
    return [numbers[0], *turned]


class _HalfStep:
    """The state of writing a complex step: an invocation's columns, `first` among all of a line, which are of the same
    `place` between the points.

    Of a column l, the number q along the step is that of the frequency l + c·(place + m·q) of the whole line.
    """

    def __init__(
        self, routine: RoutineShader, points: int, rest: int, held: int, together: int, number: Index, sign: int
    ) -> None:
        self.routine, self.body, self.points, self.rest, self.together = routine, routine.body, points, rest, together
        self.columns, self.held = routine.node.attrs["columns"], held
        self.length = self.columns * rest * points
        across = rest * held // together
        self.line = quotient(number, across)
        own = remainder(number, across)
        self.first = linear([(own, together)])
        self.place = quotient(own, held // together)
        self._own = remainder(own, held // together)
        self.single, self.registers = (Registers(self.body, routine.node.dtype, n, sign) for n in (1, together))

    def column(self, side: int) -> Index:
        return linear([(self._own, self.together)], side)

    def read(self, position: Index) -> Number:
        if self.together == 1:
            return read_number(self.routine, self.routine.operands[0], position)
        four = read_neighbours(self.routine, self.routine.operands[0], position)
        return self.registers.named(f"{four}.xz", f"{four}.yw")

    def _frequency(self, side: int, q: int) -> Index:
        return linear([(self.column(side), 1), (self.place, self.columns)], q * self.columns * self.rest)

    def _held_at(self, side: int, q: int) -> tuple[Index, str]:
        """The frequency of half the spectrum that has the number or its conjugate, and the sign of what it has."""
        half, frequency = self.length // 2 + 1, self._frequency(side, q)
        plain, opposite = frequency, linear([(frequency, -1)], self.length)
        if plain.high < half:
            return plain, ""
        if plain.low >= half:
            return opposite, "-"
        is_plain = self.body.declare(self.body.scopes[-1], "bool", f"{self.body.index(plain)} < {half}")
        text = f"{is_plain} ? {self.body.index(plain)} : {self.body.index(opposite)}"
        return self.routine.position(f"held{side}", text, half), is_plain

    def read_whole(self, point: int) -> Number:
        sides = [self._read_whole(side, point) for side in range(self.together)]
        return of_both(self.registers, *sides) if self.together == 2 else sides[0]

    def _read_whole(self, side: int, point: int) -> Number:
        frequency, sign = self._held_at(side, point)
        position = linear([(self.line, self.length // 2 + 1), (frequency, 1)])
        x = read_number(self.routine, self.routine.operands[0], position)
        if point == 0 and side == 0:  # the first number of a real line's spectrum is real
            is_first = f"{self.body.index(self._frequency(0, 0))} == 0"
            return self.single.named(x.real, f"{is_first} ? {self.single.text(0.0)} : {x.imaginary}")
        return self._with_sign(x, sign)

    def _with_sign(self, x: Number, sign: str) -> Number:
        if len(sign) > 1:
            return self.single.named(x.real, f"{sign} ? {x.imaginary} : -{x.imaginary}")
        return Number(x.real, f"({sign}{x.imaginary})") if sign else x

    def write(self, side: int, found: list[Number]) -> None:
        """A column's numbers. The first column has all its conjugates, too, and one beyond half the columns is the
        conjugate of another."""
        column = self.column(side)
        half = self.columns // 2 + 1
        with self.body.block(f"if ({self.body.index(column)} < {half})") if column.high >= half else nullcontext():
            for k, whole in enumerate(found):
                x = of_one(whole, side) if self.together == 2 else whole
                frequency, sign = self._held_at(side, k)
                is_needed = f"{self.body.index(column)} != 0"
                if len(sign) > 1:
                    is_needed = f"{is_needed} || {sign}"
                with self.body.block(f"if ({is_needed})") if sign and column.low == 0 else nullcontext():
                    given = self._with_sign(x, sign)
                    write_odd_frequency(self.routine, self.single, self.line, self.length, frequency, given)
