"""Steps that read or write lines of real numbers in another order, as cosine transforms need it.

Of a line x of 2h real numbers, the pairs that are transformed are those of x[0], x[2], …, x[3], x[1]. So four
neighbours x[4p] to x[4p + 3] are the parts of the numbers p and h − 1 − p. An invocation holds a column of a step and
the one that is as far from the other end, and has both numbers of all fours that it reads or writes.

Lines that are written may have an odd number h. Then the fours of every second line begin in the middle of a vector, so
that each is two pairs, and the middle number, of the middle column, is its own opposite: the last pair of the line.
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.lanes import Lanes, TwoLines
from lavax.backends.vulkan.emit.fourier.numbers import (
    open_step,
    read_neighbours,
    read_number,
    write_line,
    write_neighbours,
    write_number,
)
from lavax.backends.vulkan.emit.fourier.roots import multiples, of_both, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel


def emit_folded(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a step of which each invocation holds two columns."""
    routine = open_step(kernel, profile, lifted)
    lines, _, rest, behind, _ = routine.operands[0].shape
    count = lines * _column_pairs(rest * behind)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as place:
        step = _Step(routine, place)
        if routine.node.attrs["reverse"]:
            step.write_folded(transformed(step.double, step.read()))
        else:
            step.write(step.twiddled(transformed(step.double, step.read_folded())))
    return routine.close(count)


def _column_pairs(columns: int) -> int:
    """How many columns are in the first half of a line, or in its middle."""
    return (columns + 1) // 2


def emit_folded_by_lanes(kernel: Kernel, profile: DeviceProfile, lifted: bool, lanes: int) -> Launch:
    """The shader of a step of which so many lanes share two columns."""
    routine = open_step(kernel, profile, lifted)
    lines, _, rest, behind, _ = routine.operands[0].shape
    count = lanes * lines * rest * behind // 2
    reverse = routine.node.attrs["reverse"]
    step = Lanes(routine, lanes, sign=1 if reverse else -1)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        (_LastByLanes if reverse else _FirstByLanes)(step, quotient(number, lanes)).write()
    return routine.close(count, subgroup=True)


def read_fours(routine: RoutineShader, position: Index) -> tuple[Number, Number]:
    """The numbers p and h − 1 − p of a line, whose four neighbours begin at a position in complex numbers."""
    four, sign = read_neighbours(routine, routine.operands[0], position), _sign(routine)
    ends = (f"({sign}{four}.{part})" if sign else f"{four}.{part}" for part in "wy")
    return Number(f"{four}.x", f"{four}.z"), Number(*ends)


def write_fours(routine: RoutineShader, position: Index, number: Number, opposite: Number) -> None:
    """Writes the numbers p and h − 1 − p of a line as four neighbours from a position in complex numbers on."""
    ends = [f"-({part})" if _sign(routine) else part for part in (opposite.real, opposite.imaginary)]
    write_neighbours(routine, position, Number(number.real, ends[1]), Number(number.imaginary, ends[0]))


def write_pairs(routine: RoutineShader, position: Index, number: Number, opposite: Number, middle: str = "") -> None:
    """Writes the numbers p and h − 1 − p of a line as four neighbours from a position in complex numbers on. They are
    one if the text `middle` is true; then there is no second pair."""
    sign = _sign(routine)
    write_number(routine, position, Number(number.real, f"{sign}({opposite.imaginary})"))
    with routine.body.block(f"if (!{middle})") if middle else nullcontext():
        write_number(routine, linear([(position, 1)], 1), Number(number.imaginary, f"{sign}({opposite.real})"))


