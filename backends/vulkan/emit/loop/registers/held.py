"""Arrays in the registers of one subgroup, and the statements that move their elements.

Element e of an array is in register e / lanes, in lane e % lanes. What lanes have beyond the last element means
nothing. The one element of an array of one is in all lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

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
class Part:
    """What a register takes from another one, or of what fills it up if that has no number.

    `lanes` are those whose elements it takes, the other register's own lanes or those that they read, if others.
    """

    register: int
    own: tuple[bool, ...]
    lanes: tuple[int, ...] | None


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
        key = kind, text
        for known in self._known:
            if key in known:
                return known[key]
        self.spend(1)
        name = self.body.name()
        self.body.line(f"{kind} {name} = {text};")
        self._known[-1][key] = name
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

    def truths(self, lanes: tuple[bool, ...]) -> str:
        """Whether the lane is one of these."""
        return self._of_lane("bool", _text_of_truths(lanes))

    def numbers(self, numbers: tuple[int, ...]) -> str:
        """A non-negative number for each lane, as an int."""
        text = _text_of_numbers(numbers)
        return self._of_lane("int", text) if " " in text else text

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
        # What lies in no lane of its own is in all lanes alike.
        alike = [source.is_uniform or not name.isidentifier() for source in sources for name in source.names]
        size = elements.size
        rows = [(int(elements.reshape(-1)[0]),) * LANES] if size == 1 else rows_of(elements, UNUSED)
        found = tuple(self._gathered(row, names, alike, dtype, filler) for row in rows)
        return Held(found, dtype, size)

    def _gathered(
        self,
        row: tuple[int, ...],
        names: Sequence[str],
        alike: Sequence[bool],
        dtype: DType,
        filler: float | int | bool,
    ) -> str:
        """The register with these elements."""
        found: str | None = None
        for part in parts_of(row):
            if part.register < 0:
                text = literal(filler, dtype)
            else:
                text = names[part.register]
                if part.lanes is not None and not alike[part.register]:
                    text = self.shuffled(text, self.numbers(part.lanes), dtype)
            found = text if found is None else self.select(self.truths(part.own), text, found, dtype)
        return literal(filler, dtype) if found is None else found


@lru_cache(maxsize=1 << 8)
def _text_of_truths(lanes: tuple[bool, ...]) -> str:
    word = sum(1 << lane for lane, holds in enumerate(lanes) if holds)
    return f"((0x{word:x}u >> lane) & 1u) != 0u"


@lru_cache(maxsize=1 << 12)
def _text_of_numbers(numbers: tuple[int, ...]) -> str:
    """One word if it is one number for all lanes, or each lane's own number."""
    first, step = numbers[0], numbers[1] - numbers[0]
    if all(number == first for number in numbers):
        return str(first)
    if list(numbers) == [first + step * lane for lane in range(LANES)]:
        return "lane" if (first, step) == (0, 1) else f"{first} + {step} * lane"
    parts = []
    for shift in range(0, max(numbers).bit_length(), _BITS):
        word = sum((number >> shift & 15) << _BITS * lane for lane, number in enumerate(numbers))
        parts.append(f"int((0x{word:x}u >> {_BITS} * lane) & 15u)" + (f" * {1 << shift}" if shift else ""))
    return " + ".join(parts)


def rows_of(elements: np.ndarray, last: int) -> list[tuple[int, ...]]:
    """The elements of each register, the rest of the last one filled up."""
    flat = elements.reshape(-1)
    rows = np.concatenate([flat, np.full(-flat.size % LANES, last)]).reshape(-1, LANES)
    return [tuple(row) for row in rows.tolist()]


@lru_cache(maxsize=1 << 12)  # matrices read the same rows in each of their products
def parts_of(row: tuple[int, ...]) -> tuple[Part, ...]:
    """From where a register with these elements takes them, the first element's part first."""
    found = []
    for register in dict.fromkeys(element // LANES if element >= 0 else FILLED for element in row):
        if register < 0:
            own = tuple(element == FILLED for element in row)
        else:
            own = tuple(element // LANES == register for element in row)
        if any(own):
            found.append(Part(register, own, _lanes_read(row, own) if register >= 0 else None))
    return tuple(found)


def _lanes_read(row: tuple[int, ...], own: tuple[bool, ...]) -> tuple[int, ...] | None:
    """The lane that each lane reads; None if its own.

    For the lanes that need nothing it is what others in a row would have, so that few patterns differ.
    """
    read = [element % LANES for element in row]
    needed = {lane for lane, is_own in zip(read, own, strict=True) if is_own}
    if all(lane == number for number, lane in enumerate(read) if own[number]):
        return None
    if len(needed) == 1:
        return tuple(needed) * LANES
    first = own.index(True)
    likely = [(read[first] + lane - first) % LANES for lane in range(LANES)]
    return tuple(lane if is_own else other for lane, other, is_own in zip(read, likely, own, strict=True))


def numbered(sources: Sequence[Held]) -> list[np.ndarray]:
    """The numbers of each source's elements."""
    found, first = [], 0
    for source in sources:
        found.append(first + np.arange(source.size))
        first += len(source.names) * LANES
    return found
