"""Last steps of cosine transforms of type 2 of which four lanes exchange words, so that each writes four neighbours.

Of a line of n = 2h real numbers and C columns of P points, the frequency f = c + k·C of a column c gives numbers for
the places f and n − f, and its opposite h − f, which the column C − c has, for h − f and h + f. So lanes whose columns
are four neighbours have words for four neighbouring places for each of P points, of each kind. They exchange those of
four points, so that each of them writes the words of one.

A line has a lane for each column up to C/2, and so many more that these are whole fours: what a column beyond C/2
gives, the opposite one gives as well. Which of four words of memory the first one of four places is depends on the
point, if C is no multiple of four, and on the line, if n is none: four points go together for which it is the same.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from math import gcd

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.numbers import open_step, read_number, write_real
from lavax.backends.vulkan.emit.fourier.roots import of_both, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import float32
from lavax.passes.kernels.index import Index, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.numerics.unit_roots import unit_root as host_root

_TOGETHER = 4  # lanes, and words that each writes
Words = tuple[str, str, str, str]  # those of the places f, h + f, h − f and n − f


@dataclass(frozen=True)
class Places:
    """Where the words of one kind are in a line: that of the frequency f at `start` + f, or − f if they `fall`."""

    start: int
    falls: bool

    def lowest(self, frequency: int) -> int:
        """The first place of four neighbouring frequencies."""
        return self.start - frequency - (_TOGETHER - 1) if self.falls else self.start + frequency


def has_fours(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> bool:
    """Whether a last step is written so: on CPU drivers, where a store is a loop over the lanes."""
    (node,) = kernel.graph.outputs
    _, _, columns, _ = node.operands[0].shape
    if node.op != "fourier_cosines" or node.dtype != float32 or profile.kind != "cpu" or lifted:
        return False
    if node.attrs["beside"] > 1:
        return False
    has_shuffles = profile.subgroup_shuffle and profile.knows_subgroup_size and profile.subgroup_size % _TOGETHER == 0
    is_seen = len(kernel.graph.inputs) in kernel.by_descriptor
    needed = columns // 2 + 1
    return has_shuffles and is_seen and _lanes(columns) <= min(columns, needed + needed // 3)


def _lanes(columns: int) -> int:
    """How many lanes a line has."""
    return -(-(columns // 2 + 1) // _TOGETHER) * _TOGETHER


def emit_cosines_in_fours(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step."""
    routine = open_step(kernel, profile, lifted)
    lines, points, columns, _ = routine.operands[0].shape
    count = lines * _lanes(columns)
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        _Step(routine, points, columns, number).write()
    return routine.close(count, subgroup=True)