def read_folded_line(routine: RoutineShader, line: Index, half: int) -> list[Number]:
    """A whole line of an even number of complex numbers."""
    fours = [read_fours(routine, linear([(line, half)], 2 * p)) for p in range(half // 2)]
    return [number for number, _ in fours] + [opposite for _, opposite in reversed(fours)]


def read_folded_by_lanes(lanes: Lanes, line: Index, in_pairs: bool) -> list[Number]:
    """The points that each lane has of a line: with pairs of neighbours, those of every 2q numbers, or else the number
    of every q that its own `number` is.

    The opposites of a lane's points are those of the lane whose number has all bits the other way, from the last one.
    """
    routine, half = lanes.routine, lanes.routine.operands[0].shape[1]
    together = 2 if in_pairs else 1
    own = half // (together * lanes.count)

    def fours(j: int, side: int) -> tuple[Number, Number]:
        at = j * together * lanes.count + side
        return read_fours(routine, linear([(line, half), (lanes.number, 2 * together)], 2 * at))

    found: dict[int, Number] = {}
    for j in range(own // 2):
        pairs = [fours(j, side) for side in range(together)]
        numbers = [number for number, _ in pairs]
        opposites = [_given(lanes, opposite) for _, opposite in reversed(pairs)]
        found[j], found[own - 1 - j] = (
            (of_both(lanes.double, *each) if in_pairs else each[0]) for each in (numbers, opposites)
        )
    if own % 2:
        found[own // 2] = _middle(lanes, line, half)
    return [found[j] for j in range(own)]


def _middle(lanes: Lanes, line: Index, half: int) -> Number:
    """A lane's number in the middle of an odd number of those that it has: both lanes read the same four."""
    number, last = lanes.body.index(lanes.number), lanes.count - 1
    is_lower = lanes.body.declare(lanes.body.scopes[-1], "bool", f"{number} < {lanes.count // 2}")
    text = f"{half // 2 - lanes.count // 2} + ({is_lower} ? {number} : {last} - {number})"
    at = lanes.routine.position("middle", text, half // 2)
    return _both_sides(lanes, is_lower, *read_fours(lanes.routine, linear([(line, half), (at, 2)])))[0]


def write_folded_line(routine: RoutineShader, line: Index, found: Sequence[Number]) -> None:
    """Writes a whole line of complex numbers."""
    half = len(found)
    write = write_pairs if half % 2 else write_fours
    for p in range(half // 2):
        write(routine, linear([(line, half)], 2 * p), found[p], found[half - 1 - p])
    if half % 2:
        middle = found[half // 2]
        last = Number(middle.real, f"{_sign(routine)}({middle.imaginary})")
        write_number(routine, linear([(line, half)], half - 1), last)


def write_folded_by_lanes(lanes: Lanes, line: Index, numbers: Sequence[Number]) -> None:
    """Writes a line of which each lane has numbers that follow each other, from as many times its `frequency` on.

    The opposites are with the lane whose number has all bits the other way. Both lanes write half of the fours.
    """
    routine, own, half = lanes.routine, len(numbers), len(numbers) * lanes.count
    frequency = lanes.body.index(lanes.frequency)
    is_lower = lanes.body.declare(lanes.body.scopes[-1], "bool", f"{frequency} < {lanes.count // 2}")
    start = f"{own} * ({is_lower} ? {frequency} : {lanes.count - 1} - {frequency})"
    first = routine.position("first", start, half // 2 - own + 1)
    for k in range(own // 2):
        # The upper lane writes the fours of its partner's numbers from the last one on.
        at = routine.position(f"four{k}", f"{lanes.body.index(first)} + ({is_lower} ? {k} : {own - 1 - k})", half // 2)
        both = _both_sides(lanes, is_lower, numbers[k], _given(lanes, numbers[own - 1 - k]))
        write_fours(routine, linear([(line, half), (at, 2)]), *both)
    if own % 2:
        middle = numbers[own // 2]
        given = _given(lanes, middle)
        with lanes.body.block(f"if ({is_lower})"):
            write_fours(routine, linear([(line, half), (first, 2)], 2 * (own // 2)), middle, given)


def _sign(routine: RoutineShader) -> str:
    return "-" if routine.node.attrs["folded"] < 0 else ""


def _given(lanes: Lanes, x: Number) -> Number:
    """What the lane has whose number has all bits the other way."""
    return lanes.single.named(
        *(f"subgroupShuffleXor({part}, {lanes.count - 1}u)" for part in (x.real, x.imaginary))
    )


def _both_sides(lanes: Lanes, is_lower: str, own: Number, given: Number) -> tuple[Number, Number]:
    """A number of the first half of a line and its opposite, of which the lane has one and is given the other."""

    def chosen(first: Number, second: Number) -> Number:
        parts = (first.real, second.real), (first.imaginary, second.imaginary)
        return lanes.single.named(*(f"{is_lower} ? {one} : {other}" for one, other in parts))

    return chosen(own, given), chosen(given, own)


class _Step:
    """The state of writing the step of an invocation: a column, and the one that is as far from the other end."""

    def __init__(self, routine: RoutineShader, place: Index) -> None:
        self.routine, self.body = routine, routine.body
        _, self.points, self.rest, self.behind, _ = routine.operands[0].shape
        self.width = self.rest * self.behind
        pairs = _column_pairs(self.width)
        self.line, column = quotient(place, pairs), remainder(place, pairs)
        self.columns = column, linear([(column, -1)], self.width - 1)
        self.sign = 1 if routine.node.attrs["reverse"] else -1
        self.single, self.double = (Registers(self.body, routine.node.dtype, n, self.sign) for n in (1, 2))
        self.is_odd = self.points * self.width % 2 == 1
        self._is_own_opposite = f"({self.body.index(column)} == {self.width // 2})"  # the middle column

    def _four(self, column: Index, point: int) -> Index:
        """Where the four neighbours are that hold the number of a column, in the first half of the line."""
        return linear([(self.line, self.points * self.width), (column, 2)], 2 * point * self.width)

    def read_folded(self) -> list[Number]:
        sides: list[dict[int, Number]] = [{}, {}]
        for point in range(self.points // 2):
            for side, column in enumerate(self.columns):
                number, opposite = read_fours(self.routine, self._four(column, point))
                sides[side][point], sides[1 - side][self.points - 1 - point] = number, opposite
        if self.points % 2:
            middle = self.points // 2
            sides[0][middle], sides[1][middle] = read_fours(self.routine, self._four(self.columns[0], middle))
        return [of_both(self.double, sides[0][point], sides[1][point]) for point in range(self.points)]

    def read(self) -> list[Number]:
        def number(column: Index, point: int) -> Number:
            at = linear([(self.line, self.points * self.width), (column, 1)], point * self.width)
            return read_number(self.routine, self.routine.operands[0], at)

        first, second = self.columns
        return [of_both(self.double, number(first, point), number(second, point)) for point in range(self.points)]

    def twiddled(self, frequencies: list[Number]) -> list[Number]:
        """The numbers times the roots of their frequency and their place."""

        def root(frequency: int) -> Number:
            places = (self.body.index(linear([(column, frequency)])) for column in self.columns)
            return of_both(self.double, *(unit_root(self.single, at, self.points * self.rest) for at in places))

        roots = multiples(self.double, self.points, root)
        turned = [self.double.times(x, by) for x, by in zip(frequencies[1:], roots, strict=True)]
        return [frequencies[0], *turned]

    def write(self, frequencies: list[Number]) -> None:
        for side, column in enumerate(self.columns):
            start = linear([(self.line, self.points * self.rest), (column, self.points)])
            write_line(self.routine, start, [of_one(x, side) for x in frequencies])

    def write_folded(self, frequencies: list[Number]) -> None:
        for k in range((self.points + 1) // 2):
            found, opposite = frequencies[k], frequencies[self.points - 1 - k]
            is_middle = 2 * k + 1 == self.points
            for side, column in enumerate(self.columns[:1] if is_middle else self.columns):
                both = of_one(found, side), of_one(opposite, 1 - side)
                if self.is_odd:
                    write_pairs(self.routine, self._four(column, k), *both, self._is_own_opposite if is_middle else "")
                else:
                    write_fours(self.routine, self._four(column, k), *both)


class _FirstByLanes(TwoLines):
    """A first step: each lane reads fours of both columns, and gives the opposites to the lane that needs them."""

    def _column_pair(self, column: Index) -> list[Index]:
        return [column, linear([(column, -1)], self.width - 1)]

    def _read(self) -> list[Number]:
        count, own = self.lanes.count, self.own
        sides: list[dict[int, Number]] = [{}, {}]
        for j in range(own // 2):
            for side, column in enumerate(self.columns):
                parts = [(self.line, self.points * self.width), (self.lanes.number, 2 * self.width), (column, 2)]
                found, opposite = read_fours(self.routine, linear(parts, 2 * j * count * self.width))
                sides[side][j], sides[1 - side][own - 1 - j] = found, _given(self.lanes, opposite)
        if own % 2:
            sides[0][own // 2], sides[1][own // 2] = self._middle()
        return [of_both(self.double, sides[0][j], sides[1][j]) for j in range(own)]

    def _middle(self) -> tuple[Number, Number]:
        """The numbers of both columns in the middle of an odd number of points: a lane whose number is in the first
        half of the line reads the four of its own column, and the one that has the opposite those of the other one."""
        lanes, body = self.lanes, self.lanes.body
        number, last = body.index(lanes.number), lanes.count - 1
        is_lower = body.declare(body.scopes[-1], "bool", f"{number} < {lanes.count // 2}")
        first, second = (body.index(column) for column in self.columns)
        column = self.routine.position("column", f"{is_lower} ? {first} : {second}", self.width)
        place = f"{self.points // 2 - lanes.count // 2} + ({is_lower} ? {number} : {last} - {number})"
        row = self.routine.position("row", place, self.points // 2)
        four = linear([(self.line, self.points * self.width), (row, 2 * self.width), (column, 2)])
        own, other = _both_sides(lanes, is_lower, *read_fours(self.routine, four))
        return own, _given(lanes, other)


class _LastByLanes(TwoLines):
    """A last step of an inverse: a lane of the lower half of frequencies writes the fours of the first column's, and
    the one whose number has all bits the other way those of the second column's."""

    def _column_pair(self, column: Index) -> list[Index]:
        return [column, linear([(column, -1)], self.width - 1)]

    def _read(self) -> list[Number]:
        def number(column: Index, j: int) -> Number:
            at = [(self.line, self.points * self.width), (self.lanes.number, self.width), (column, 1)]
            position = linear(at, j * self.lanes.count * self.width)
            return read_number(self.routine, self.routine.operands[0], position)

        first, second = self.columns
        return [of_both(self.double, number(first, j), number(second, j)) for j in range(self.own)]

    def _write(self, frequencies: list[Number]) -> None:
        lanes, own, half = self.lanes, self.own, self.points * self.width
        frequency = lanes.body.index(lanes.frequency)
        is_lower = lanes.body.declare(lanes.body.scopes[-1], "bool", f"{frequency} < {lanes.count // 2}")
        first, second = (lanes.body.index(column) for column in self.columns)
        column = self.routine.position("column", f"{is_lower} ? {first} : {second}", self.width)
        row = f"{own} * ({is_lower} ? {frequency} : {lanes.count - 1} - {frequency})"
        start = self.routine.position("row", row, self.points // 2 - own + 1)
        for k in range(own):
            at = f"{lanes.body.index(start)} + ({is_lower} ? {k} : {own - 1 - k})"
            place = self.routine.position(f"row{k}", at, self.points // 2)
            given = _given(lanes, of_one(frequencies[own - 1 - k], 1))
            both = _both_sides(lanes, is_lower, of_one(frequencies[k], 0), given)
            four = linear([(self.line, half), (place, 2 * self.width), (column, 2)])
            write_fours(self.routine, four, *both)
