"""Steps of transforms of real lines whose neighbours in memory are neighbouring lines.

An invocation holds the same points of several neighbouring lines, so that memory is read and written in vectors and
nothing of one line enters another: four lines of real numbers, or two, and two of complex numbers. Between the steps
are the columns up to half of those of the step on real numbers; the others are their conjugates.
"""
from __future__ import annotations

from contextlib import nullcontext

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.choose import complex_together, reals_together
from lavax.backends.vulkan.emit.fourier.numbers import (
    read_four,
    read_neighbours,
    read_number,
    write_four,
    write_neighbours,
    write_number,
    write_real,
)
from lavax.backends.vulkan.emit.fourier.read_ahead import Rows, read_ahead
from lavax.backends.vulkan.emit.fourier.real_butterflies import points_of, spectrum_of
from lavax.backends.vulkan.emit.fourier.roots import multiples, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, quotient, remainder, unflatten
from lavax.passes.kernels.kernel import Kernel


def emit_across_from_reals(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a first step."""
    routine = open_routine(kernel, profile, lifted)
    lines, points, rest, behind = routine.operands[0].shape
    together = reals_together(points, behind, False)
    count = lines * rest * behind // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _RealStep(routine, points, rest, behind, together, number, -1)
        found = step.turned(spectrum_of(step.registers, [step.read(point) for point in range(points)]))
        first = linear([(step.row, len(found) * behind), (step.first, 1)])
        read_ahead(routine, [Rows(first, len(found), behind)], together)
        for k, x in enumerate(found):
            start = linear([(step.row, len(found) * behind), (step.first, 1)], k * behind)
            _write_numbers(routine, start, x, together)
    return routine.close(count)


def emit_across_to_reals(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step of the inverse."""
    routine = open_routine(kernel, profile, lifted)
    (lines, rest, held, behind, _), points = routine.operands[0].shape, routine.node.attrs["columns"]
    together = reals_together(points, behind, True)
    count = lines * rest * behind // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _RealStep(routine, points, rest, behind, together, number, 1)
        starts = (linear([(step.row, held * behind), (step.first, 1)], k * behind) for k in range(held))
        row = step.turned([_read_numbers(step.registers, routine, start) for start in starts])
        step.read_ahead()
        for point, text in enumerate(points_of(step.registers, row, points)):
            step.write(point, text)
    return routine.close(count)


class _RealStep:
    """The state of writing a step on real numbers: so many neighbouring lines of an invocation, from `first` on, at
    their `place` between the points; `row` counts places of all lines."""

    def __init__(
        self, routine: RoutineShader, points: int, rest: int, behind: int, together: int, number: Index, sign: int
    ) -> None:
        self.routine, self.body, self.points, self.rest, self.behind = routine, routine.body, points, rest, behind
        self.together = together
        self.row = quotient(number, behind // together)
        self.first = linear([(remainder(number, behind // together), together)])
        self.line, self.place = quotient(self.row, rest), remainder(self.row, rest)
        self.single, self.registers = (Registers(self.body, routine.node.dtype, n, sign) for n in (1, together))

    def _at(self, point: int, unit: int = 1) -> Index:
        """The position of a point of the first line, in so many numbers."""
        across = self.rest * self.behind // unit
        parts = [(self.line, self.points * across), (self.place, self.behind // unit)]
        return linear([*parts, (quotient(self.first, unit), 1)], point * across)

    def read(self, point: int) -> str:
        operand = self.routine.operands[0]
        if self.together == 4:
            return read_four(self.routine, operand, self._at(point))
        if self.together == 2:
            both = read_number(self.routine, operand, self._at(point, 2))
            return self.body.declare(
                self.body.scopes[-1], self.registers.kind, f"{self.registers.kind}({both.real}, {both.imaginary})"
            )
        return self.routine.read(operand, unflatten(self._at(point), operand.shape))

    def read_ahead(self) -> None:
        """What `write` writes, whose positions count real numbers."""
        if self.together % 2 == 0 and self.behind % 2 == 0:
            apart = self.rest * self.behind // 2
            read_ahead(self.routine, [Rows(self._at(0, 2), self.points, apart)], self.together // 2)

    def write(self, point: int, text: str) -> None:
        if self.together == 4:
            write_four(self.routine, self._at(point), text)
        elif self.together == 2:
            name = self.body.declare(self.body.scopes[-1], self.registers.kind, text)
            write_number(self.routine, self._at(point, 2), Number(f"{name}.x", f"{name}.y"))
        else:
            write_real(self.routine, self._at(point), text)

    def turned(self, numbers: list[Number]) -> list[Number]:
        """The numbers times the roots of their frequency and their place, which all lines share."""
        return _turned(self.single, self.registers, numbers, self.place, self.points * self.rest, self.rest)


def emit_across_to_half(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step."""
    routine = open_routine(kernel, profile, lifted)
    lines, points, rest, held, behind, _ = routine.operands[0].shape
    columns = routine.node.attrs["columns"]
    together = complex_together(points, behind)
    every, count = rest * held * behind, lines * rest * held * behind // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _HalfStep(routine, points, rest, columns, behind, together, number, -1)
        at = [(step.line, points * every), (step.own, together)]
        reads = (linear(at, point * every) for point in range(points))
        found = transformed(step.registers, [_read_numbers(step.registers, routine, start) for start in reads])
        step.read_ahead(points)
        for k, x in enumerate(found):
            step.write(k, x)
    return routine.close(count)


def emit_across_from_half(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a first step of the inverse."""
    routine = open_routine(kernel, profile, lifted)
    lines, _, behind, _ = routine.operands[0].shape
    length, columns, rest = (routine.node.attrs[name] for name in ("length", "columns", "rest"))
    points, held = length // (columns * rest), columns // 2 + 1
    together = complex_together(points, behind)
    count = lines * rest * held * behind // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _HalfStep(routine, points, rest, columns, behind, together, number, 1)
        found = transformed(step.registers, [step.read(point) for point in range(points)])
        found = _turned(step.single, step.registers, found, step.place, points * rest, rest)
        every = held * behind
        row = linear([(step.line, rest), (step.place, 1)])
        parts = [(row, points * every), (step.column, behind), (step.first, 1)]
        read_ahead(routine, [Rows(linear(parts), points, every)], together)
        for k, x in enumerate(found):
            _write_numbers(routine, linear(parts, k * every), x, together)
    return routine.close(count)


class _HalfStep:
    """The state of writing a step between half a spectrum and columns of complex numbers: an invocation's column, at
    its `place` between the points, of neighbouring lines from `first` on.

    Of a column j of l, the number q along the step is that of the frequency j + l·(place + m·q) of the whole line.
    """

    def __init__(
        self, routine: RoutineShader, points: int, rest: int, columns: int, behind: int, together: int, number: Index,
        sign: int,
    ) -> None:  # fmt: skip
        self.routine, self.body, self.rest, self.columns, self.behind = routine, routine.body, rest, columns, behind
        self.length, self.together = columns * rest * points, together
        self.half = self.length // 2 + 1
        each, held = behind // together, columns // 2 + 1
        self.line, self.own = quotient(number, rest * held * each), remainder(number, rest * held * each)
        column = quotient(self.own, each)
        self.place, self.column = quotient(column, held), remainder(column, held)
        self.first = linear([(remainder(self.own, each), together)])
        self.single, self.registers = (Registers(self.body, routine.node.dtype, n, sign) for n in (1, together))

    def _place_of(self, q: int) -> tuple[Index, str, str]:
        """Where half the spectrum has the number or its conjugate: "" or "-" if that is known, or the name of what is
        true if it has the number; and the text of what is true if the frequency is an end, whose number is real."""
        start = [(self.line, self.half * self.behind), (self.first, 1)]
        plain = linear([(self.column, 1), (self.place, self.columns)], q * self.columns * self.rest)
        opposite = linear([(plain, -1)], self.length)
        frequency, scope = self.body.index(plain), self.body.scopes[-1]
        ends = (end for end in (0, self.length // 2) if plain.low <= end <= plain.high)
        is_end = " || ".join(f"{frequency} == {end}" for end in ends if end == 0 or self.length % 2 == 0)
        if plain.high < self.half:
            return linear([*start, (plain, self.behind)]), "", is_end
        if plain.low >= self.half:
            return linear([*start, (opposite, self.behind)]), "-", is_end
        is_plain = self.body.declare(scope, "bool", f"{frequency} < {self.half}")
        text = f"{is_plain} ? {frequency} : {self.body.index(opposite)}"
        at = self.routine.position(f"held{q}", text, self.half)
        return linear([*start, (at, self.behind)]), is_plain, is_end

    def read(self, q: int) -> Number:
        position, sign, is_end = self._place_of(q)
        x = _read_numbers(self.registers, self.routine, position)
        imaginary = self._with_sign(x, sign).imaginary
        if is_end:
            imaginary = f"{is_end} ? {self.registers.zero} : {imaginary}"
        return self.registers.named(x.real, imaginary) if imaginary != x.imaginary else x

    def _with_sign(self, x: Number, sign: str) -> Number:
        if len(sign) > 1:
            return self.registers.named(x.real, f"{sign} ? {x.imaginary} : -{x.imaginary}")
        return Number(x.real, f"(-{x.imaginary})") if sign else x

    def read_ahead(self, points: int) -> None:
        """What `write` writes: the frequencies up to half the line, and those that are the others' opposites."""
        apart, start = self.columns * self.rest, [(self.line, self.half * self.behind), (self.first, 1)]
        first = linear([(self.column, 1), (self.place, self.columns)])
        last = linear([(first, -1)], self.length - (points - 1) * apart)
        ahead = sum(first.high + q * apart < self.half for q in range(points))
        back = sum(first.low + q * apart >= self.half for q in range(points))
        rows = [
            Rows(linear([*start, (at, self.behind)]), count, apart * self.behind)
            for at, count in ((first, ahead), (last, back))
        ]
        read_ahead(self.routine, rows, self.together)

    def write(self, q: int, x: Number) -> None:
        """Writes a frequency. Those of the first column, and of the middle one of an even number, are there with their
        conjugates, of which one is written. The ends are real: rounded roots between the steps leave a rest of the last
        one's imaginary part."""
        position, sign, is_end = self._place_of(q)
        is_needed = ""
        if sign:
            column = self.body.index(self.column)
            doubled = [0, self.columns // 2] if self.columns % 2 == 0 else [0]
            is_needed = " && ".join(f"{column} != {other}" for other in doubled)
            is_needed = f"{sign} || {is_needed}" if len(sign) > 1 else is_needed
        given = self._with_sign(x, sign)
        if is_end:
            given = Number(given.real, f"({is_end} ? {self.registers.zero} : {given.imaginary})")
        with self.body.block(f"if ({is_needed})") if is_needed else nullcontext():
            _write_numbers(self.routine, position, given, self.together)


def _turned(
    single: Registers, registers: Registers, numbers: list[Number], place: Index, length: int, rest: int
) -> list[Number]:
    """The numbers times the roots of their frequency and of a place among so many, which all lines share."""
    if rest == 1:
        return numbers

    def root(frequency: int) -> Number:
        return unit_root(single, single.body.index(linear([(place, frequency)])), length)

    roots = multiples(single, len(numbers), root)
    return [numbers[0], *(registers.times(x, root) for x, root in zip(numbers[1:], roots, strict=True))]


def _read_numbers(registers: Registers, routine: RoutineShader, start: Index) -> Number:
    """The numbers of as many lines that are neighbours, from a position on."""
    operand, together = routine.operands[0], registers.together
    if together == 1:
        return read_number(routine, operand, start)
    fours = [read_neighbours(routine, operand, linear([(start, 1)], side)) for side in range(0, together, 2)]
    kind, rows = registers.kind, ("xz", "yw")
    parts = [", ".join(f"{four}.{row}" for four in fours) for row in rows]
    return registers.named(*(f"{kind}({part})" if len(fours) > 1 else part for part in parts))


def _write_numbers(routine: RoutineShader, start: Index, x: Number, together: int) -> None:
    """Writes the numbers of as many lines that are neighbours."""
    if together == 1:
        write_number(routine, start, x)
        return
    for side in range(0, together, 2):
        write_neighbours(routine, linear([(start, 1)], side), of_one(x, side), of_one(x, side + 1))
