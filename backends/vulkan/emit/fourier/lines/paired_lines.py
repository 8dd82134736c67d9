"""Steps at both ends of cosine and sine transforms of type 4, on lines of real numbers.

The complex number j of a line of n = 2h real ones has the parts x[2j] and x[n − 1 − 2j], so x[2j] and x[2j + 1], which
are neighbours, are parts of the numbers j and h − 1 − j. Of lines along memory an invocation holds a column of a step
and the one that is as far from the other end, and reads and writes such neighbours together. Of lines along another
axis it holds the same points of neighbouring lines.
"""
from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.choose import pairs_together
from lavax.backends.vulkan.emit.fourier.numbers import (
    open_step,
    read_neighbours,
    read_number,
    write_line,
    write_neighbours,
    write_number,
)
from lavax.backends.vulkan.emit.fourier.read_ahead import Rows, read_ahead
from lavax.backends.vulkan.emit.fourier.roots import multiples_from, of_both, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.rows_across import RealRows
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, constant, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.numerics.unit_roots import unit_root as host_root


def emit_paired(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a transform in one step."""
    routine = open_step(kernel, profile, lifted)
    lines, length, behind = routine.operands[0].shape
    points = length // 2
    count = lines if behind == 1 else lines * behind // pairs_together(points, behind)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = _Whole(routine, points, number) if behind == 1 else _Across(routine, points, 1, behind, number)
        step.write(step.with_roots(transformed(step.registers, step.points_with_roots(step.read()))))
    return routine.close(count)


def emit_from_paired(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a first step."""
    routine = open_step(kernel, profile, lifted)
    (lines, length, behind), points = routine.operands[0].shape, routine.node.attrs["points"]
    rest = length // 2 // points
    count = lines * _invocations(points, rest, behind)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = (_Along if behind == 1 else _Across)(routine, points, rest, behind, number)
        step.write_columns(step.twiddled(transformed(step.registers, step.points_with_roots(step.read()))))
    return routine.close(count)


def emit_to_paired(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step."""
    routine = open_step(kernel, profile, lifted)
    lines, points, columns, behind, _ = routine.operands[0].shape
    count = lines * _invocations(points, columns, behind)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        step = (_Along if behind == 1 else _Across)(routine, points, columns, behind, number)
        step.write(step.with_roots(transformed(step.registers, step.read_columns())))
    return routine.close(count)


def _invocations(points: int, width: int, behind: int) -> int:
    """How many invocations have the columns of a line, or of so many neighbouring ones. A middle column of a line along
    memory is its own mirror image."""
    return -(-width // 2) if behind == 1 else width * behind // pairs_together(points, behind)


class _Step:
    """The state of writing a step on `points` numbers of each of `width` columns of a line: its `columns` are
    one of them, or two that are mirrored."""

    columns: list[Index]

    def __init__(self, routine: RoutineShader, points: int, width: int, together: int) -> None:
        self.routine, self.body, self.points, self.width = routine, routine.body, points, width
        self.half, self.sines = points * width, routine.node.attrs["sines"]
        self.single, self.registers = (Registers(self.body, routine.node.dtype, n, -1) for n in (1, together))

    def points_with_roots(self, numbers: list[Number]) -> list[Number]:
        """The numbers times the part of their root that is the same in all columns."""
        own = host_root(-1, 16 * self.half)
        roots = (self.single.constant(own * host_root(-point, 4 * self.points)) for point in range(self.points))
        return [self.registers.times(x, root) for x, root in zip(numbers, roots, strict=True)]

    def twiddled(self, frequencies: list[Number]) -> list[Number]:
        """The numbers times the roots of their frequency and their place, and of their column."""
        start = self._roots(1, 4 * self.half)
        by = multiples_from(self._of_roots, start, self.points, lambda k: self._roots(k, self.half))
        return [self.registers.times(x, root) for x, root in zip(frequencies, by, strict=True)]

    def with_roots(self, frequencies: list[Number]) -> list[Number]:
        """The numbers times twice the roots of their frequencies."""
        twice = [2 * host_root(-k, 4 * self.points) for k in range(self.points)]
        by = [self.single.constant(root) for root in twice]
        if self.width == 1:
            return [self.registers.times(x, root) for x, root in zip(frequencies, by, strict=True)]
        start = self._roots(1, 4 * self.half)
        roots = [self._of_roots.times(start, root) for root in by]
        return [self.registers.times(x, root) for x, root in zip(frequencies, roots, strict=True)]

    @property
    def _of_roots(self) -> Registers:
        """Registers of as many roots as the columns have."""
        return self.single if len(self.columns) == 1 else self.registers

    def _roots(self, factor: int, order: int) -> Number:
        """exp(−2πi·factor·c/order) for each column c."""
        places = (self.body.index(linear([(column, factor)])) for column in self.columns)
        roots = [unit_root(self.single, place, order) for place in places]
        return roots[0] if len(roots) == 1 else of_both(self.registers, *roots)


class _Along(_Step):
    """Of a line along memory: a column, and the one that is as far from the other end."""

    def __init__(self, routine: RoutineShader, points: int, width: int, behind: int, number: Index) -> None:
        super().__init__(routine, points, width, 2)
        each = -(-width // 2)
        self.line, column = quotient(number, each), remainder(number, each)
        self.columns = [column, linear([(column, -1)], width - 1)]

    def _at(self, side: int, point: int) -> Index:
        return linear([(self.line, self.half), (self.columns[side], 1)], point * self.width)

    def read(self) -> list[Number]:
        sides: list[list[Number]] = [[], []]
        for side in (0, 1):
            for point in range(self.points):
                sides[side].append(read_number(self.routine, self.routine.operands[0], self._at(side, point)))
        return [of_both(self.registers, *(self._paired(sides, side, j) for side in (0, 1))) for j in range(self.points)]

    def _paired(self, sides: list[list[Number]], side: int, j: int) -> Number:
        own, opposite = sides[side][j], sides[1 - side][self.points - 1 - j]
        return Number(opposite.imaginary, own.real) if self.sines else Number(own.real, opposite.imaginary)

    def write_columns(self, frequencies: list[Number]) -> None:
        for side, column in enumerate(self.columns):
            start = linear([(self.line, self.half), (column, self.points)])
            write_line(self.routine, start, [of_one(x, side) for x in frequencies])

    def read_columns(self) -> list[Number]:
        operand = self.routine.operands[0]
        return [
            of_both(self.registers, *(read_number(self.routine, operand, self._at(side, j)) for side in (0, 1)))
            for j in range(self.points)
        ]

    def write(self, frequencies: list[Number]) -> None:
        for side in (0, 1):
            for k, x in enumerate(frequencies):
                back = of_one(frequencies[self.points - 1 - k], 1 - side).imaginary
                pair = Number(of_one(x, side).real, back if self.sines else f"-{back}")
                write_number(self.routine, self._at(side, k), pair)


class _Whole(_Step):
    """Of a line along memory: all of its numbers."""

    def __init__(self, routine: RoutineShader, points: int, line: Index) -> None:
        super().__init__(routine, points, 1, 1)
        self.line, self.columns = line, [constant(0)]

    def _at(self, point: int) -> Index:
        return linear([(self.line, self.points)], point)

    def read(self) -> list[Number]:
        own = [self._read(point) for point in range(self.points)] if self.points % 2 else self._read_neighbours()
        pairs = zip(own, reversed(own), strict=True)
        return [Number(y.imaginary, x.real) if self.sines else Number(x.real, y.imaginary) for x, y in pairs]

    def _read(self, point: int) -> Number:
        return read_number(self.routine, self.routine.operands[0], self._at(point))

    def _read_neighbours(self) -> list[Number]:
        operand = self.routine.operands[0]
        fours = [read_neighbours(self.routine, operand, self._at(point)) for point in range(0, self.points, 2)]
        return [Number(*(f"{four}.{side}" for side in sides)) for four in fours for sides in ("xy", "zw")]

    def write(self, frequencies: list[Number]) -> None:
        sign = "" if self.sines else "-"
        pairs = zip(frequencies, reversed(frequencies), strict=True)
        found = [Number(x.real, f"{sign}{y.imaginary}") for x, y in pairs]
        write_line(self.routine, self._at(0), found)


class _Across(_Step):
    """Of lines along another axis: the same column of neighbouring lines."""

    def __init__(self, routine: RoutineShader, points: int, width: int, behind: int, number: Index) -> None:
        self.together, self.behind = pairs_together(points, behind), behind
        super().__init__(routine, points, width, self.together)
        each = behind // self.together
        row, self.first = quotient(number, each), linear([(remainder(number, each), self.together)])
        self.line, self.column = quotient(row, width), remainder(row, width)
        self.columns = [self.column]
        self.rows = RealRows(routine, self.registers, self.line, 2 * self.half, behind, self.first)

    def _places(self, point: int) -> tuple[Index, Index]:
        """Where the parts of the number of a point are."""
        ahead, apart = linear([(self.column, 2)], 2 * point * self.width), 2 * self.half - 1
        return ahead, linear([(ahead, -1)], apart)

    def read(self) -> list[Number]:
        found = []
        for point in range(self.points):
            ahead, back = (self.rows.read(place) for place in self._places(point))
            found.append(Number(back, ahead) if self.sines else Number(ahead, back))
        return found

    def write_columns(self, frequencies: list[Number]) -> None:
        parts = [(self.line, self.half * self.behind), (self.column, self.points * self.behind), (self.first, 1)]
        read_ahead(self.routine, [Rows(linear(parts), self.points, self.behind)], self.together)
        for k, x in enumerate(frequencies):
            start = linear(parts, k * self.behind)
            if self.together == 1:
                write_number(self.routine, start, x)
            for side in range(0, self.together - 1, 2):
                write_neighbours(self.routine, linear([(start, 1)], side), of_one(x, side), of_one(x, side + 1))

    def read_columns(self) -> list[Number]:
        operand, kind = self.routine.operands[0], self.registers.kind
        found = []
        for point in range(self.points):
            parts = [(self.line, self.half * self.behind), (self.column, self.behind), (self.first, 1)]
            start = linear(parts, point * self.width * self.behind)
            if self.together == 1:
                found.append(read_number(self.routine, operand, start))
                continue
            starts = (linear([(start, 1)], side) for side in range(0, self.together, 2))
            fours = [read_neighbours(self.routine, operand, at) for at in starts]
            texts = (", ".join(f"{four}.{row}" for four in fours) for row in ("xz", "yw"))
            found.append(self.registers.named(*(f"{kind}({text})" for text in texts)))
        return found

    def write(self, frequencies: list[Number]) -> None:
        if self.together > 1:
            first, (_, last) = self._places(0)[0], self._places(self.points - 1)
            apart = self.width * self.behind
            rows = [Rows(self.rows.position(place, 2), self.points, apart) for place in (first, last)]
            read_ahead(self.routine, rows, self.together // 2)
        for k, x in enumerate(frequencies):
            ahead, back = self._places(k)
            self.rows.write(ahead, x.real)
            self.rows.write(back, x.imaginary if self.sines else f"-{x.imaginary}")
