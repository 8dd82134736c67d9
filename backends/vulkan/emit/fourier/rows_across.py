"""Rows of real numbers of neighbouring lines: what an invocation reads and writes of one place of its lines."""
from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers
from lavax.backends.vulkan.emit.fourier.numbers import (
    read_four,
    read_number,
    write_four,
    write_number,
    write_real,
)
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import Index, linear, quotient, unflatten


@dataclass(frozen=True)
class RealRows:
    """Lines of `length` places, of which `behind` are neighbours in memory. An invocation has as many of these as its
    registers hold, from `first` on, of those with the number `line` in the array."""

    routine: RoutineShader
    registers: Registers
    line: Index
    length: int
    behind: int
    first: Index

    def position(self, place: Index, unit: int = 1) -> Index:
        """Where the number of the first line is at a place, counted in so many numbers."""
        across = self.behind // unit
        return linear([(self.line, self.length * across), (place, across), (quotient(self.first, unit), 1)])

    def read(self, place: Index) -> str:
        routine, registers, (operand, *_) = self.routine, self.registers, self.routine.operands
        if registers.together == 4:
            return read_four(routine, operand, self.position(place))
        if registers.together == 2:
            both = read_number(routine, operand, self.position(place, 2))
            text = f"{registers.kind}({both.real}, {both.imaginary})"
            return registers.body.declare(registers.body.scopes[-1], registers.kind, text)
        return routine.read(operand, unflatten(self.position(place), operand.shape))

    def write(self, place: Index, text: str) -> None:
        routine, registers = self.routine, self.registers
        if registers.together == 4:
            write_four(routine, self.position(place), text)
        elif registers.together == 2:
            name = registers.body.declare(registers.body.scopes[-1], registers.kind, text)
            write_number(routine, self.position(place, 2), Number(f"{name}.x", f"{name}.y"))
        else:
            write_real(routine, self.position(place), text)
