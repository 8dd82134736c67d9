"""What a workgroup runs in each turn of a loop, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Union

from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.plan import Work
from lavax.base.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Where an array begins: a slot, and per loop it moves with, the counter's slot and the bytes per iteration.

    `nbytes` has the whole array, which it moves through.
    """

    slot: int
    nbytes: int
    counters: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Member:
    """A kernel of a turn: its shader, where its arrays are, the number of those that it reads, which come first,
    whether it only copies, what it adds to a number if it does only that, whether it waits for what was written before,
    and its cost."""

    launch: Launch
    places: tuple[Place, ...]
    reads: int
    is_copy: bool
    increment: int | None
    barrier: bool
    iterations: int
    work: Work
    positions: tuple[int, ...] = ()  # the slots of arrays' positions in descriptor ranges

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots that the shader gets: those of arrays, then those of the counters that they move with, and of
        positions in descriptor ranges."""
        counters = (counter for place in self.places for counter in place.counters)
        return (*(place.slot for place in self.places), *counters, *self.positions)

    @property
    def read(self) -> tuple[Place, ...]:
        return self.places[: self.reads]

    @property
    def written(self) -> tuple[Place, ...]:
        return self.places[self.reads :]


@dataclass(frozen=True, eq=False)
class HandedOn:
    """A copy at the end of a turn that is made at the end of the loop: until then the target is where the source is.

    The source is an array, which then is where the target was, or a row that the turn wrote of an array of rows. If
    each turn stacks the target as it was before, in `rows`, then the source is where the next turn's row is.
    """

    copy: Member
    rows: Place | None = None
    step: int = 0  # of the counter of `rows`

    @property
    def source(self) -> Place:
        return self.copy.places[0]

    @property
    def target(self) -> Place:
        return self.copy.places[1]


@dataclass(frozen=True, eq=False)
class FirstRow:
    """A copy of a target that is handed on to its row: only the first turn has to make it."""

    copy: Member
    handed: HandedOn


@dataclass(frozen=True)
class Branch:
    """What runs if the number in an array, clamped to the range of `cases`, equals `equals`."""

    number: Place
    equals: int
    cases: int
    members: tuple[Turn, ...]


@dataclass(frozen=True)
class Turns:
    """What a loop runs in each of its turns.

    `exchanged`: slots that change places after each turn, by pairs: instead of a copy at its end, the next turn reads
    what it wrote where that is, and writes where it read.
    """

    count: int
    members: tuple[Turn, ...]
    exchanged: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class While:
    """What runs as long as a truth in an array holds, which `asked` computes before each turn."""

    asked: tuple[Turn, ...]
    members: tuple[Turn, ...]
    holds: Place


Turn = Union[Member, HandedOn, FirstRow, Branch, Turns, While]  # noqa: UP007  # names of classes that use it


def with_slots(turn: Turn, others: Mapping[int, int]) -> Turn:
    """The part of a turn over other arrays."""
    return _with_slots(turn, others, {})


def _with_slots(turn: Turn, others: Mapping[int, int], copies: dict[HandedOn, HandedOn]) -> Turn:
    def place(of: Place) -> Place:
        counters = tuple(others.get(counter, counter) for counter in of.counters)
        return replace(of, slot=others.get(of.slot, of.slot), counters=counters)

    def kernel(of: Member) -> Member:
        positions = tuple(others.get(position, position) for position in of.positions)
        return replace(of, places=tuple(map(place, of.places)), positions=positions)

    def parts(of: tuple[Turn, ...]) -> tuple[Turn, ...]:
        return tuple(_with_slots(part, others, copies) for part in of)

    match turn:
        case Member():
            return kernel(turn)
        case HandedOn():
            if turn not in copies:
                rows = None if turn.rows is None else place(turn.rows)
                copies[turn] = replace(turn, copy=kernel(turn.copy), rows=rows)
            return copies[turn]
        case FirstRow():
            handed = _with_slots(turn.handed, others, copies)
            assert isinstance(handed, HandedOn), "it stays what it is"
            return FirstRow(kernel(turn.copy), handed)
        case Branch():
            return replace(turn, number=place(turn.number), members=parts(turn.members))
        case Turns():
            exchanged = tuple((others.get(a, a), others.get(b, b)) for a, b in turn.exchanged)
            return replace(turn, members=parts(turn.members), exchanged=exchanged)
        case While():
            return While(parts(turn.asked), parts(turn.members), place(turn.holds))


def kernel_of(turn: Member | HandedOn | FirstRow) -> Member:
    """The kernel of a turn's part that is no loop."""
    return turn if isinstance(turn, Member) else turn.copy


def within(turn: Turn) -> tuple[Turn, ...]:
    """The parts that a loop or branch runs."""
    if isinstance(turn, While):
        return (*turn.members, *turn.asked)
    return turn.members if isinstance(turn, (Branch, Turns)) else ()


def parts_of(turn: Turn) -> Iterator[Turn]:
    """The part of a turn and all parts within, each once, however often it runs."""
    yield turn
    for inner in within(turn):
        yield from parts_of(inner)


def members_of(turn: Turn) -> Iterator[Member]:
    """All kernels."""
    for part in parts_of(turn):
        if not isinstance(part, (Branch, Turns, While)):
            yield kernel_of(part)


def slots_of(turn: Turn) -> Iterator[int]:
    """The slots of all arrays, and of what branches and loops ask."""
    for part in parts_of(turn):
        match part:
            case Member() | HandedOn() | FirstRow():
                yield from kernel_of(part).slots
            case Branch():
                yield part.number.slot
            case While():
                yield part.holds.slot
