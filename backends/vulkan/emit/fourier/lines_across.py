"""Steps of transforms of real lines whose neighbours in memory are neighbouring lines.

An invocation holds the same points of several neighbouring lines, so that memory is read and written in vectors and
nothing of one line enters another: four lines of real numbers, or two, and two of complex numbers. Between the steps
are the columns up to half of those of the step on real numbers; the others are their conjugates.
"""
from __future__ import annotations

from contextlib import nullcontext

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.choose import complex_together, cosines_together, reals_together
from lavax.backends.vulkan.emit.fourier.cosines_across import spectrum_across, write_cosines
from lavax.backends.vulkan.emit.fourier.folded_places import place_of_folded
from lavax.backends.vulkan.emit.fourier.numbers import (
    open_step,
    read_neighbours,
    read_number,
    write_neighbours,
    write_number,
)
from lavax.backends.vulkan.emit.fourier.read_ahead import Rows, read_ahead
from lavax.backends.vulkan.emit.fourier.real_butterflies import points_of, spectrum_of
from lavax.backends.vulkan.emit.fourier.roots import multiples, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.rows_across import RealRows
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.ops.lowered.lines_across import TURNED
from lavax.passes.kernels.index import Index, clamp, constant, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel


def emit_across_from_reals(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a first step."""
    routine = open_step(kernel, profile, lifted)
    lines, points, rest, behind = routine.operands[0].shape
    together = reals_together(points, behind, False)
    count = lines * rest * behind // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _RealStep(routine, points, rest, behind, together, number, -1)
        half = spectrum_of(step.registers, [step.read(point) for point in range(points)])
        if routine.node.attrs["cosines"]:
            for k, x in enumerate(half):
                write_cosines(step.rows, constant(k), x)
        else:
            found, start = step.turned(half), linear([(step.row, len(half) * behind), (step.first, 1)])
            read_ahead(routine, [Rows(start, len(found), behind)], together)
            for k, x in enumerate(found):
                _write_numbers(routine, linear([(start, 1)], k * behind), x, together)
    return routine.close(count)


def emit_across_to_reals(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step of the inverse."""
    routine = open_step(kernel, profile, lifted)
    shape, points, has_cosines = routine.operands[0].shape, routine.node.attrs["columns"], routine.node.attrs["cosines"]
    lines, rest, held, behind = (shape[0], 1, points // 2 + 1, shape[2]) if has_cosines else shape[:-1]
    together = reals_together(points, behind, True)
    count = lines * rest * behind // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _RealStep(routine, points, rest, behind, together, number, 1)
        if has_cosines:
            spectrum = spectrum_across(step.single, step.rows, constant(0))
            row = [spectrum.number(k) for k in range(held)]
        else:
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
        self.rows = RealRows(routine, self.registers, self.line, points * rest, behind, self.first)

    def _place(self, point: int) -> tuple[Index, str]:
        """Where whole lines have a point, and the factor that its text has."""
        place = linear([(self.place, 1)], point * self.rest)
        return place_of_folded(self.routine, place, self.points * self.rest)

    def read(self, point: int) -> str:
        place, factor = self._place(point)
        text = self.rows.read(place)
        if not factor:
            return text
        return self.body.declare(self.body.scopes[-1], self.registers.kind, f"{factor}{text}")

    def read_ahead(self) -> None:
        """What `write` writes, whose positions count real numbers. Of lines in another order those are left out that
        may be in either half."""
        if self.together % 2 or self.behind % 2:
            return
        length, apart = self.points * self.rest, self.rest * self.behind // 2
        fold = self.routine.node.attrs["folded"]
        if fold in (0, TURNED):
            last = linear([(self.place, -1)], length - (self.points - 1) * self.rest)
            first = clamp(last, 0, length - 1) if fold else self.place
            read_ahead(self.routine, [Rows(self.rows.position(first, 2), self.points, apart)], self.together // 2)
            return
        ahead = sum(2 * (self.place.high + point * self.rest) < length for point in range(self.points))
        back = sum(2 * (self.place.low + point * self.rest) >= length for point in range(self.points))
        first, last = linear([(self.place, 2)]), linear([(self.place, -2)], 2 * (self.rest - 1) + 1)
        rows = [Rows(self.rows.position(place, 2), count, 2 * apart) for place, count in ((first, ahead), (last, back))]
        read_ahead(self.routine, rows, self.together // 2)

    def write(self, point: int, text: str) -> None:
        place, factor = self._place(point)
        self.rows.write(place, f"{factor}({text})" if factor else text)

    def turned(self, numbers: list[Number]) -> list[Number]:
        """The numbers times the roots of their frequency and their place, which all lines share."""
        return _turned(self.single, self.registers, numbers, self.place, self.points * self.rest, self.rest)


def emit_across_to_half(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step."""
    routine = open_step(kernel, profile, lifted)
    lines, points, rest, held, behind, _ = routine.operands[0].shape
    columns, has_cosines = routine.node.attrs["columns"], routine.node.attrs["cosines"] != 0
    together = (cosines_together if has_cosines else complex_together)(points, behind)
    every, count = rest * held * behind, lines * rest * held * behind // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _HalfStep(routine, points, rest, columns, behind, together, number, -1)
        at = [(step.line, points * every), (step.own, together)]
        reads = (linear(at, point * every) for point in range(points))
        found = transformed(step.registers, [_read_numbers(step.registers, routine, start) for start in reads])
        if has_cosines:
            step.read_cosines_ahead(points)
        else:
            step.read_ahead(points)
        for k, x in enumerate(found):
            step.write(k, x)
    return routine.close(count)


def emit_across_from_half(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a first step of the inverse."""
    routine = open_step(kernel, profile, lifted)
    lines, _, behind, *_ = routine.operands[0].shape
    length, columns, rest = (routine.node.attrs[name] for name in ("length", "columns", "rest"))
    points, held = length // (columns * rest), columns // 2 + 1
    together = complex_together(points, behind)
    count = lines * rest * held * behind // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _HalfStep(routine, points, rest, columns, behind, together, number, 1)
        found = transformed(step.registers, step.read(points))
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
        self.rows = RealRows(routine, self.registers, self.line, self.length, behind, self.first)

    def _frequency_of(self, q: int) -> tuple[Index, str, str]:
        """The frequency up to half of which the number is, or its conjugate: "" or "-" if that is known, or the name of
        what is true if it is the number; and the text of what is true if that is an end, whose number is real."""
        plain = linear([(self.column, 1), (self.place, self.columns)], q * self.columns * self.rest)
        opposite = linear([(plain, -1)], self.length)
        frequency, scope = self.body.index(plain), self.body.scopes[-1]
        ends = (end for end in (0, self.length // 2) if plain.low <= end <= plain.high)
        is_end = " || ".join(f"{frequency} == {end}" for end in ends if end == 0 or self.length % 2 == 0)
        if plain.high < self.half:
            return plain, "", is_end
        if plain.low >= self.half:
            return opposite, "-", is_end
        is_plain = self.body.declare(scope, "bool", f"{frequency} < {self.half}")
        text = f"{is_plain} ? {frequency} : {self.body.index(opposite)}"
        return self.routine.position(f"held{q}", text, self.half), is_plain, is_end

    def _position(self, frequency: Index) -> Index:
        return linear([(self.line, self.half * self.behind), (self.first, 1), (frequency, self.behind)])

    def read(self, points: int) -> list[Number]:
        """The numbers of all points."""
        if not self.routine.node.attrs["cosines"]:
            return [self._read(q) for q in range(points)]
        own = linear([(self.column, 1), (self.place, self.columns)])
        spectrum = spectrum_across(self.single, self.rows, own)
        return [spectrum.number(q * self.columns * self.rest) for q in range(points)]

    def _read(self, q: int) -> Number:
        frequency, sign, is_end = self._frequency_of(q)
        x = _read_numbers(self.registers, self.routine, self._position(frequency))
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

    def read_cosines_ahead(self, points: int) -> None:
        """The same of the real numbers of each frequency, at its place and as far from the other end, or one behind."""
        if self.together % 2 or self.behind % 2:
            return
        apart = self.columns * self.rest
        first = linear([(self.column, 1), (self.place, self.columns)])
        last = linear([(first, -1)], self.length - (points - 1) * apart)
        rows = [
            Rows(self.rows.position(place, 2), points, apart * self.behind // 2)
            for place in (clamp(first, 0, self.length - 1), clamp(last, 0, self.length - 1))
        ]
        read_ahead(self.routine, rows, self.together // 2)

    def write(self, q: int, x: Number) -> None:
        """Writes a frequency. Those of the first column, and of the middle one of an even number, are there with their
        conjugates, of which one is written. The ends are real: rounded roots between the steps leave a rest of the last
        one's imaginary part."""
        frequency, sign, is_end = self._frequency_of(q)
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
            if self.routine.node.attrs["cosines"]:
                write_cosines(self.rows, frequency, given)
            else:
                _write_numbers(self.routine, self._position(frequency), given, self.together)


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
