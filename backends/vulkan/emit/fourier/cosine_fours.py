"""Last steps of cosine transforms of type 2 of which four lanes exchange words, so that each writes four neighbours.

Of a line of n = 2h real numbers and C columns of P points, the frequency f = c + k·C of a column c gives numbers for
the places f and n − f, and its opposite h − f, which the column C − c has, for h − f and h + f. So C/2 lanes, each with
the columns c and C − c, and the first one with 0 and C/2, each of which is its own mirror image, write four neighbours
for four points of four lanes. Those of f and h + f begin at multiples of four, the others one behind; if the line is
written from its end, three behind.

The first lane's columns have P/2 + 1 and P/2 pairs of frequencies, where the others have P: it has those of the column
C/2 in place of the points after P/2, and one in addition. A number of its column 0 comes from the point that is as far
from the other end, then.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from lavax.backends.vulkan.emit.fourier.butterflies import Number, Registers, transformed
from lavax.backends.vulkan.emit.fourier.numbers import read_number, write_real
from lavax.backends.vulkan.emit.fourier.roots import of_both, of_one, unit_root
from lavax.backends.vulkan.emit.fourier.turns import turns_of
from lavax.backends.vulkan.glsl.bounds import inside
from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.ir.types import float32
from lavax.passes.kernels.index import Index, constant, linear, quotient, remainder
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.numerics.unit_roots import unit_root as host_root

_TOGETHER = 4  # lanes, and words that each writes
Words = tuple[str, str, str, str]  # those of the places f, h + f, h − f and n − f


def has_fours(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> bool:
    """Whether a last step is written so: on CPU drivers, where a store is a loop over the lanes."""
    (node,) = kernel.graph.outputs
    _, points, columns, _ = node.operands[0].shape
    if node.op != "fourier_cosines" or node.dtype != float32 or profile.kind != "cpu" or lifted:
        return False
    if node.attrs["beside"] > 1:
        return False
    has_shuffles = profile.subgroup_shuffle and profile.knows_subgroup_size and profile.subgroup_size % _TOGETHER == 0
    is_seen = len(kernel.graph.inputs) in kernel.by_descriptor
    return has_shuffles and is_seen and points % _TOGETHER == 0 and columns % (2 * _TOGETHER) == 0


def emit_cosines_in_fours(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of a last step."""
    routine = open_routine(kernel, profile, lifted)
    lines, points, columns, _ = routine.operands[0].shape
    count = lines * columns // 2
    with routine.open_turns(count, turns_of(count, profile, lifted)) as number:
        _Step(routine, points, columns, number).write()
    return routine.close(count, subgroup=True)


