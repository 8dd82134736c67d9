"""Steps of Fourier transforms in which each invocation holds all points of a line, or of two neighbouring ones.

Nothing is exchanged between invocations, so that memory is read and written once. Two lines whose numbers are
neighbours in memory are read, computed and written together, four floats at a time.
"""
from __future__ import annotations

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.roots import multiples
from lavax.backends.vulkan.glsl.body import LANE, GlslValue
from lavax.backends.vulkan.glsl.expressions import VECTOR
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import Index, linear, quotient, remainder, unflatten
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.kernels.reads import Coordinates


def emit_in_registers(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a step."""
    routine = open_routine(kernel, profile, lifted)
    lines, points, rest, behind, _ = routine.operands[0].shape
    together = 2 if rest * behind % 2 == 0 else 1
    count = lines * rest * behind // together
    place = routine.open(count)
    step = _Step(routine, together, place)
    frequencies = transformed(step.registers, [step.read(point) for point in range(points)])
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
        kind = "vec2" if together == 2 else "float"
        self.registers = Registers(self.body, kind, 1 if self.node.attrs["reverse"] else -1)

    def read(self, point: int) -> Number:
        """The points at that place of the lines."""
        across = self.rest * self.behind * 2
        start = linear([(self.line, self.points * across), (self.column, 2 * self.together)], point * across)
        if self.together == 2:
            four = self.body.value(self.operand, self._at(linear([(start, 1), (LANE, 1)]))).text
            return self.registers.named(f"{four}.xz", f"{four}.yw")
        return Number(*(self.routine.read(self.operand, self._at(linear([(start, 1)], side))) for side in (0, 1)))

    def _at(self, position: Index) -> Coordinates:
        return unflatten(position, self.operand.shape)

    def twiddled(self, frequencies: list[Number]) -> list[Number]:
        """The numbers times the roots of their frequency and their place."""
        roots = multiples(self.registers, self.points, self._root)
        turned = [self.registers.times(x, root) for x, root in zip(frequencies[1:], roots, strict=True)]
        return [frequencies[0], *turned]

    def _root(self, frequency: int) -> Number:
        length = self.points * self.rest
        root, sides = self.body.uses.function("lx_unit_root"), ("x", "y")
        shares = self.behind % self.together == 0
        places = [self.column] if shares else [linear([(self.column, self.together)], n) for n in range(self.together)]
        names = []
        for place in places:
            where = quotient(place, self.behind // self.together if shares else self.behind)
            text = f"{root}({self.body.index(linear([(where, frequency)]))}, {length})"
            names.append(self.body.declare(self.body.scopes[-1], "vec2", text))
        sign = "" if self.registers.sign > 0 else "-"
        parts = [[f"{name}.{side}" for name in names] for side in sides]
        if self.together == 2:
            return self.registers.named(f"vec2({', '.join(parts[0])})", f"{sign}vec2({', '.join(parts[1])})")
        return self.registers.named(parts[0][0], f"{sign}{parts[1][0]}")

    def write(self, frequencies: list[Number]) -> None:
        if self.together == 2 and self.behind % 2 == 0:
            for frequency, value in enumerate(frequencies):
                self._write_four(self._start(0, frequency), self._sides(value, 0) + self._sides(value, 1))
            return
        for number in range(self.together):
            if self.together == 2 and self.behind == 1 and self.points % 2 == 0:
                for frequency in range(0, self.points, 2):
                    pair = frequencies[frequency : frequency + 2]
                    parts = [part for value in pair for part in self._sides(value, number)]
                    self._write_four(self._start(number, frequency), parts)
            else:
                for frequency, value in enumerate(frequencies):
                    for side, text in enumerate(self._sides(value, number)):
                        position = linear([(self._start(number, frequency), 1)], side)
                        self.body.line(self._assignment(position, text))

    def _sides(self, value: Number, number: int) -> list[str]:
        part = f".{'xy'[number]}" if self.together == 2 else ""
        return [f"{value.real}{part}", f"{value.imaginary}{part}"]

    def _start(self, number: int, frequency: int) -> Index:
        """The position of a number in the result: of the first or the second line."""
        own = linear([(self.column, self.together)], number)
        place, back = quotient(own, self.behind), remainder(own, self.behind)
        row = linear([(self.line, self.rest), (place, 1)])
        return linear([(row, self.points * self.behind * 2), (back, 2)], frequency * self.behind * 2)

    def _write_four(self, start: Index, parts: list[str]) -> None:
        at = unflatten(linear([(start, 1), (LANE, 1)]), self.node.shape)
        name = self.body.declare(self.body.scopes[-1], "vec4", f"vec4({', '.join(parts)})")
        self.body.store(self.node, at, GlslValue(name, VECTOR), self.routine.target)

    def _assignment(self, position: Index, text: str) -> str:
        return f"{self.routine.element(position)} = {text};"
