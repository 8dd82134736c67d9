"""Arrays in the registers of one subgroup, and the statements that move their elements.

Element e of an array is in register e / lanes, in lane e % lanes. What lanes have beyond the last element means
nothing. The one element of an array of one is in all lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from lavax.backends.vulkan.glsl.body import Body
from lavax.backends.vulkan.glsl.expressions import literal, type_name
from lavax.base.quick_dataclasses import dataclass
from lavax.ir.types import DType

LANES = 8
FILLED, UNUSED = -1, -2  # in place of an element's number: a given number, and anything
_BITS = 4  # of a lane's number in a word


class TooMuchError(Exception):
    """The loop takes more statements than registers are worth, or something that has no form in registers."""


@dataclass(frozen=True)
class Held:
    """An array in registers: their names, or texts of constants. With an address it is in memory, for gathers and, if
    it is a table, for updates."""

    names: tuple[str, ...]
    dtype: DType
    size: int
    address: str | None = None
    is_table: bool = False

    @property
    def is_uniform(self) -> bool:
        """Whether all lanes have the same in each register."""
        return self.size == 1


class Statements:
    """The state of writing statements for a subgroup; equal ones within open blocks are written once."""

    def __init__(self, body: Body, most: int) -> None:
        self.body, self.most, self.count = body, most, 0
        self._known: list[dict[tuple[str, str], str]] = [{}]
        self._outside = body.scopes[0].lines  # before all loops: what depends on the lane alone
        self._of_lanes: dict[str, str] = {}
        self._constants: list[str] = []

    def spend(self, cost: int) -> None:
        """Counts what statements cost beyond one each."""
        self.count += cost
        if self.count > self.most:
            raise TooMuchError

    def spend_loads(self, address: str, count: int) -> None:
        """Counts loads from an array: through a texel, or in a loop over the lanes."""
        self.spend(count if address in self.body.memory.read_descriptors else LANES * count)

    def declare(self, kind: str, text: str) -> str:
        """A name for the value, the known one if there is one."""
        if text.isidentifier():
            return text
        for known in self._known:
            if (kind, text) in known:
                return known[kind, text]
        self.spend(1)
        name = self.body.name()
        self.body.line(f"{kind} {name} = {text};")
        self._known[-1][kind, text] = name
        return name

    def variable(self, kind: str, text: str) -> str:
        """A variable of its own."""
        self.spend(1)
        name = self.body.name()
        self.body.line(f"{kind} {name} = {text};")
        return name

    def meet(self) -> None:
        """All lanes see what each of them has stored."""
        self.body.line("subgroupBarrier();")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """A block; what is declared in it is known in it."""
        self._known.append({})
        with self.body.pinned_block(head):
            yield
        self._known.pop()

    # -- what depends on the lane alone -------------------------------------------------------------------------------

    def _of_lane(self, kind: str, text: str) -> str:
        """A name for what depends on nothing but the lane, declared before all loops."""
        if text not in self._of_lanes:
            name = f"by_lane{len(self._of_lanes)}"
            self._constants.append(f"{kind} {name} = {text};")
            self._of_lanes[text] = name
        return self._of_lanes[text]

    def constants(self) -> list[str]:
        """The declarations of what depends on the lane alone."""
        return ["int lane = int(gl_SubgroupInvocationID);", *self._constants]

    def truths(self, lanes: Sequence[bool]) -> str:
        """Whether the lane is one of these."""
        word = sum(1 << lane for lane, holds in enumerate(lanes) if holds)
        return self._of_lane("bool", f"((0x{word:x}u >> lane) & 1u) != 0u")

    def numbers(self, numbers: Sequence[int]) -> str:
        """A non-negative number for each lane, as an int."""
        first, step = numbers[0], numbers[1] - numbers[0]
        if all(number == first for number in numbers):
            return str(first)
        if list(numbers) == [first + step * lane for lane in range(LANES)]:
            return "lane" if (first, step) == (0, 1) else self._of_lane("int", f"{first} + {step} * lane")
        parts = []
        for shift in range(0, max(numbers).bit_length(), _BITS):
            word = sum((number >> shift & 15) << _BITS * lane for lane, number in enumerate(numbers))
            parts.append(f"int((0x{word:x}u >> {_BITS} * lane) & 15u)" + (f" * {1 << shift}" if shift else ""))
        return self._of_lane("int", " + ".join(parts))

    # -- moving -------------------------------------------------------------------------------------------------------

    def shuffled(self, name: str, lanes: str, dtype: DType) -> str:
        """Each lane's value of the lane whose number it has in the text."""
        if dtype.kind == "bool":
            word = self.declare("uint", f"uint({name})")
            word = self.declare("uint", f"subgroupShuffle({word}, uint({lanes}))")
            return self.declare("bool", f"{word} != 0u")
        return self.declare(type_name(dtype, 1), f"subgroupShuffle({name}, uint({lanes}))")

    def select(self, test: str, yes: str, no: str, dtype: DType) -> str:
        if yes == no:
            return yes
        return self.declare(type_name(dtype, 1), f"mix({no}, {yes}, {test})")

    def moved(self, sources: Sequence[Held], elements: np.ndarray, filler: float | int | bool = 0) -> Held:
        """The array with these elements, numbered through all sources, of which each begins at a multiple of LANES."""
        dtype = sources[0].dtype
        names = [name for source in sources for name in source.names]
        uniform = [source.is_uniform for source in sources for _ in source.names]
        flat = elements.reshape(-1)
        if flat.size == 1:
            flat = np.repeat(flat, LANES)
            return Held((self._gathered(flat, names, uniform, dtype, filler),), dtype, 1)
        rest = -flat.size % LANES
        rows = np.concatenate([flat, np.full(rest, UNUSED)]).reshape(-1, LANES)
        found = tuple(self._gathered(row, names, uniform, dtype, filler) for row in rows)
        return Held(found, dtype, flat.size)

    def _gathered(
        self, row: np.ndarray, names: Sequence[str], uniform: Sequence[bool], dtype: DType, filler: float | int | bool
    ) -> str:
        """The register with these elements."""
        found: str | None = None
        for register in dict.fromkeys(int(element) // LANES if element >= 0 else FILLED for element in row):
            own = row // LANES == register if register >= 0 else row == FILLED
            if not own.any():
                continue
            if register < 0:
                part = literal(filler, dtype)
            else:
                part = self._lanes_of(names[register], row % LANES, own, uniform[register], dtype)
            found = part if found is None else self.select(self.truths(own), part, found, dtype)
        return literal(filler, dtype) if found is None else found

    def _lanes_of(self, name: str, lanes: np.ndarray, own: np.ndarray, uniform: bool, dtype: DType) -> str:
        if uniform or not name.isidentifier() or all(lanes[own] == np.arange(LANES)[own]):
            return name
        wanted = lanes[own]
        if (wanted == wanted[0]).all():
            return self.shuffled(name, str(wanted[0]), dtype)
        return self.shuffled(name, self.numbers(np.where(own, lanes, _likely(lanes, own)).tolist()), dtype)


def _likely(lanes: np.ndarray, own: np.ndarray) -> np.ndarray:
    """For the lanes that need nothing: what others in a row would have, so that few patterns differ."""
    first = int(np.argmax(own))
    return np.asarray((lanes[first] + np.arange(LANES) - first) % LANES)


def numbered(sources: Sequence[Held]) -> list[np.ndarray]:
    """The numbers of each source's elements."""
    found, first = [], 0
    for source in sources:
        found.append(first + np.arange(source.size))
        first += len(source.names) * LANES
    return found
