"""Steps of Fourier transforms by workgroups: lines of more points than an invocation holds, in shared memory.

A workgroup takes a few neighbouring lines. Its invocations share the points of each: they transform some in registers,
exchange them through shared memory, and go on with the next radix (Stockham's order, as between steps). Memory is read
before the first radix and written after the last one, each time with neighbouring invocations at neighbouring numbers:
along a line, or across lines.
"""
from __future__ import annotations

from math import prod

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed, vector_type
from lavax.backends.vulkan.emit.fourier.roots import multiples, unit_root
from lavax.backends.vulkan.emit.fourier.shape import WorkgroupShape, number_bytes
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.graph import INPUT
from lavax.passes.kernels.index import Index, linear, quotient, remainder, unflatten
from lavax.passes.kernels.kernel import Kernel

_NUMBERS = "layout(buffer_reference, scalar, buffer_reference_align = {}) buffer Numbers {{ {} data[]; }};"


def emit_by_workgroups(kernel: Kernel, profile: DeviceProfile, lifted: bool, shape: WorkgroupShape) -> Launch:
    """The shader of a step in shared memory."""
    routine = open_routine(kernel, profile, lifted, shape.invocations)
    lines, _, rest, behind, _ = routine.operands[0].shape
    groups = -(-(lines * rest * behind) // shape.together)
    step = _Step(routine, shape)
    step.open()
    for number in range(len(shape.radices)):
        step.pass_through(number)
    numbers = _NUMBERS.format(number_bytes(step.node.dtype), step.number)
    declarations = [numbers, f"shared {step.number} held[{shape.together * shape.row}];"]
    body = routine.body
    text = ShaderText(body.uses, body.scopes[0].lines, (shape.invocations, 1), declarations)
    return Launch(assemble(text), tuple(body.parameters.words), grid(groups))


@dataclass(frozen=True)
class _Share:
    """What an invocation works at: its number among those of a line, and the line's numbers."""

    member: str
    own: str  # the number of the line in the workgroup
    line: Index
    column: Index


class _Step:
    """The state of writing a step."""

    def __init__(self, routine: RoutineShader, shape: WorkgroupShape) -> None:
        self.routine, self.shape = routine, shape
        self.body, self.node, self.operand = routine.body, routine.node, routine.operands[0]
        self.lines, self.points, self.rest, self.behind, _ = self.operand.shape
        self.registers = Registers(self.body, self.node.dtype, 1, 1 if self.node.attrs["reverse"] else -1)
        self.number = vector_type(self.node.dtype, 2)
        self._shares: dict[bool, _Share] = {}

    def open(self) -> None:
        self.body.line("int invocation = int(gl_LocalInvocationID.x);")
        self.body.line(f"int group = int({WORKGROUP});")

    def _share(self, across: bool) -> _Share:
        """The invocation's share if neighbours stand across lines, or along one. Surplus ones repeat the last line."""
        if across in self._shares:
            return self._shares[across]
        suffix = "a" if across else "l"
        members, together = self.shape.members, self.shape.together
        own, member = (f"invocation % {together}", f"invocation / {together}") if across else (
            f"invocation / {members}", f"invocation % {members}"
        )
        self.body.line(f"int own_{suffix} = {own};")
        self.routine.position(f"member_{suffix}", member, members)
        count = self.lines * self.rest * self.behind
        text = f"min(group * {together} + own_{suffix}, {self.routine.body.parameters.integer(count)} - 1)"
        place = self.routine.position(f"place_{suffix}", text, count)
        width = self.rest * self.behind
        share = _Share(f"member_{suffix}", f"own_{suffix}", quotient(place, width), remainder(place, width))
        self._shares[across] = share
        return share

    def pass_through(self, number: int) -> None:
        """One radix: reads, transforms and writes the invocation's points, from memory first and to it at the end."""
        radix, before = self.shape.radices[number], prod(self.shape.radices[:number])
        is_first, is_last = number == 0, number == len(self.shape.radices) - 1
        across = self.rest * self.behind > 1 if is_first else self.behind > 1
        share = self._share(across if is_first or is_last else False)
        blocks = self.points // radix
        found = []
        for turn in range(-(-blocks // self.shape.members)):
            place = self._block(share, blocks, number, turn)
            points = [
                self._load(share, place, blocks, k) if is_first else self._held(share, place, blocks, k)
                for k in range(radix)
            ]
            if before > 1:
                points = self._turned(points, f"{place.key} % {before}", before * radix)
            frequencies = transformed(self.registers, points)
            found.append((place, frequencies))
        if not is_first and not is_last:
            self.body.line("barrier();")
        for place, frequencies in found:
            if is_last:
                self._store(share, place, blocks, frequencies)
            else:
                self._hold(share, place.key, before, frequencies)
        if not is_last:
            self.body.line("barrier();")

    def _block(self, share: _Share, blocks: int, number: int, turn: int) -> Index:
        """The number of a transform of `radix` points among those of the line; surplus ones repeat the last."""
        members = self.shape.members
        text = share.member + (f" + {turn * members}" if turn else "")
        text = text if blocks % members == 0 else f"min({text}, {blocks - 1})"
        return self.routine.position(f"block{number}_{turn}", text, blocks)

    def _turned(self, points: list[Number], position: str, length: int) -> list[Number]:
        place = self.body.declare(self.body.scopes[-1], "int", position)
        roots = multiples(
            self.registers, len(points), lambda k: unit_root(self.registers, f"{place} * {k}", length)
        )
        return [points[0], *(self.registers.times(x, root) for x, root in zip(points[1:], roots, strict=True))]

    def _load(self, share: _Share, place: Index, blocks: int, k: int) -> Number:
        width = self.rest * self.behind
        start = linear([(share.line, self.points * width), (place, width), (share.column, 1)], k * blocks * width)
        if self.operand.op == INPUT:
            address = self.body.addresses[self.operand]
            position = self.body.index(inside(start, self.operand.type.size // 2))
            return self._vector(f"Numbers({address}).data[{position}]")
        parts = (linear([(start, 2)], side) for side in (0, 1))
        return Number(*(self.routine.read(self.operand, unflatten(part, self.operand.shape)) for part in parts))

    def _vector(self, text: str) -> Number:
        name = self.body.declare(self.body.scopes[-1], self.number, text)
        return Number(f"{name}.x", f"{name}.y")

    def _slot(self, share: _Share, position: str) -> str:
        return f"held[{share.own} * {self.shape.row} + ({position}) + ({position}) / {self.shape.gap}]"

    def _held(self, share: _Share, place: Index, blocks: int, k: int) -> Number:
        return self._vector(self._slot(share, f"{place.key} + {k * blocks}"))

    def _hold(self, share: _Share, place: str, before: int, frequencies: list[Number]) -> None:
        radix = len(frequencies)
        start = f"{place} * {radix}" if before == 1 else f"{place} / {before} * {before * radix} + {place} % {before}"
        name = self.body.declare(self.body.scopes[-1], "int", start)
        for k, value in enumerate(frequencies):
            slot = self._slot(share, f"{name} + {k * before}")
            self.body.line(f"{slot} = {self.number}({value.real}, {value.imaginary});")

    def _store(self, share: _Share, place: Index, blocks: int, frequencies: list[Number]) -> None:
        row, back = quotient(share.column, self.behind), remainder(share.column, self.behind)
        if self.rest > 1:
            frequencies = self._twiddled(row, place, blocks, frequencies)
        start = linear([(share.line, self.rest), (row, 1)])
        for k, value in enumerate(frequencies):
            parts = [(start, self.points * self.behind), (place, self.behind), (back, 1)]
            position = inside(linear(parts, k * blocks * self.behind), self.node.type.size // 2)
            target = f"Numbers({self.routine.target}).data[{self.body.index(position)}]"
            self.body.line(f"{target} = {self.number}({value.real}, {value.imaginary});")

    def _twiddled(self, row: Index, place: Index, blocks: int, frequencies: list[Number]) -> list[Number]:
        """The frequencies place + k·blocks times their roots at the place `row` of the line."""
        length, at = self.points * self.rest, self.body.index(row)
        first = unit_root(self.registers, f"{place.key} * {at}", length)
        roots = multiples(
            self.registers, len(frequencies), lambda k: unit_root(self.registers, f"{at} * {k * blocks}", length)
        )
        turned = [self.registers.times(x, first) for x in frequencies]
        return [turned[0], *(self.registers.times(x, root) for x, root in zip(turned[1:], roots, strict=True))]
