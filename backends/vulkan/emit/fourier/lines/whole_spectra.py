"""Whole spectra of real numbers along several axes, of half of them, on CPU drivers.

An invocation reads a few numbers and writes each to two places: its own, and that of the opposite frequencies, which
has its conjugate. Where the axis of half the frequencies is the last one, and has an even number of them, it has two
columns of a row, and the one behind, which with the second is two neighbours of the opposite row.
"""
from __future__ import annotations

from contextlib import nullcontext
from math import prod

from lavax.backends.vulkan.emit.fourier.butterflies import Number
from lavax.backends.vulkan.emit.fourier.numbers import (
    open_step,
    read_neighbours,
    read_number,
    write_neighbours,
    write_number,
)
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, clamp, flatten, linear, quotient, remainder, unflatten
from lavax.passes.kernels.kernel import Kernel


def emit_whole(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a copy."""
    routine = open_step(kernel, profile, lifted)
    spectrum = _Spectrum(routine)
    is_by_columns = spectrum.behind == 1 and spectrum.length % 2 == 0
    together = 2 if is_by_columns or spectrum.has_neighbours else 1
    each = -(-spectrum.half // 2) if is_by_columns else spectrum.half * spectrum.behind // together
    count = spectrum.ahead * each
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        row, own = quotient(number, each), remainder(number, each)
        if is_by_columns:
            spectrum.write_columns(row, linear([(own, 2)]))
        else:
            across = spectrum.behind // together
            spectrum.write_numbers(row, quotient(own, across), linear([(remainder(own, across), together)]), together)
    return routine.close(count)


class _Spectrum:
    """The state of writing a copy: of `ahead` · `length` · `behind` numbers, of which the operand has `half`."""

    def __init__(self, routine: RoutineShader) -> None:
        self.routine, attrs = routine, routine.node.attrs
        axis, self.length, self._opposite = attrs["axis"], attrs["length"], frozenset(attrs["opposite"])
        shape = routine.operands[0].shape[:-1]
        self._outer, self.half, self._inner = shape[:axis], shape[axis], shape[axis + 1 :]
        self._first_inner = axis + 1
        self.ahead, self.behind = prod(self._outer), prod(self._inner)

    @property
    def has_neighbours(self) -> bool:
        """Whether two neighbours in memory are neighbours at the opposite frequencies, too."""
        last = self._first_inner + len(self._inner) - 1
        return self.behind % 2 == 0 and last not in self._opposite and self._inner[-1] % 2 == 0

    def _turned(self, place: Index, shape: tuple[int, ...], first: int) -> Index:
        """The place whose frequencies along these axes, the first of which has that number, are the opposite ones."""
        found = [
            remainder(linear([(at, -1)], extent), extent) if axis in self._opposite else at
            for axis, (at, extent) in enumerate(zip(unflatten(place, shape), shape, strict=True), first)
        ]
        return flatten(tuple(found), shape)

    def _read(self, row: Index, column: Index, back: Index) -> Number:
        start = [(row, self.half * self.behind), (column, self.behind), (back, 1)]
        return read_number(self.routine, self.routine.operands[0], linear(start))

    def _at(self, row: Index, column: Index, back: Index) -> Index:
        return linear([(row, self.length * self.behind), (column, self.behind), (back, 1)])

    def write_columns(self, row: Index, column: Index) -> None:
        """Two columns, from an even one on. The column of half the length is its own mirror image: where it begins two
        neighbours, their second one is of a column before, and these are written together."""
        body, zero, middle = self.routine.body, linear([]), self.length // 2
        opposite = self._turned(row, self._outer, 0)
        own = [self._read(row, clamp(linear([(column, 1)], side), 0, middle), zero) for side in (0, 1)]
        is_own = f"if ({body.index(column)} < {middle})" if column.high >= middle else ""
        with body.block(is_own) if is_own else nullcontext():
            write_neighbours(self.routine, self._at(row, clamp(column, 0, middle - middle % 2), zero), *own)
        mirrored = linear([(column, -1)], self.length - 2)
        is_behind = f"if ({body.index(mirrored)} >= {middle})" if mirrored.low < middle else ""
        with body.block(is_behind) if is_behind else nullcontext():
            place = clamp(mirrored, middle - middle % 2, self.length - 2)
            first = self._mirrored(row, opposite, linear([(column, 1)], 2))
            write_neighbours(self.routine, self._at(opposite, place, zero), first, _conjugate(own[1]))

    def _mirrored(self, row: Index, opposite: Index, column: Index) -> Number:
        """What the opposite row has at the mirror image of a column, which may be the column itself."""
        middle, body, zero = self.length // 2, self.routine.body, linear([])
        inside = clamp(column, 0, middle)
        if middle % 2:
            return _conjugate(self._read(row, inside, zero))
        is_same = body.declare(body.scopes[-1], "bool", f"{body.index(inside)} == {middle}")
        at = self.routine.position("seen", f"{is_same} ? {body.index(opposite)} : {body.index(row)}", self.ahead)
        x = self._read(at, inside, zero)
        return Number(x.real, f"({is_same} ? {x.imaginary} : -{x.imaginary})")

    def write_numbers(self, row: Index, column: Index, back: Index, together: int) -> None:
        """So many neighbours behind a column."""
        body = self.routine.body
        start = self._at(row, column, back)
        if together == 2:
            position = linear([(row, self.half * self.behind), (column, self.behind), (back, 1)])
            four = read_neighbours(self.routine, self.routine.operands[0], position)
            numbers = [Number(*(f"{four}.{side}" for side in sides)) for sides in ("xy", "zw")]
            write_neighbours(self.routine, start, *numbers)
        else:
            numbers = [self._read(row, column, back)]
            write_number(self.routine, start, numbers[0])
        opposite = self._turned(row, self._outer, 0), self._turned(back, self._inner, self._first_inner)
        mirrored = clamp(linear([(column, -1)], self.length), self.half, self.length - 1)
        text = body.index(column)
        with body.block(f"if ({text} != 0 && {text} < {(self.length + 1) // 2})"):
            place = self._at(opposite[0], mirrored, opposite[1])
            if together == 2:
                write_neighbours(self.routine, place, *map(_conjugate, numbers))
            else:
                write_number(self.routine, place, _conjugate(numbers[0]))


def _conjugate(x: Number) -> Number:
    return Number(x.real, f"-{x.imaginary}")
