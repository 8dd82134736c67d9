"""Steps of Fourier transforms in which each invocation holds all points of a line, or of two neighbouring ones.

Nothing is exchanged between invocations, so that memory is read and written once. Two lines whose numbers are
neighbours in memory are read, computed and written together, four floats at a time. Lines of many points are
transformed one by one, for which a driver compiles half as much.
"""
from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.choose import REGISTER_LIMITS
from lavax.backends.vulkan.emit.fourier.numbers import (
    open_step,
    read_neighbours,
    read_number,
    write_neighbours,
    write_number,
)
from lavax.backends.vulkan.emit.fourier.read_ahead import Rows, read_ahead
from lavax.backends.vulkan.emit.fourier.roots import multiples, of_both, unit_root
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel


def emit_in_registers(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a step."""
    routine = open_step(kernel, profile, lifted)
    lines, points, rest, behind, _ = routine.operands[0].shape
    together = 2 if rest * behind % 2 == 0 and points <= REGISTER_LIMITS.together else 1
    count = lines * rest * behind // together
    with routine.open_turns(count, turns_of(count, profile, lifted)) as place:
        step = _Step(routine, together, place)
        frequencies = transformed(step.registers, step.read())
        if rest > 1:
            frequencies = step.twiddled(frequencies)
        step.write(frequencies)
    return routine.close(count)


class _Step:
    """The state of writing the step of an invocation: one line, or two that are neighbours."""

    def __init__(self, routine: RoutineShader, together: int, place: Index) -> None:
        self.routine, self.together = routine, together
        self.body, self.node = routine.body, routine.node
        self.operand = routine.operands[0]
        self.lines, self.points, self.rest, self.behind, _ = self.operand.shape
        across = self.rest * self.behind // together
        self.line, self.column = quotient(place, across), remainder(place, across)
        sign = 1 if self.node.attrs["reverse"] else -1
        self.single, self.registers = (Registers(self.body, self.node.dtype, n, sign) for n in (1, together))

    def read(self) -> list[Number]:
        """The points of the lines."""
        if self.rest * self.behind > 1 or self.points % 2:
            return [self._read(point) for point in range(self.points)]
        fours = [
            read_neighbours(self.routine, self.operand, linear([(self.line, self.points)], point))
            for point in range(0, self.points, 2)
        ]
        return [Number(*(f"{four}.{side}" for side in sides)) for four in fours for sides in ("xy", "zw")]

    def _read(self, point: int) -> Number:
        across = self.rest * self.behind
        start = linear([(self.line, self.points * across), (self.column, self.together)], point * across)
        if self.together == 1:
            return read_number(self.routine, self.operand, start)
        four = read_neighbours(self.routine, self.operand, start)
        return self.registers.named(f"{four}.xz", f"{four}.yw")

    def twiddled(self, frequencies: list[Number]) -> list[Number]:
        """The numbers times the roots of their frequency and their place."""
        roots = multiples(self.registers, self.points, self._root)
        turned = [self.registers.times(x, root) for x, root in zip(frequencies[1:], roots, strict=True)]
        return [frequencies[0], *turned]

    def _root(self, frequency: int) -> Number:
        shares = self.behind % self.together == 0
        places = [self.column] if shares else [linear([(self.column, self.together)], n) for n in range(self.together)]
        roots = []
        for place in places:
            where = quotient(place, self.behind // self.together if shares else self.behind)
            at = self.body.index(linear([(where, frequency)]))
            roots.append(unit_root(self.single, at, self.points * self.rest))
        return of_both(self.registers, roots[0], roots[-1]) if self.together == 2 else roots[0]

    def write(self, frequencies: list[Number]) -> None:
        if self.together == 2 and self.behind % 2 == 0:
            read_ahead(self.routine, [Rows(self._position(0, 0), self.points, self.behind)], 2)
            for frequency, value in enumerate(frequencies):
                write_neighbours(self.routine, self._position(0, frequency), self._of(value, 0), self._of(value, 1))
            return
        if self.behind % 2 and self.behind > 1:
            read_ahead(self.routine, [Rows(self._position(0, 0), self.points, self.behind)], self.together)
        for number in range(self.together):
            own = [self._of(value, number) for value in frequencies]
            if self.behind == 1 and self.points % 2 == 0:
                for frequency in range(0, self.points, 2):
                    write_neighbours(self.routine, self._position(number, frequency), *own[frequency : frequency + 2])
            else:
                for frequency, value in enumerate(own):
                    write_number(self.routine, self._position(number, frequency), value)

    def _of(self, value: Number, number: int) -> Number:
        """The first or the second line's."""
        part = f".{'xy'[number]}" if self.together == 2 else ""
        return Number(f"{value.real}{part}", f"{value.imaginary}{part}")

    def _position(self, number: int, frequency: int) -> Index:
        """Where the first or the second line's number is in the result."""
        own = linear([(self.column, self.together)], number)
        place, back = quotient(own, self.behind), remainder(own, self.behind)
        row = linear([(self.line, self.rest), (place, 1)])
        return linear([(row, self.points * self.behind), (back, 1)], frequency * self.behind)
