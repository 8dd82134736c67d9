"""What a workgroup runs in each turn of a loop, as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from lavax.backends.vulkan.glsl.launch import Launch
from lavax.backends.vulkan.plan.plan import Work


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
    whether it only copies, whether it waits for what was written before, and its cost."""

    launch: Launch
    places: tuple[Place, ...]
    reads: int
    is_copy: bool
    barrier: bool
    iterations: int
    work: Work

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots that the shader gets: those of arrays, then those of the counters that they move with."""
        counters = (counter for place in self.places for counter in place.counters)
        return (*(place.slot for place in self.places), *counters)

    @property
    def read(self) -> tuple[Place, ...]:
        return self.places[: self.reads]

    @property
    def written(self) -> tuple[Place, ...]:
        return self.places[self.reads :]


@dataclass(frozen=True, eq=False)
class HandedOn:
    """A copy at the end of a turn that is made at the end of the loop: until then the target is where the source is.

    The source is an array, which then is where the target was, or a row that the turn wrote of an array of rows.
    """

    copy: Member

    @property
    def source(self) -> Place:
        return self.copy.places[0]

    @property
    def target(self) -> Place:
        return self.copy.places[1]


@dataclass(frozen=True)
class Turns:
    """What a loop runs in each of its turns."""

    count: int
    members: tuple[Turn, ...]


Turn = Union[Member, HandedOn, Turns]  # noqa: UP007  # a name of a class that uses it


def kernel_of(turn: Member | HandedOn) -> Member:
    """The kernel of a turn's part that is no loop."""
    return turn.copy if isinstance(turn, HandedOn) else turn


def members_of(turns: Turns) -> Iterator[Member]:
    """All kernels, each once, however often it runs."""
    for turn in turns.members:
        if isinstance(turn, Turns):
            yield from members_of(turn)
        else:
            yield kernel_of(turn)
