"""The greatest elements of a row, by one subgroup per row that reads the row a few times.

A first walk finds the maxima of 16 groups of elements per lane: as many of them as elements are asked for are a lower
bound of those. A second walk counts what is as great. If that is more than there is room for, the bound is bisected
until it fits, or is exact: then elements that equal it are taken in the order of their positions. A third walk stores
them, and each counts the others before it. Lanes walk through neighbouring parts of the row, so what is stored keeps
its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from lavax.backends.vulkan.emit.sort.keys import KEYS
from lavax.backends.vulkan.emit.sort.select_in_workgroup import emit_select_in_workgroup
from lavax.backends.vulkan.glsl.expressions import COMPONENTS, VECTOR
from lavax.backends.vulkan.glsl.lanes import LANE, widened
from lavax.backends.vulkan.glsl.launch import Launch, grid
from lavax.backends.vulkan.glsl.routine import RoutineShader, open_routine
from lavax.backends.vulkan.glsl.shader import ShaderText, assemble
from lavax.backends.vulkan.plan.profile import DeviceProfile
from lavax.passes.kernels.index import ZERO, flatten, linear, unflatten
from lavax.passes.kernels.kernel import Kernel
from lavax.passes.target.kernel_limits import SELECTION

_GROUPS = 16  # per lane
_DECLARATIONS = (
    "shared uint held[ROOM];",
    "shared int places[ROOM];",
    "shared uint ranks[ROOM];",
    "int lane;",
    """uint total(uint part) {
    for (int width = LANES / 2; width > 0; width /= 2) part += subgroupShuffleXor(part, uint(width));
    return part;
}""",
    """uint before(uint part) {
    uint sum = 0u;
    for (int other = 0; other < LANES - 1; ++other) {
        uint one = subgroupShuffle(part, uint(other));  // by all lanes: a lane that is not active has no value
        sum += other < lane ? one : 0u;
    }
    return sum;
}""",
)
# The greatest number, bit by bit, that `count` of the maxima reach; groups without elements have the least key.
_FIND_BOUND = """
uint bound = 0u;
for (int bit = 31; bit >= 0; --bit) {
    uint higher = bound | 1u << bit, number = 0u;
    for (int g = 0; g < GROUPS; ++g) number += uint(best[g] >= higher);
    bound = total(number) >= uint(count) ? higher : bound;
}
"""
# `bound` has at least `count` elements that are as great, and `limit` fewer that are greater.
_OPEN_COUNT = """
uint probe = bound, limit = ~0u, above, equal, all_above, all_equal;
while (true) {
    above = 0u;
    equal = 0u;
"""
_CLOSE_COUNT = """
    all_above = total(above);
    all_equal = total(equal);
    bool is_reached = all_above + all_equal >= uint(count);
    if (is_reached && (all_above + all_equal <= ROOM || all_above < uint(count))) break;
    bound = is_reached ? probe : bound;
    limit = is_reached ? limit : probe - 1u;
    probe = bound + (limit - bound) / 2u + ((limit - bound) & 1u);
}
uint taken = all_above + all_equal <= ROOM ? all_equal : uint(count) - all_above;
uint equals = uint(clamp(int(taken) - int(before(equal)), 0, int(equal)));
int stored = int(all_above + taken), own_end = int(above + equals);
int next = int(before(above + equals));
own_end += next;
"""
_TAKE = """
if (next < own_end && (KEY > probe || (KEY == probe && equals > 0u))) {
    held[next] = KEY;
    places[next++] = PLACE;
    equals -= KEY == probe ? 1u : 0u;
}
"""
_RANK = """
subgroupBarrier();
for (int first = 0; first < stored; first += LANES) {
    int one = min(first + lane, stored - 1);
    uint own = held[one], rank = 0u;
    for (int start = 0; start < stored; start += LANES) {
        uint others = held[min(start + lane, stored - 1)];
        for (int n = 0; n < LANES; ++n) {
            uint other = subgroupShuffle(others, uint(n));
            bool is_before = other > own || (other == own && start + n < one);
            rank += uint(is_before && start + n < stored);
        }
    }
    STORE
}
"""
_STORE_BY_RANK = "if (first + lane < stored && rank < uint(count)) RESULT[rank] = places[one];"
_HOLD_RANK = "ranks[one] = rank;"
_STORE_BY_PLACE = """
subgroupBarrier();
int done = 0;
for (int first = 0; first < stored; first += LANES) {
    int one = min(first + lane, stored - 1);
    bool is_chosen = first + lane < stored && ranks[one] < uint(count);
    uint chosen = uint(is_chosen);
    int at = done + int(before(chosen));
    if (is_chosen) RESULT[at] = places[one];
    done += int(total(chosen));
}
"""


def _with(text: str, names: Mapping[str, object]) -> str:
    """The text with what its names stand for."""
    for name, meaning in names.items():
        text = text.replace(name, str(meaning))
    return text


class _Selection:
    """The state of writing the kernel; lanes read `width` neighbours at once."""

    def __init__(self, kernel: Kernel, profile: DeviceProfile, lifted: bool) -> None:
        self.lanes = profile.subgroup_size
        self.routine: RoutineShader = open_routine(kernel, profile, lifted, self.lanes)
        self.body, (self.keys,) = self.routine.body, self.routine.operands
        *batch, self.length = self.keys.shape
        self.width = VECTOR if not lifted and self.length % VECTOR == 0 else 1
        self.vectors = self.length // self.width
        self.rows = prod(batch)
        self.routine.open(self.rows * self.lanes)
        number = self.routine.position("row", f"i / {self.lanes}", self.rows)
        self.row = unflatten(number, tuple(batch))
        self.body.line(f"lane = i % {self.lanes};")
        self.routine.integer("count", self.routine.node.attrs["count"])
        self.routine.integer("vectors", self.vectors)

    def emit(self) -> Launch:
        self._find_bound()
        self._count_reached()
        self._store_reached()
        self._rank()
        sizes = {"ROOM": SELECTION.room, "LANES": self.lanes}
        text = ShaderText(
            self.body.uses,
            self.body.scopes[0].lines,
            (self.lanes, 1),
            [KEYS[self.keys.dtype.kind], *(_with(text, sizes) for text in _DECLARATIONS)],
            subgroup_size=self.lanes,
            shuffles=True,
        )
        return Launch(assemble(text), tuple(self.body.parameters.words), grid(self.rows), text=text)

    def _write(self, text: str, **names: object) -> None:
        names |= dict(ROOM=SELECTION.room, LANES=self.lanes, GROUPS=_GROUPS)
        self.body.lines(_with(text, names).strip().splitlines())

    def _read(self, at: str) -> list[str]:
        """The keys of the row's elements from `width` · `at` on, each under a name."""
        index = self.routine.position("at", f"min({at}, vectors - 1)", self.vectors)
        place = index if self.width == 1 else linear([(index, VECTOR), (LANE, 1)])
        text = widened(self.body.value(self.keys, (*self.row, place)), self.width, self.keys.dtype)
        parts = [text] if self.width == 1 else [f"{text}.{component}" for component in COMPONENTS[:VECTOR]]
        for number, part in enumerate(parts):
            self.body.line(f"uint key{number} = key_of({part});")
        return [f"key{number}" for number in range(len(parts))]

    def _find_bound(self) -> None:
        """Neighbours belong to different groups, so that sorted rows have their greatest elements in many."""
        body, turns = self.body, _GROUPS // self.width
        body.line(f"uint best[{_GROUPS}];")
        body.line(f"for (int g = 0; g < {_GROUPS}; ++g) best[g] = 0u;")
        with body.block(f"for (int first = lane; first < vectors; first += {self.lanes * turns})"):
            for turn in range(turns):
                with body.block(f"if (first + {turn * self.lanes} < vectors)"):
                    for number, key in enumerate(self._read(f"first + {turn * self.lanes}")):
                        best = f"best[{turn * self.width + number}]"
                        body.line(f"{best} = max({best}, {key});")
        self._write(_FIND_BOUND)

    def _count_reached(self) -> None:
        body = self.body
        body.line(f"int share = (vectors + {self.lanes - 1}) / {self.lanes};")
        body.line("int begin = lane * share, end = min(begin + share, vectors);")
        self._write(_OPEN_COUNT)
        with body.block("for (int step = begin; step < end; ++step)"):
            for key in self._read("step"):
                body.line(f"above += uint({key} > probe);")
                body.line(f"equal += uint({key} == probe);")
        self._write(_CLOSE_COUNT)

    def _store_reached(self) -> None:
        """Lanes look for their next vector with an element to store, and store together."""
        body = self.body
        body.line("int step = begin;")
        with body.block("while (next < own_end)"):
            with body.block("while (step < end - 1)"):
                reached = " || ".join(f"{key} >= probe" for key in self._read("step"))
                body.line(f"if ({reached}) break;")
                body.line("++step;")
            for number, key in enumerate(self._read("step")):
                self._write(_TAKE, KEY=key, PLACE=f"at * {self.width} + {number}")
            body.line("++step;")

    def _rank(self) -> None:
        by_place = self.routine.node.attrs["by_place"]
        node = self.routine.node
        start = self.body.index(flatten((*self.row, ZERO), node.shape))
        self._write(_RANK, STORE=_HOLD_RANK if by_place else self._stored(_STORE_BY_RANK, start))
        if by_place:
            self._write(self._stored(_STORE_BY_PLACE, start))

    def _stored(self, text: str, start: str) -> str:
        place = "rank" if "RESULT[rank]" in text else "at"
        element = self.routine.element(f"{start} + int({place})")
        return text.replace(f"RESULT[{place}]", element)


def emit_select_greatest(kernel: Kernel, profile: DeviceProfile, lifted: bool) -> Launch:
    """The shader of select_greatest."""
    if profile.kind == "gpu":
        return emit_select_in_workgroup(kernel, profile, lifted)
    return _Selection(kernel, profile, lifted).emit()
