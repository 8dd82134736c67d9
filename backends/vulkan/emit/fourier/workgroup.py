"""Steps of Fourier transforms by workgroups: lines of more points than an invocation holds, in shared memory.

A workgroup takes a few neighbouring lines. Its invocations share the points of each: they transform some in registers,
exchange them through shared memory, and go on with the next radix (Stockham's order, as between steps). Memory is read
before the first radix and written after the last one, each time with neighbouring invocations at neighbouring numbers:
along a line, or across lines.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed, vector_type
from lavax.backends.vulkan.emit.fourier.numbers import beneath_reshapes
from lavax.backends.vulkan.emit.fourier.roots import multiples, multiples_from, unit_root
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
    step.write()
    numbers = _NUMBERS.format(number_bytes(step.node.dtype), step.number)
    kind = step.registers.kind if shape.apart else step.number
    declarations = [numbers, f"shared {kind} held[{shape.together * shape.row}];"]
    body = routine.body
    text = ShaderText(body.uses, body.scopes[0].lines, (shape.invocations, 1), declarations)
    return Launch(assemble(text), tuple(body.parameters.words), grid(groups))


@dataclass(frozen=True)
class _Share:
    """What an invocation works at: its number among those of a line, and the line's numbers."""

    member: str
    own: Index  # the number of the line in the workgroup
    line: Index
    column: Index