class _Step:
    """The state of writing a step: a lane's column, the `other` one, and the lane's place among four."""

    def __init__(self, routine: RoutineShader, points: int, columns: int, number: Index) -> None:
        self.routine, self.body, self.points, self.columns = routine, routine.body, points, columns
        self.half = points * columns
        self.line, self.column = quotient(number, columns // 2), remainder(number, columns // 2)
        self.single, self.double = (Registers(self.body, routine.node.dtype, n, -1) for n in (1, 2))
        column = self.body.index(self.column)
        self.is_first = self._declared("bool", f"{column} == 0")
        other = f"{self.is_first} ? {columns // 2} : {columns} - {column}"
        self.other = routine.position("other", other, columns)
        self.lane = self._declared("int", f"int(gl_SubgroupInvocationID % {_TOGETHER}u)")
        self.is_odd = self._declared("bool", f"({self.lane} & 1) != 0")
        self.is_upper = self._declared("bool", f"({self.lane} & 2) != 0")
        corner = f"{self.lane} * {columns // _TOGETHER} + ({column} >> 2)"
        self.corner = routine.position("corner", corner, 3 * columns // _TOGETHER + columns // 8)
        self.root = unit_root(self.single, column, 2 * self.half)
        self.is_reversed = bool(routine.node.attrs["reverse"])

    def _declared(self, kind: str, text: str) -> str:
        return self.body.declare(self.body.scopes[-1], kind, text)

    def _word(self, text: str) -> str:
        return self._declared(self.single.kind, text)

    def _chosen(self, first: Number, other: Number) -> Number:
        """A number of the first lane or of the others."""
        parts = (first.real, other.real), (first.imaginary, other.imaginary)
        return self.single.named(*(f"{self.is_first} ? {one} : {two}" for one, two in parts))

    def _read(self, column: Index, point: int) -> Number:
        at = linear([(self.line, self.half), (column, 1)], point * self.columns)
        return read_number(self.routine, self.routine.operands[0], at)

    def write(self) -> None:
        points, middle = self.points, self.points // 2
        both = [of_both(self.double, self._read(self.column, j), self._read(self.other, j)) for j in range(points)]
        found = transformed(self.double, both)
        own, other = ([of_one(x, side) for x in found] for side in (0, 1))
        words = []
        for k in range(points):
            mirrored = other[points - 1 - k]
            root = self.single.times(self.root, self.single.constant(-0.5j * host_root(-k, 2 * points)))
            frequency = linear([(self.column, 1)], k * self.columns)
            if k <= middle:
                z, mirrored = own[k], self._chosen(own[-k % points], mirrored)
            else:
                j = k - middle - 1
                z, mirrored = self._chosen(other[j], own[k]), self._chosen(other[points - 1 - j], mirrored)
                root = self._chosen(self._root_of_middle(j), root)
                text = f"{self.is_first} ? {self._middle(j)} : {self.body.index(frequency)}"
                frequency = self.routine.position(f"frequency{k}", text, self.half)
            words.append(self._words(z, mirrored, root, frequency))
        last = constant(self._middle(middle - 1))
        root = self._root_of_middle(middle - 1)
        of_middle = [*words[middle + 1 :], self._words(other[middle - 1], other[middle], root, last)]
        spread = [self._spread(four) for four in of_middle]
        with self.body.block(f"if ({self.body.index(self.column)} < {_TOGETHER})"):
            for j, word in enumerate(spread):
                self._write_middle(j, word)
        self._write_fours(words)

    def _middle(self, j: int) -> int:
        """A frequency of the column in the middle."""
        return self.columns // 2 + j * self.columns

    def _root_of_middle(self, j: int) -> Number:
        return self.single.constant(-0.5j * host_root(-(2 * j + 1), 4 * self.points))

    def _words(self, z: Number, mirrored: Number, root: Number, frequency: Index) -> Words:
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

    def _spread(self, words: Words) -> str:
        """Of the words of the first of four lanes, each of these one."""
        first = f"gl_SubgroupInvocationID & ~{_TOGETHER - 1}u"
        return self._word(self._of_lane([self._word(f"subgroupShuffle({word}, {first})") for word in words]))

    def _of_lane(self, four: Sequence[object]) -> str:
        """Each lane's own of four."""
        below, above = (f"({self.is_odd} ? {four[i + 1]} : {four[i]})" for i in (0, 2))
        return f"{self.is_upper} ? {above} : {below}"

    def _write_middle(self, j: int, word: str) -> None:
        frequency, length = self._middle(j), 2 * self.half
        places = [frequency, self.half + frequency, self.half - frequency, length - frequency]
        places = [length - 1 - place for place in places] if self.is_reversed else places
        at = self.routine.position(f"place{j}", self._of_lane(places), length)
        write_real(self.routine, linear([(self.line, length), (at, 1)]), word)

    def _write_fours(self, words: Sequence[Words]) -> None:
        placed = [self._placed(words, k) for k in range(self.points)]
        quarter, half = 2 * self.half // _TOGETHER, self.half // _TOGETHER
        # Of each kind of words, where the four of the first frequencies are, and the direction of the others.
        starts = ((0, 1), (half, 1), (half - 1, -1), (quarter - 1, -1))
        if self.is_reversed:
            starts = ((quarter - 1, -1), (half - 1, -1), (half - 1, 1), (-1, 1))
        for m, (kind, (start, step)) in product(range(0, self.points, _TOGETHER), enumerate(starts)):
            four = self._exchanged([placed[m + i][kind] for i in range(_TOGETHER)])
            if m == 0 and kind == len(starts) - 1:
                self._write_last(four)
            else:
                place = linear([(self.corner, step)], start + step * m * self.columns // _TOGETHER)
                self._store(kind, place, four)

    def _placed(self, words: Sequence[Words], k: int) -> Words:
        """The words of each column's point. The first lane has those of column 0 behind the middle as opposites of
        others, and the frequency h, which is its own opposite, at the first point."""
        ahead, behind, opposite, back = own = words[k]
        if k == 0:
            return ahead, self._word(f"{self.is_first} ? {opposite} : {behind}"), opposite, back
        if k <= self.points // 2:
            return own
        other = words[self.points - k]
        chosen = zip((*other[2:], *other[:2]), own, strict=True)
        ahead, behind, opposite, back = (self._word(f"{self.is_first} ? {one} : {two}") for one, two in chosen)
        return ahead, behind, opposite, back

    def _write_last(self, four: Sequence[str]) -> None:
        """The last neighbours of a line, or the first ones if it is written from its end: of these there are three,
        because the frequency 0 has no second place."""
        length, corner = 2 * self.half, self.body.index(self.corner)
        before = self.routine.position("before", f"max({corner}, 1) - 1", self.corner.high + 1)
        end = length // _TOGETHER - 2
        with self.body.block(f"if ({corner} != 0)"):
            self._store(3, before if self.is_reversed else linear([(before, -1)], end), four)
        with self.body.block(f"if ({corner} == 0)"):
            for i, word in enumerate(four[1:], 1):
                place = i - 1 if self.is_reversed else length - i
                write_real(self.routine, linear([(self.line, length)], place), word)

    def _store(self, kind: int, place: Index, four: Sequence[str]) -> None:
        """Writes neighbours whose place in the line counts fours."""
        ordered = four[::-1] if (kind > 1) != self.is_reversed else four
        form = ("shifted3_" if self.is_reversed else "shifted1_") if kind > 1 else "stores"
        slot = self.body.memory.write_descriptors[self.routine.target]
        at = linear([(self.line, 2 * self.half // _TOGETHER), (place, 1)])
        text = self.body.index(inside(at, self.routine.node.type.size // _TOGETHER))
        name = self.body.uses.descriptor(form, slot)
        self.body.line(f"{name}.data[w{slot} + {text}] = floatBitsToUint(vec4({', '.join(ordered)}));")

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
