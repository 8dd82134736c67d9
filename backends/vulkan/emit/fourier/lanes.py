"""Steps of Fourier transforms whose points the lanes of a subgroup share, with nothing in memory between them.

Of p·q points each of q lanes transforms p in registers. After twiddle factors, the numbers of one frequency are
transformed across the lanes, by shuffles: q is a power of two, and two halves of the lanes exchange at a time
(decimation in frequency), so that at the end a lane has the frequency that is its number with the bits in the opposite
order. On a CPU driver a shuffle is one instruction and a store is a loop over the lanes, so one such step takes less
time than two that hold less. Roots that depend on the lane alone are constants there, because the lanes are known.
"""
from __future__ import annotations

from collections.abc import Callable

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.choose import has_pairs
from lavax.backends.vulkan.emit.fourier.numbers import (
    open_step,
    read_neighbours,
    read_number,
    write_neighbours,
    write_number,
)
from lavax.backends.vulkan.emit.fourier.roots import multiples, multiples_from, of_both, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.numerics.unit_roots import unit_root as host_root


def emit_by_lanes(kernel: Kernel, profile: DeviceProfile, lifted: bool, lanes: int) -> Launch:
    """The shader of a step of which so many lanes share a line, or two lines that are neighbours in memory."""
    routine = open_step(kernel, profile, lifted)
    lines, points, rest, behind, _ = routine.operands[0].shape
    count = lanes * max(lines * rest * behind // 2, 1) if rest * behind > 1 else lanes * lines
    in_pairs = rest * behind > 1 or has_pairs(points, lanes)
    step = Lanes(routine, lanes, rotated=not in_pairs, sign=1 if routine.node.attrs["reverse"] else -1)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        place = quotient(number, lanes)
        if rest * behind > 1:
            TwoLines(step, place).write()
        else:
            _write_line(step, place, in_pairs)
    return routine.close(count, subgroup=True)


class Lanes:
    """The lanes that share points, and what they exchange.

    The `number` of a lane among them is its own, or if they are `rotated`, that with the highest bit moved to the end.
    """

    def __init__(self, routine: RoutineShader, count: int, rotated: bool = False, sign: int = -1) -> None:
        self.routine, self.body, self.count, self.rotated = routine, routine.body, count, rotated
        self.single, self.double = (Registers(self.body, routine.node.dtype, n, sign) for n in (1, 2))
        bits = count.bit_length() - 1
        own = f"int(gl_SubgroupInvocationID % {count}u)"
        if rotated:
            own = self.body.declare(self.body.scopes[-1], "int", own)
            own = f"({own} << 1 & {count - 1}) | {own} >> {bits - 1}"
        self.number = routine.position("member", own, count)
        moved = (f"(member >> {bit} & 1) << {bits - 1 - bit}" for bit in range(bits))
        self.frequency = routine.position("turned", " | ".join(f"({part})" for part in moved), count)
        widths = [count >> 1 + bit for bit in range(bits)]
        self._exchanges = [(width, *self._exchange(width)) for width in widths]

    def shuffled(self, part: str, width: int) -> str:
        """What the lane has whose number differs in the bit of that width."""
        place = width.bit_length() - 1
        bit = (place - 1) % (self.count.bit_length() - 1) if self.rotated else place
        return f"subgroupShuffleXor({part}, {1 << bit}u)"

    def lane_of(self, number: str) -> str:
        """The lane among those that share points whose number that is."""
        bits = self.count.bit_length() - 1
        return f"({number} >> 1 | ({number} & 1) << {bits - 1})" if self.rotated else number

    def _exchange(self, width: int) -> tuple[str, Number | None]:
        """Whether a lane adds its own number or subtracts it, and what it multiplies the result by; None: 1."""
        upper = f"(member & {width}) != 0"
        one, zero = self.single.text(1.0), self.single.text(0.0)
        side = self.body.declare(self.body.scopes[-1], self.single.kind, f"{upper} ? -{one} : {one}")
        if width == 1:
            return side, None
        roots = [host_root(self.single.sign * k, 2 * width) for k in range(width)]
        real = self._chosen([root.real for root in roots])
        imaginary = self._chosen([root.imag for root in roots])
        return side, self.single.named(f"{upper} ? {real} : {one}", f"{upper} ? {imaginary} : {zero}")

    def _chosen(self, values: list[float]) -> str:
        """Each lane's own of several constants, by its lowest bits."""
        if len(values) == 1:
            return self.single.text(values[0])
        half = len(values) // 2
        return f"((member & {half}) != 0 ? {self._chosen(values[half:])} : {self._chosen(values[:half])})"

    def across(self, registers: Registers, x: Number) -> Number:
        """Transforms one number of each lane; lane l has the frequency of `frequency` then."""
        for width, side, root in self._exchanges:
            parts = (f"{part} * {side} + {self.shuffled(part, width)}" for part in (x.real, x.imaginary))
            x = registers.named(*parts)
            x = x if root is None else registers.times(x, root)
        return x

    def read(self, position: Index) -> Number:
        """Two neighbours in memory."""
        four = read_neighbours(self.routine, self.routine.operands[0], position)
        return self.double.named(f"{four}.xz", f"{four}.yw")


def _transformed_pairs(lanes: Lanes, numbers: list[Number]) -> list[tuple[Number, Number]]:
    """The transform of a line that is whole and lies along memory.

    Each lane has two neighbours of every 2q points, and of the result p/2 numbers from p/2 times its `frequency` on,
    each with the one that is half the points behind.
    """
    own = len(numbers)
    points = 2 * own * lanes.count
    found = transformed(lanes.double, numbers)

    def root(frequency: int) -> Number:
        at = (lanes.body.index(linear([(lanes.number, 2 * frequency)], frequency * side)) for side in (0, 1))
        return of_both(lanes.double, *(unit_root(lanes.single, text, points) for text in at))

    roots = multiples(lanes.double, own, root)
    turned = [found[0], *(lanes.double.times(x, factor) for x, factor in zip(found[1:], roots, strict=True))]
    last = unit_root(lanes.single, lanes.body.index(lanes.frequency), 2 * lanes.count)
    pairs = []
    for x in (lanes.across(lanes.double, y) for y in turned):
        even, odd = of_one(x, 0), lanes.single.times(of_one(x, 1), last)
        pairs.append((lanes.single.plus(even, odd), lanes.single.minus(even, odd)))
    return pairs


def transformed_numbers(lanes: Lanes, numbers: list[Number]) -> list[Number]:
    """The transform of a line of which each lane has the numbers from its own `number` on, q apart: of the result it
    has as many from as many times its `frequency` on."""
    single, own = lanes.single, len(numbers)
    found = transformed(single, numbers)
    length = own * lanes.count
    roots = multiples(single, own, lambda k: unit_root(single, lanes.body.index(linear([(lanes.number, k)])), length))
    turned = [found[0], *(single.times(x, root) for x, root in zip(found[1:], roots, strict=True))]
    return [lanes.across(single, x) for x in turned]


def points_of_line(lanes: Lanes, line: Index, in_pairs: bool) -> list[Number]:
    """The points that each lane has of a line that lies along memory; pairs of neighbours side by side."""
    points = lanes.routine.operands[0].shape[1]
    if not in_pairs:
        return _every(lanes, line, points // lanes.count)
    starts = range(0, points, 2 * lanes.count)
    return [lanes.read(linear([(line, points), (lanes.number, 2)], start)) for start in starts]


def transformed_parts(lanes: Lanes, points: list[Number], in_pairs: bool) -> list[tuple[Number, ...]]:
    """The transform of a line: each lane's numbers, with those that are half the points behind if it has pairs."""
    return [*_transformed_pairs(lanes, points)] if in_pairs else [(x,) for x in transformed_numbers(lanes, points)]


def _write_line(lanes: Lanes, line: Index, in_pairs: bool) -> None:
    parts = transformed_parts(lanes, points_of_line(lanes, line, in_pairs), in_pairs)
    points = lanes.routine.operands[0].shape[1]
    runs = Runs(lanes, len(parts))
    for side in range(len(parts[0])):
        runs.write(linear([(line, points)], side * points // 2), [part[side] for part in parts])


def _every(lanes: Lanes, line: Index, own: int) -> list[Number]:
    """The numbers of a line that lie at a lane's own `number` and every q behind it.

    Of 2q numbers, the pair that a lane reads is needed by the lane and by the one that is half the lanes away, whose
    numbers are the same but for the lowest bit: each gives the other what that needs.
    """
    routine, body, single, points = lanes.routine, lanes.body, lanes.single, own * lanes.count
    lane = routine.position("reader", f"int(gl_SubgroupInvocationID % {lanes.count}u)", lanes.count)
    is_upper = body.declare(body.scopes[-1], "bool", f"{body.index(lane)} >= {lanes.count // 2}")
    numbers = []
    for j in range(0, own - 1, 2):
        four = read_neighbours(routine, routine.operands[0], linear([(line, points), (lane, 2)], j * lanes.count))
        first, second = [], []
        for own_part, other in zip("xy", "zw", strict=True):
            sent = body.declare(body.scopes[-1], single.kind, f"{is_upper} ? {four}.{own_part} : {four}.{other}")
            given = body.declare(body.scopes[-1], single.kind, lanes.shuffled(sent, 1))
            first.append(f"{is_upper} ? {given} : {four}.{own_part}")
            second.append(f"{is_upper} ? {four}.{other} : {given}")
        numbers += [single.named(*first), single.named(*second)]
    if own % 2:
        last = linear([(line, points), (lanes.number, 1)], (own - 1) * lanes.count)
        numbers.append(read_number(routine, routine.operands[0], last))
    return numbers


class Runs:
    """Writes `own` numbers of each lane, which follow those of the lane whose frequency is one less.

    If they are an odd number, those of odd frequencies begin at odd places: these lanes give their first number to the
    lane before them.
    """

    def __init__(self, lanes: Lanes, own: int) -> None:
        self.lanes, self.routine, self.own = lanes, lanes.routine, own
        if own % 2:
            last, frequency = lanes.count - 1, lanes.body.index(lanes.frequency)
            self._is_odd = lanes.body.declare(lanes.body.scopes[-1], "bool", f"({frequency} & 1) != 0")
            self._pairs = self.routine.position("pairs", f"{own} * {frequency} + 1 >> 1", (own * last + 1) // 2 + 1)
            even = f"{own} * ({frequency} >> 1)"
            self._even = self.routine.position("even", even, own * (last // 2) + 1)

    def write(self, start: Index, numbers: list[Number]) -> None:
        """The lane's numbers; those of the first frequency begin at `start`, which is even."""
        if self.own % 2 == 0:
            for k in range(0, self.own, 2):
                position = linear([(start, 1), (self.lanes.frequency, self.own)], k)
                write_neighbours(self.routine, position, *numbers[k : k + 2])
            return
        for k in range(0, self.own - 1, 2):
            both = (self._chosen(numbers[k + side + 1], numbers[k + side]) for side in (0, 1))
            write_neighbours(self.routine, linear([(start, 1), (self._pairs, 2)], k), *both)
        first, width = numbers[0], self.lanes.count >> 1
        given = self.lanes.single.named(*(self.lanes.shuffled(part, width) for part in (first.real, first.imaginary)))
        with self.lanes.body.block(f"if (!{self._is_odd})"):
            write_neighbours(self.routine, linear([(start, 1), (self._even, 2)], self.own - 1), numbers[-1], given)

    def _chosen(self, of_odd: Number, of_even: Number) -> Number:
        parts = (of_odd.real, of_even.real), (of_odd.imaginary, of_even.imaginary)
        return self.lanes.single.named(*(f"{self._is_odd} ? {odd} : {even}" for odd, even in parts))


class TwoLines:
    """Two columns of a step, which are neighbours in memory."""

    def __init__(self, lanes: Lanes, place: Index) -> None:
        self.lanes, self.routine, self.single, self.double = lanes, lanes.routine, lanes.single, lanes.double
        _, self.points, self.rest, self.behind, _ = self.routine.operands[0].shape
        self.own, self.width = self.points // lanes.count, self.rest * self.behind
        self.line, column = quotient(place, self.width // 2), remainder(place, self.width // 2)
        self.columns = self._column_pair(column)

    def _column_pair(self, column: Index) -> list[Index]:
        """The columns of one of half as many numbers."""
        return [linear([(column, 2)], side) for side in (0, 1)]

    def _read(self) -> list[Number]:
        """The lane's points of both columns."""
        at = [(self.line, self.points * self.width), (self.lanes.number, self.width), (self.columns[0], 1)]
        return [self.lanes.read(linear(at, j * self.lanes.count * self.width)) for j in range(self.own)]

    def write(self) -> None:
        number, found = self.lanes.number, transformed(self.double, self._read())
        roots = multiples(self.single, self.own, lambda k: self._unit_root(self.single, number, k, self.points))
        turned = [found[0], *(self.double.times(x, root) for x, root in zip(found[1:], roots, strict=True))]
        frequencies = [self.lanes.across(self.double, x) for x in turned]
        self._write(self._twiddled(frequencies) if self.rest > 1 else frequencies)

    def _unit_root(self, registers: Registers, place: Index, factor: int, length: int) -> Number:
        return unit_root(registers, self.lanes.body.index(linear([(place, factor)])), length)

    def _twiddled(self, frequencies: list[Number]) -> list[Number]:
        """The frequencies k + own·frequency of the lane, times their roots at the place of each line."""
        length, start = self.points * self.rest, self.own
        first, second = (quotient(column, self.behind) for column in self.columns)
        of_lane = self.lanes.body.index(linear([(self.lanes.frequency, start)]))
        root: Callable[[int], Number]
        begin = unit_root(self.single, f"{of_lane} * {self.lanes.body.index(first)}", length)
        if self.behind % 2 == 0:  # both lines have the same place
            roots = multiples_from(
                self.single, begin, self.own, lambda k: self._unit_root(self.single, first, k, length)
            )
        else:
            other = unit_root(self.single, f"{of_lane} * {self.lanes.body.index(second)}", length)

            def root(frequency: int) -> Number:
                return of_both(
                    self.double, *(self._unit_root(self.single, at, frequency, length) for at in (first, second))
                )

            roots = multiples_from(self.double, of_both(self.double, begin, other), self.own, root)
        return [self.double.times(x, factor) for x, factor in zip(frequencies, roots, strict=True)]

    def _position(self, side: int, k: int) -> Index:
        """Where a line's number is in the result."""
        place, back = quotient(self.columns[side], self.behind), remainder(self.columns[side], self.behind)
        row = linear([(self.line, self.rest), (place, 1)])
        parts = [(row, self.points * self.behind), (self.lanes.frequency, self.own * self.behind), (back, 1)]
        return linear(parts, k * self.behind)

    def _write(self, frequencies: list[Number]) -> None:
        if self.behind % 2 == 0:
            for k, x in enumerate(frequencies):
                write_neighbours(self.routine, self._position(0, k), of_one(x, 0), of_one(x, 1))
            return
        runs = Runs(self.lanes, self.own) if self.behind == 1 else None
        for side in (0, 1):
            numbers = [of_one(x, side) for x in frequencies]
            if runs:
                place = linear([(self.line, self.rest), (self.columns[side], 1)])
                runs.write(linear([(place, self.points)]), numbers)
            else:
                for k, x in enumerate(numbers):
                    write_number(self.routine, self._position(side, k), x)