class _Step:
    """The state of writing a step."""

    def __init__(self, routine: RoutineShader, shape: WorkgroupShape) -> None:
        self.routine, self.shape = routine, shape
        self.body, self.node, self.operand = routine.body, routine.node, routine.operands[0]
        self.stored = beneath_reshapes(self.operand)
        self.lines, self.points, self.rest, self.behind, _ = self.operand.shape
        self.registers = Registers(self.body, self.node.dtype, 1, 1 if self.node.attrs["reverse"] else -1)
        self.number = vector_type(self.node.dtype, 2)
        self._shares: dict[bool, _Share] = {}
        self._places: dict[int, list[Index]] = {}

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
        own_line = self.routine.position(f"own_{suffix}", own, together)
        self.routine.position(f"member_{suffix}", member, members)
        count = self.lines * self.rest * self.behind
        text = f"min(group * {together} + own_{suffix}, {self.routine.body.parameters.count(count)} - 1)"
        place = self.routine.position(f"place_{suffix}", text, count)
        width = self.rest * self.behind
        share = _Share(f"member_{suffix}", own_line, quotient(place, width), remainder(place, width))
        self._shares[across] = share
        return share

    def write(self) -> None:
        """All radices: reads, transforms and writes the invocations' points, between radices in shared memory."""
        held: list[list[Number]] = []
        for number in range(len(self.shape.radices)):
            share = self._share_of(number)
            if number == 0:
                held = [self._loaded(share, place) for place in self._blocks(number)]
            else:
                before, places = prod(self.shape.radices[:number]), self._blocks(number)
                held = [self._turned(points, place, before) for points, place in zip(held, places, strict=True)]
            found = [transformed(self.registers, points) for points in held]
            if number + 1 == len(self.shape.radices):
                for place, frequencies in zip(self._blocks(number), found, strict=True):
                    self._store(share, place, frequencies)
            else:
                held = self._exchanged(number, found)

    def _share_of(self, number: int) -> _Share:
        """The share at a radix: memory is read before the first one and written after the last one."""
        is_first, is_last = number == 0, number == len(self.shape.radices) - 1
        return self._share((is_first and self.rest * self.behind > 1) or (is_last and self.behind > 1))

    def _blocks(self, number: int) -> list[Index]:
        """The transforms of a radix that an invocation computes."""
        if number not in self._places:
            blocks, share = self.points // self.shape.radices[number], self._share_of(number)
            turns = -(-blocks // self.shape.members)
            self._places[number] = [self._block(share, blocks, number, turn) for turn in range(turns)]
        return self._places[number]

    def _exchanged(self, number: int, found: list[list[Number]]) -> list[list[Number]]:
        """The points of the next radix, from the frequencies that the invocations have found."""
        given, taken = self._blocks(number), self._blocks(number + 1)
        share, next_share = self._share_of(number), self._share_of(number + 1)
        slots = [self._slots(number + 1, next_share, place) for place in taken]
        if not self.shape.apart:
            whole = [[f"{self.number}({x.real}, {x.imaginary})" for x in frequencies] for frequencies in found]
            self._hold(number, given, share, whole, waits=number > 0)
            return [[self._vector(slot) for slot in own] for own in slots]
        sides = []
        for side in ("real", "imaginary"):
            parts = [[getattr(x, side) for x in frequencies] for frequencies in found]
            self._hold(number, given, share, parts, waits=number > 0 or side == "imaginary")
            sides.append([[self._declared(self.registers.kind, slot) for slot in own] for own in slots])
        return [[Number(*pair) for pair in zip(*own, strict=True)] for own in zip(*sides, strict=True)]

    def _hold(
        self, number: int, places: Sequence[Index], share: _Share, found: Sequence[Sequence[str]], waits: bool
    ) -> None:
        """Writes the frequencies of a radix to shared memory, when what was there is read."""
        if waits:
            self.body.line("barrier();")
        radix, before = self.shape.radices[number], prod(self.shape.radices[:number])
        for place, texts in zip(places, found, strict=True):
            start = linear([(quotient(place, before), before * radix), (remainder(place, before), 1)])
            for k, text in enumerate(texts):
                self.body.line(f"{self._slot(share, linear([(start, 1)], k * before))} = {text};")
        self.body.line("barrier();")

    def _slots(self, number: int, share: _Share, place: Index) -> list[str]:
        """Where the points of a radix are in shared memory."""
        radix = self.shape.radices[number]
        return [self._slot(share, linear([(place, 1)], k * (self.points // radix))) for k in range(radix)]

    def _slot(self, share: _Share, position: Index) -> str:
        at = linear([(share.own, self.shape.row), (position, 1), (quotient(position, self.shape.gap), 1)])
        return f"held[{self.body.index(at)}]"

    def _block(self, share: _Share, blocks: int, number: int, turn: int) -> Index:
        """The number of a transform of `radix` points among those of the line; surplus ones repeat the last."""
        members = self.shape.members
        text = share.member + (f" + {turn * members}" if turn else "")
        text = text if blocks % members == 0 else f"min({text}, {blocks - 1})"
        return self.routine.position(f"block{number}_{turn}", text, blocks)

    def _turned(self, points: list[Number], place: Index, before: int) -> list[Number]:
        at = self.body.index(remainder(place, before))
        length = before * len(points)
        roots = multiples(self.registers, len(points), lambda k: unit_root(self.registers, f"{at} * {k}", length))
        return [points[0], *(self.registers.times(x, root) for x, root in zip(points[1:], roots, strict=True))]

    def _loaded(self, share: _Share, place: Index) -> list[Number]:
        blocks = self.points // self.shape.radices[0]
        return [self._load(share, place, blocks, k) for k in range(self.shape.radices[0])]

    def _load(self, share: _Share, place: Index, blocks: int, k: int) -> Number:
        width = self.rest * self.behind
        start = linear([(share.line, self.points * width), (place, width), (share.column, 1)], k * blocks * width)
        if self.stored.op == INPUT:
            address = self.body.addresses[self.stored]
            position = self.body.index(inside(start, self.operand.type.size // 2))
            return self._vector(f"Numbers({address}).data[{position}]")
        parts = (linear([(start, 2)], side) for side in (0, 1))
        return Number(*(self.routine.read(self.operand, unflatten(part, self.operand.shape)) for part in parts))

    def _vector(self, text: str) -> Number:
        name = self._declared(self.number, text)
        return Number(f"{name}.x", f"{name}.y")

    def _declared(self, kind: str, text: str) -> str:
        return self.body.declare(self.body.scopes[-1], kind, text)

    def _store(self, share: _Share, place: Index, frequencies: list[Number]) -> None:
        blocks = self.points // len(frequencies)
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
        begin = unit_root(self.registers, f"{place.key} * {at}", length)
        roots = multiples_from(
            self.registers,
            begin,
            len(frequencies),
            lambda k: unit_root(self.registers, f"{at} * {k * blocks}", length),
        )
        return [self.registers.times(x, root) for x, root in zip(frequencies, roots, strict=True)]
