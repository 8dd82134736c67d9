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
from lavax.backends.vulkan.emit.fourier.numbers import read_neighbours, write_neighbours, write_number
from lavax.backends.vulkan.emit.fourier.roots import multiples, multiples_from, of_both, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.numerics.unit_roots import unit_root as host_root


def emit_by_lanes(kernel: Kernel, profile: DeviceProfile, lifted: bool, lanes: int) -> Launch:
    """The shader of a step of which so many lanes share a line, or two lines that are neighbours in memory."""
    routine = open_routine(kernel, profile, lifted)
    lines, _, rest, behind, _ = routine.operands[0].shape
    count = lanes * max(lines * rest * behind // 2, 1) if rest * behind > 1 else lanes * lines
    step = Lanes(routine, lanes)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        place = quotient(number, lanes)
        if rest * behind > 1:
            _TwoLines(step, place).write()
        else:
            _write_line(step, place)
    return routine.close(count, subgroup=True)


class Lanes:
    """The lanes that share points, and what they exchange."""

    def __init__(self, routine: RoutineShader, count: int) -> None:
        self.routine, self.body, self.count = routine, routine.body, count
        sign = 1 if routine.node.attrs.get("reverse") else -1
        self.single, self.double = (Registers(self.body, routine.node.dtype, n, sign) for n in (1, 2))
        self.number = routine.position("member", f"int(gl_SubgroupInvocationID % {count}u)", count)
        bits = count.bit_length() - 1
        moved = (f"(member >> {bit} & 1) << {bits - 1 - bit}" for bit in range(bits))
        self.frequency = routine.position("turned", " | ".join(f"({part})" for part in moved), count)
        widths = [count >> 1 + bit for bit in range(bits)]
        self._exchanges = [(width, *self._exchange(width)) for width in widths]

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

    def across(self, x: Number) -> Number:
        """Transforms one number of each lane; lane l has the frequency of `frequency` then."""
        for width, side, root in self._exchanges:
            parts = (f"{part} * {side} + subgroupShuffleXor({part}, {width}u)" for part in (x.real, x.imaginary))
            x = self.double.named(*parts)
            x = x if root is None else self.double.times(x, root)
        return x

    def read(self, position: Index) -> Number:
        """Two neighbours in memory."""
        four = read_neighbours(self.routine, self.routine.operands[0], position)
        return self.double.named(f"{four}.xz", f"{four}.yw")


def transformed_line(lanes: Lanes, line: Index) -> list[tuple[Number, Number]]:
    """The transform of a line that is whole and lies along memory.

    Each lane has two neighbours of every 2q points, and of the result p/2 numbers from p/2 times its `frequency` on,
    each with the one that is half the points behind.
    """
    points = lanes.routine.operands[0].shape[1]
    own = points // (2 * lanes.count)
    starts = [linear([(line, points), (lanes.number, 2)], j * 2 * lanes.count) for j in range(own)]
    found = transformed(lanes.double, [lanes.read(start) for start in starts])

    def root(frequency: int) -> Number:
        at = (lanes.body.index(linear([(lanes.number, 2 * frequency)], frequency * side)) for side in (0, 1))
        return of_both(lanes.double, *(unit_root(lanes.single, text, points) for text in at))

    roots = multiples(lanes.double, own, root)
    turned = [found[0], *(lanes.double.times(x, factor) for x, factor in zip(found[1:], roots, strict=True))]
    last = unit_root(lanes.single, lanes.body.index(lanes.frequency), 2 * lanes.count)
    pairs = []
    for x in map(lanes.across, turned):
        even, odd = of_one(x, 0), lanes.single.times(of_one(x, 1), last)
        pairs.append((lanes.single.plus(even, odd), lanes.single.minus(even, odd)))
    return pairs


def _write_line(lanes: Lanes, line: Index) -> None:
    pairs, points = transformed_line(lanes, line), lanes.routine.operands[0].shape[1]
    own = len(pairs)
    for half in (0, 1):
        for k in range(0, own, 2):
            position = linear([(line, points), (lanes.frequency, own)], half * own * lanes.count + k)
            write_neighbours(lanes.routine, position, pairs[k][half], pairs[k + 1][half])


class _TwoLines:
    """Two lines that are neighbours in memory."""

    def __init__(self, lanes: Lanes, place: Index) -> None:
        self.lanes, self.routine, self.single, self.double = lanes, lanes.routine, lanes.single, lanes.double
        _, self.points, self.rest, self.behind, _ = self.routine.operands[0].shape
        self.own, self.width = self.points // lanes.count, self.rest * self.behind
        self.line, column = quotient(place, self.width // 2), remainder(place, self.width // 2)
        self.columns = [linear([(column, 2)], side) for side in (0, 1)]

    def write(self) -> None:
        number, every = self.lanes.number, self.lanes.count * self.width
        at = [(self.line, self.points * self.width), (number, self.width), (self.columns[0], 1)]
        found = transformed(self.double, [self.lanes.read(linear(at, j * every)) for j in range(self.own)])
        roots = multiples(self.single, self.own, lambda k: self._unit_root(self.single, number, k, self.points))
        turned = [found[0], *(self.double.times(x, root) for x, root in zip(found[1:], roots, strict=True))]
        frequencies = [self.lanes.across(x) for x in turned]
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
        for side in (0, 1):
            numbers = [of_one(x, side) for x in frequencies]
            if self.behind == 1 and self.own % 2 == 0:
                for k in range(0, self.own, 2):
                    write_neighbours(self.routine, self._position(side, k), *numbers[k : k + 2])
            else:
                for k, x in enumerate(numbers):
                    write_number(self.routine, self._position(side, k), x)
