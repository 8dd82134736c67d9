"""The greatest elements of a row, by one workgroup of a GPU per row.

Digit by digit from the most significant, the workgroup counts the row's keys that begin as the least of the greatest
elements does, until no more are left than there is room for. Behind the digits of the key come those of the element's
distance from the end, so that of equal elements the first ones are chosen. Then all that is left is stored in shared
memory, in any order, and each counts the others before it. A short row is stored at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from lavax.backends.vulkan.emit.sort.keys import KEYS
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, widened
from lavax.backends.vulkan.glsl.launch import WORKGROUP, Launch, grid
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.index import ZERO, flatten, linear, unflatten
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import SELECTION_BY_WORKGROUP


@dataclass(frozen=True)
class Workgroups:
    """Invocations that share a row. `python -m benchmarks operations --only "top*"`."""

    least: int = 32
    of_long_rows: int = 256
    longer: tuple[tuple[int, int], ...] = ((1 << 14, 1024), (1 << 11, 512))  # from so many elements on, so many
    in_flight: int = 4  # vectors, or elements, that an invocation loads before it uses one


WORKGROUPS = Workgroups()
_DIGITS = 1 << 11
_FEW_WORDS = 4  # of shared memory, beside arrays
# Of the key, then of the distance from the end: where each digit begins. All have 11 bits, but for the key's last one.
_FIND_DIGIT = """
barrier();
uint sum = 0u;
for (int d = 0; d < SHARE; ++d) sum += counters[thread * SHARE + d];
parts[thread] = sum;
barrier();
for (int distance = 1; distance < LOCAL; distance *= 2) {
    uint other = thread + distance < LOCAL ? parts[thread + distance] : 0u;
    barrier();
    parts[thread] += other;
    barrier();
}
uint before = thread + 1 < LOCAL ? parts[thread + 1] : 0u;
if (above + before < uint(count) && above + parts[thread] >= uint(count)) {
    int d = thread * SHARE + SHARE - 1;
    for (; above + before + counters[d] < uint(count); --d) before += counters[d];
    found[0] = uint(d);
    found[1] = before;
    found[2] = counters[d];
}
barrier();
above += found[1];
if (of_key) {
    bound |= found[0] << shift;
    known |= digits << shift;
} else {
    end_bound |= found[0] << shift;
    end_known |= digits << shift;
}
if (above + found[2] <= uint(ROOM)) break;
barrier();
"""
_COUNT = """
if ((KEY & known) == bound && ((FROM_END) & end_known) == end_bound) {
    uint digit = (of_key ? KEY : FROM_END) >> shift & digits;
    if (digit != last && run > 0u) {
        atomicAdd(counters[last], run);
        run = 0u;
    }
    last = digit;
    ++run;
}
"""
_STORE = """
if ((KEY & known) > bound || ((KEY & known) == bound && ((FROM_END) & end_known) >= end_bound)) {
    uint at = atomicAdd(stored, 1u);
    held[min(at, uint(ROOM - 1))] = KEY;
    places[min(at, uint(ROOM - 1))] = PLACE;
}
"""
_RANK = """
barrier();
int number = int(min(stored, uint(ROOM)));
for (int one = thread; one < number; one += LOCAL) {
    uint own = held[one], rank = 0u;
    int place = places[one];
    for (int other = 0; other < number; ++other) {
        rank += uint(held[other] > own || (held[other] == own && places[other] < place));
    }
    USE
}
"""
_KEEP_CHOSEN = "if (rank < uint(count)) chosen[rank] = place;"
_RANK_BY_PLACE = """
barrier();
for (int one = thread; one < count; one += LOCAL) {
    int place = chosen[one];
    uint rank = 0u;
    for (int other = 0; other < count; ++other) rank += uint(chosen[other] < place);
    USE
}
"""


class _Selection:
    """The state of writing the kernel; invocations read `width` neighbours at once."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        (self.keys,) = kernel.graph.outputs[0].operands
        *batch, self.length = self.keys.shape
        self.count = kernel.graph.outputs[0].attrs["count"]
        self.room = SELECTION_BY_WORKGROUP.room if lifted else max(SELECTION_BY_WORKGROUP.little_room, 2 * self.count)
        self.is_short = not lifted and self.length <= self.room
        left = profile.shared_memory_bytes // 4 - (_DIGITS + 3 * self.room + _FEW_WORDS)
        most = min(profile.max_workgroup_invocations, 1 << left.bit_length() - 1)
        self.local = min(_invocations(self.length, lifted), most)
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, self.local)
        self.body = self.routine.body
        self.width = VECTOR if not lifted and self.length % VECTOR == 0 else 1
        self.vectors = self.length // self.width
        self.rows = prod(batch)
        body, integer = self.body, self.body.parameters.integer
        body.line(f"int group = int{WORKGROUP}, thread = int(gl_LocalInvocationID.x);")
        body.line(f"if (group >= {integer(self.rows)}) return;")
        self.row = unflatten(self.routine.position("row", "group", self.rows), tuple(batch))
        self.routine.integer("count", self.count)
        self.routine.integer("vectors", self.vectors)
        body.line("uint bound = 0u, known = 0u, end_bound = 0u, end_known = 0u, above = 0u;")

    def emit(self) -> Launch:
        body, declarations = self.body, [KEYS[self.keys.dtype.kind], "shared uint stored;"]
        declarations += [f"shared uint held[{self.room}];", f"shared int places[{self.room}];"]
        body.line("if (thread == 0) stored = 0u;")
        if not self.is_short:
            declarations += [f"shared uint counters[{_DIGITS}];", f"shared uint parts[{self.local}];"]
            declarations.append("shared uint found[3];")
            self._find_bound()
        body.line("barrier();")
        with self._each_element() as elements:
            for key, place in elements:
                self._write(_STORE, KEY=key, PLACE=place, FROM_END=_from_end(place))
        if self.routine.node.attrs["by_place"]:
            declarations.append(f"shared int chosen[{self.room}];")
            self._write(_RANK, USE=_KEEP_CHOSEN)
            self._write(_RANK_BY_PLACE, USE=self._stored("place"))
        else:
            self._write(_RANK, USE=f"if (rank < uint(count)) {self._stored('place')}")
        text = ShaderText(body.uses, body.scopes[0].lines, (self.local, 1), declarations)
        return Launch(assemble(text), tuple(body.parameters.words), grid(self.rows), text=text)

    def _find_bound(self) -> None:
        body = self.body
        with body.block("for (int level = 0; level < 5; ++level)"):
            body.line("bool of_key = level < 3;")
            body.line("int shift = level == 0 ? 21 : level == 1 ? 10 : level == 3 ? 11 : 0;")
            body.line(f"uint digits = level == 2 ? {_DIGITS // 2 - 1}u : {_DIGITS - 1}u;")
            body.line(f"for (int d = thread; d < {_DIGITS}; d += {self.local}) counters[d] = 0u;")
            body.line("barrier();")
            body.line("uint last = 0u, run = 0u;")
            with self._each_element() as elements:
                for key, place in elements:
                    self._write(_COUNT, KEY=key, FROM_END=_from_end(place))
            body.line("if (run > 0u) atomicAdd(counters[last], run);")
            self._write(_FIND_DIGIT, SHARE=_DIGITS // self.local)

    @contextmanager
    def _each_element(self) -> Iterator[Iterator[tuple[str, str]]]:
        """Loops in which the invocation has its share of the row: the keys and places of some elements."""
        body, apart, turns = self.body, self.local, max(WORKGROUPS.in_flight // self.width, 1)
        with body.block(f"for (int first = thread; first < vectors; first += {turns * apart})"):
            found = [self._read(turn) for turn in range(turns)]
            yield self._inside(found)

    def _inside(self, found: list[list[tuple[str, str]]]) -> Iterator[tuple[str, str]]:
        for turn, elements in enumerate(found):
            with self.body.block(f"if (first + {turn * self.local} < vectors)"):
                yield from elements

    def _read(self, turn: int) -> list[tuple[str, str]]:
        index = self.routine.position(f"at{turn}", f"min(first + {turn * self.local}, vectors - 1)", self.vectors)
        place = index if self.width == 1 else linear([(index, VECTOR), (LANE, 1)])
        text = widened(self.body.value(self.keys, (*self.row, place)), self.width, self.keys.dtype)
        parts = [text] if self.width == 1 else [f"{text}.{component}" for component in COMPONENTS[:VECTOR]]
        for number, part in enumerate(parts):
            self.body.line(f"uint key{turn}_{number} = key_of({part});")
        return [(f"key{turn}_{number}", f"(at{turn} * {self.width} + {number})") for number in range(len(parts))]

    def _stored(self, value: str) -> str:
        start = self.body.index(flatten((*self.row, ZERO), self.routine.node.shape))
        return f"{self.routine.element(f'{start} + int(rank)')} = {value};"

    def _write(self, text: str, **names: object) -> None:
        for name, meaning in {**names, "LOCAL": self.local, "ROOM": self.room}.items():
            text = text.replace(name, str(meaning))
        self.body.lines(text.strip().splitlines())


def _from_end(place: str) -> str:
    return f"uint({(1 << 22) - 1} - {place})"


def _invocations(length: int, lifted: bool) -> int:
    """A power of two: digits are divided among them."""
    if lifted:
        return WORKGROUPS.of_long_rows
    found = next((number for least, number in WORKGROUPS.longer if length >= least), WORKGROUPS.of_long_rows)
    return min(found, max(WORKGROUPS.least, 1 << (length - 1).bit_length()))


def emit_select_in_workgroup(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of select_greatest."""
    return _Selection(kernel, profile, lifted).emit()