class _Step:
    """The state of writing a step: a lane's column, the mirrored one, and the lane's place among four."""

    def __init__(self, routine: RoutineShader, points: int, columns: int, number: Index) -> None:
        self.routine, self.body, self.points, self.columns = routine, routine.body, points, columns
        self.half, self.length = points * columns, 2 * points * columns
        self.line, self.column = quotient(number, _lanes(columns)), remainder(number, _lanes(columns))
        self.mirror = remainder(linear([(self.column, -1)], columns), columns)
        self.single, self.double = (Registers(self.body, routine.node.dtype, n, -1) for n in (1, 2))
        column = self.body.index(self.column)
        self.is_first = self._declared("bool", f"{column} == 0")
        self.lane = self._declared("int", f"int(gl_SubgroupInvocationID % {_TOGETHER}u)")
        self.is_odd = self._declared("bool", f"({self.lane} & 1) != 0")
        self.is_upper = self._declared("bool", f"({self.lane} & 2) != 0")
        # Points whose four words begin at the same word of four, and by how many fours two of them lie apart.
        self.stride = _TOGETHER // gcd(columns, _TOGETHER)
        apart = self.stride * columns // _TOGETHER
        corner = f"{self.lane} * {apart} + ({column} >> 2)"
        self.corner = routine.position("corner", corner, (_TOGETHER - 1) * apart + _lanes(columns) // _TOGETHER)
        before = f"max({self.body.index(self.corner)}, 1) - 1"
        self.before = routine.position("before", before, self.corner.high)
        self.root = unit_root(self.single, column, self.length)
        self.places = self._places(bool(routine.node.attrs["reverse"]))

    def _places(self, is_reversed: bool) -> tuple[Places, ...]:
        """Of each kind of words; if a line is written from its end, the place p is n − 1 − p."""
        if is_reversed:
            length, half = self.length - 1, self.half - 1
            return Places(length, True), Places(half, True), Places(half, False), Places(-1, False)
        return Places(0, False), Places(self.half, False), Places(self.half, True), Places(self.length, True)

    def _declared(self, kind: str, text: str) -> str:
        return self.body.declare(self.body.scopes[-1], kind, text)

    def _word(self, text: str) -> str:
        return self._declared(self.single.kind, text)

    def _chosen(self, first: Number, other: Number) -> Number:
        """A number of the first column or of the others."""
        parts = (first.real, other.real), (first.imaginary, other.imaginary)
        return self.single.named(*(f"{self.is_first} ? {one} : {two}" for one, two in parts))

    def _read(self, column: Index, point: int) -> Number:
        at = linear([(self.line, self.half), (column, 1)], point * self.columns)
        return read_number(self.routine, self.routine.operands[0], at)

    def write(self) -> None:
        words = self._words()
        for kind, places in enumerate(self.places):
            for points in self._points_together():
                given = [words[k][kind] for k in points]
                if len(points) == 1 and points[0] > 0:
                    self._write_one(places, points[0], given[0])
                else:
                    four = self._exchanged([*given, *given[:1] * (_TOGETHER - len(points))])
                    self._write_fours(places, points, four, is_last=points[0] == 0 and kind == 3)

    def _points_together(self) -> Iterator[range]:
        """Up to four points whose words begin at the same word of four."""
        for start in range(self.stride):
            own = range(start, self.points, self.stride)
            yield from (own[i : i + _TOGETHER] for i in range(0, len(own), _TOGETHER))

    def _words(self) -> list[Words]:
        """Of each point."""
        points = self.points
        both = [of_both(self.double, self._read(self.column, j), self._read(self.mirror, j)) for j in range(points)]
        found = transformed(self.double, both)
        own, other = ([of_one(x, side) for x in found] for side in (0, 1))
        words = []
        for k in range(points):
            mirrored = self._chosen(own[-k % points], other[points - 1 - k])
            root = self.single.times(self.root, self.single.constant(-0.5j * host_root(-k, 2 * points)))
            words.append(self._words_of(own[k], mirrored, root, linear([(self.column, 1)], k * self.columns)))
        ahead, behind, opposite, back = words[0]
        words[0] = ahead, self._word(f"{self.is_first} ? {opposite} : {behind}"), opposite, back
        return words

    def _words_of(self, z: Number, mirrored: Number, root: Number, frequency: Index) -> Words:
        """What tables make of the numbers of a frequency and of its opposite."""
        single, half = self.single, self.single.text(0.5)
        sides = f"{z.real} + {mirrored.real}", f"{z.imaginary} - {mirrored.imaginary}"
        even = single.named(*(f"{half} * ({side})" for side in sides))
        odd = single.named(f"{z.real} - {mirrored.real}", f"{z.imaginary} + {mirrored.imaginary}")
        turned = single.times(odd, root)
        first = single.plus(even, turned)
        second = single.named(f"{even.real} - {turned.real}", f"{turned.imaginary} - {even.imaginary}")
        ahead, back = self._of_tables(first, frequency)
        opposite, behind = self._of_tables(second, linear([(frequency, -1)], self.half))
        return ahead, behind, opposite, back

    def _of_tables(self, x: Number, frequency: Index) -> tuple[str, str]:
        cosine, sine = (self.routine.read(table, (frequency,)) for table in self.routine.operands[1:])
        two = self.single.text(2.0)
        ahead = self._word(f"{two} * ({x.real} * {cosine} + {x.imaginary} * {sine})")
        return ahead, self._word(f"{two} * ({x.real} * {sine} - {x.imaginary} * {cosine})")

    def _write_one(self, places: Places, k: int, word: str) -> None:
        """Each lane's own word of a point."""
        at = [(self.line, self.length), (self.column, -1 if places.falls else 1)]
        offset = -k * self.columns if places.falls else k * self.columns
        write_real(self.routine, linear(at, places.start + offset), word)

    def _write_fours(self, places: Places, points: range, four: Sequence[str], is_last: bool) -> None:
        """A lane's four words, of one of the points. The last neighbours of a line, or the first ones if it is written
        from its end, are three, because the frequency 0 has no second place."""
        lowest = places.lowest(points[0] * self.columns)
        ordered = four[::-1] if places.falls else four
        is_one = f"{self.lane} < {len(points)}" if len(points) < _TOGETHER else ""
        if not is_last:
            with self.body.block(f"if ({is_one})") if is_one else nullcontext():
                self._store(places, lowest, ordered, self.corner)
            return
        corner = self.body.index(self.corner)
        with self.body.block(f"if ({' && '.join(filter(None, (is_one, f'{corner} != 0')))})"):
            step = -_TOGETHER if places.falls else _TOGETHER
            self._store(places, lowest + step, ordered, self.before)
        with self.body.block(f"if ({corner} == 0)"):
            for i, word in enumerate(four[1:], 1):
                place = places.start - i if places.falls else places.start + i
                write_real(self.routine, linear([(self.line, self.length)], place), word)

    def _store(self, places: Places, lowest: int, words: Sequence[str], corner: Index) -> None:
        """Writes neighbours, of which the lowest of the first four of a line is given."""
        step = -1 if places.falls else 1
        if self.length % _TOGETHER == 0:
            self._store_at(linear([(self.line, self.length // _TOGETHER), (corner, step)]), lowest, words)
            return
        two = linear([(quotient(self.line, 2), self.half), (corner, step)])
        line = self.body.index(self.line)
        with self.body.block(f"if (({line} & 1) == 0)"):
            self._store_at(two, lowest, words)
        with self.body.block(f"if (({line} & 1) != 0)"):
            self._store_at(two, lowest + self.length, words)

    def _store_at(self, fours: Index, lowest: int, words: Sequence[str]) -> None:
        shift = lowest % _TOGETHER
        slot = self.body.memory.write_descriptors[self.routine.target]
        at = linear([(fours, 1)], (lowest - shift) // _TOGETHER)
        text = self.body.index(inside(at, self.routine.node.type.size // _TOGETHER))
        name = self.body.uses.descriptor(f"shifted{shift}_" if shift else "stores", slot)
        self.body.line(f"{name}.data[w{slot} + {text}] = floatBitsToUint(vec4({', '.join(words)}));")

    def _exchanged(self, words: Sequence[str]) -> list[str]:
        """Of four words of each of four lanes, that of each lane whose number is the lane's place."""
        pairs = [self._round(self.is_odd, 1, [words[i]], [words[i + 1]]) for i in (0, 2)]
        return self._round(self.is_upper, 2, *pairs)

    def _round(self, is_second: str, width: int, first: Sequence[str], second: Sequence[str]) -> list[str]:
        """The first words of both lanes for one, and the second ones for the other."""
        sent = [self._word(f"{is_second} ? {a} : {b}") for a, b in zip(first, second, strict=True)]
        given = [self._word(f"subgroupShuffleXor({word}, {width}u)") for word in sent]
        ahead = [self._word(f"{is_second} ? {g} : {a}") for g, a in zip(given, first, strict=True)]
        return ahead + [self._word(f"{is_second} ? {b} : {g}") for b, g in zip(second, given, strict=True)]
