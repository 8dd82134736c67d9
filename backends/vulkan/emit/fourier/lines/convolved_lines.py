"""Steps of convolutions of lines with a known spectrum, in registers: each invocation holds the points of two columns.

What is zero, because a line is padded, is not read, and what is not wanted of the result is not written. A table is
read by pairs of numbers, as the columns are, because both begin at an even place.
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.numbers import (
    open_step,
    read_neighbours,
    read_number,
    write_neighbours,
    write_number,
    write_real,
)
from lavax.backends.vulkan.emit.fourier.roots import multiples, of_both, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.graph import Node
from lavax.passes.kernels.index import Index, linear, quotient, remainder, unflatten
from lavax.passes.kernels.kernel import Kernel


def emit_padded(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a first step."""

    def write(step: _TwoColumns) -> None:
        step.write_rows(step.turned(transformed(step.registers(-1), _padded_points(step)), -1))

    routine = open_step(kernel, profile, lifted)
    attrs = routine.node.attrs
    return _emitted(routine, profile, lifted, attrs["points"], attrs["rest"], write)


def emit_filtered(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of the last step of a transform that is the first one of its inverse as well."""

    def write(step: _TwoColumns) -> None:
        double, table = step.registers(1), routine.operands[1]
        found = transformed(step.registers(-1), step.points_of_line())
        product = [double.times(x, step.in_table(table, row)) for row, x in enumerate(found)]
        step.write_rows(step.turned(transformed(double, product), 1))

    routine = open_step(kernel, profile, lifted)
    _, points, rest, _ = routine.operands[0].shape
    return _emitted(routine, profile, lifted, points, rest, write)


def emit_cut(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step of the inverse."""

    def write(step: _TwoColumns) -> None:
        double, table = step.registers(1), routine.operands[1]
        length = routine.node.attrs["length"]
        found = transformed(double, step.points_of_line())
        for row in range(-(-length // step.rest)):
            _write_pair(step, row, double.times(found[row], step.in_table(table, row)))

    routine = open_step(kernel, profile, lifted)
    _, points, rest, _ = routine.operands[0].shape
    return _emitted(routine, profile, lifted, points, rest, write)


def _emitted(
    routine: RoutineShader,
    profile: DeviceProfile,
    lifted: bool,
    points: int,
    rest: int,
    write: Callable[[_TwoColumns], None],
) -> Launch:
    count = routine.operands[0].shape[0] * rest // 2
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        write(_TwoColumns(routine, points, rest, number))
    return routine.close(count)


class _TwoColumns:
    """The state of writing the step of an invocation: two of a line's `rest` columns, which are neighbours."""

    def __init__(self, routine: RoutineShader, points: int, rest: int, number: Index) -> None:
        self.routine, self.body, self.points, self.rest = routine, routine.body, points, rest
        self.line = quotient(number, rest // 2)
        self.column = linear([(remainder(number, rest // 2), 2)])

    def registers(self, sign: int, together: int = 2) -> Registers:
        return Registers(self.body, self.routine.node.dtype, together, sign)

    def of_pair(self, four: str) -> Number:
        return self.registers(1).named(f"{four}.xz", f"{four}.yw")

    def place(self, row: int) -> Index:
        """Where the first column's number of a row is in its line."""
        return linear([(self.column, 1)], row * self.rest)

    def points_of_line(self) -> list[Number]:
        """The points of whole lines."""
        operand, length = self.routine.operands[0], self.points * self.rest
        places = (linear([(self.line, length), (self.place(row), 1)]) for row in range(self.points))
        return [self.of_pair(read_neighbours(self.routine, operand, place)) for place in places]

    def in_table(self, table: Node, row: int) -> Number:
        return self.of_pair(read_neighbours(self.routine, table, self.place(row)))

    def turned(self, numbers: list[Number], sign: int) -> list[Number]:
        """The numbers times the roots of their frequency and their column."""
        if self.rest == 1:
            return numbers
        single, double, length = self.registers(sign, 1), self.registers(sign), self.points * self.rest

        def root(frequency: int) -> Number:
            places = (linear([(self.column, frequency)], side * frequency) for side in (0, 1))
            return of_both(double, *(unit_root(single, self.body.index(place), length) for place in places))

        roots = multiples(double, self.points, root)
        return [numbers[0], *(double.times(x, factor) for x, factor in zip(numbers[1:], roots, strict=True))]

    def write_rows(self, numbers: list[Number]) -> None:
        """Writes the numbers of each column side by side."""
        for side in (0, 1):
            row = linear([(self.line, self.rest * self.points), (self.column, self.points)], side * self.points)
            for k in range(0, self.points, 2):
                write_neighbours(self.routine, linear([(row, 1)], k), *(of_one(x, side) for x in numbers[k : k + 2]))


def _padded_points(step: _TwoColumns) -> list[Number]:
    """The points times the table, which is zero behind a line's end."""
    x, table = step.routine.operands
    double, rows = step.registers(-1), table.shape[0] // step.rest
    read = [double.times(_read_pair(step, x, row), step.in_table(table, row)) for row in range(rows)]
    return [*read, *[Number(double.zero, double.zero)] * (step.points - rows)]


def _read_pair(step: _TwoColumns, x: Node, row: int) -> Number:
    """Two neighbours of a line. A place behind its end has the last number, so that no other line is read."""
    _, length, parts = x.shape
    if parts == 2 and length % 2 == 0 and (row + 1) * step.rest <= length:
        position = linear([(step.line, length), (step.place(row), 1)])
        return step.of_pair(read_neighbours(step.routine, x, position))
    sides = []
    for side in (0, 1):
        place = linear([(step.place(row), 1)], side)
        if place.high >= length:
            text = f"min({step.body.index(place)}, {length - 1})"
            place = step.routine.position(f"place{row}_{side}", text, length)
        at = linear([(step.line, length), (place, 1)])
        if parts == 2:
            sides.append(read_number(step.routine, x, at))
        else:
            sides.append(Number(step.routine.read(x, unflatten(at, x.shape)), step.registers(1, 1).text(0.0)))
    return of_both(step.registers(1), *sides)


def _write_pair(step: _TwoColumns, row: int, x: Number) -> None:
    """Writes what is wanted of two neighbours."""
    routine, attrs = step.routine, step.routine.node.attrs
    length, is_real = attrs["length"], attrs["real"]
    places = [linear([(step.place(row), 1)], side) for side in (0, 1)]
    if length % 2 == 0:
        with _within(step, places[0], length):
            at = linear([(step.line, length), (places[0], 1)])
            if is_real:
                write_number(routine, quotient(at, 2), Number(of_one(x, 0).real, of_one(x, 1).real))
            else:
                write_neighbours(routine, at, of_one(x, 0), of_one(x, 1))
        return
    for side, place in enumerate(places):
        with _within(step, place, length):
            at = linear([(step.line, length), (place, 1)])
            if is_real:
                write_real(routine, at, of_one(x, side).real)
            else:
                write_number(routine, at, of_one(x, side))


def _within(step: _TwoColumns, place: Index, length: int) -> AbstractContextManager[None]:
    """The context of what is done for places of a line that are wanted."""
    return step.body.block(f"if ({step.body.index(place)} < {length})") if place.high >= length else nullcontext()
