"""The memory of temporaries over the steps of a program: which buffer lies where, and from when to when."""
from __future__ import annotations

from collections.abc import Iterator

from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.commands import steps_of
from lavax.passes.kernels.program import KernelProgram


@dataclass(frozen=True)
class Placed:
    """A temporary of the arena: its offset and size in bytes, and the numbers of the first and last steps that use it.
    """

    name: str
    offset: int
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """All temporaries, and the names of the steps in the order they run. Steps of loops stand once."""

    buffers: tuple[Placed, ...]
    steps: tuple[str, ...]
    nbytes: int

    @property
    def live(self) -> tuple[int, ...]:
        """The bytes that are in use at each step; buffers that share bytes, such as one over another, count once."""
        return tuple(_covered(self.buffers, step) for step in range(len(self.steps)))


def arena_of(program: KernelProgram) -> Arena:
    """The arena of a program. Buffers that no kernel uses, such as flags of loops, are left out."""
    used: dict[str, tuple[int, int]] = {}
    steps = list(steps_of(program.steps))
    for number, step in enumerate(steps):
        for name in (name for part in (*step.reads, *step.writes) for name in part):
            first, _ = used.get(buffer := _buffer(program, name), (number, number))
            used[buffer] = first, number
    placed = [
        Placed(name, program.offsets[name], program.sizes[name], first, last)
        for name, (first, last) in used.items()
        if name in program.offsets and name in program.sizes
    ]
    return Arena(tuple(placed), tuple(step.name for step in steps), program.arena_bytes)


def _buffer(program: KernelProgram, name: str) -> str:
    """The buffer itself, of which a loop sees a moving part."""
    while name in program.views:
        name = program.views[name].buffer
    return name


def _covered(buffers: tuple[Placed, ...], step: int) -> int:
    total, reached = 0, 0
    for start, end in sorted(_ranges(buffers, step)):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _ranges(buffers: tuple[Placed, ...], step: int) -> Iterator[tuple[int, int]]:
    for buffer in buffers:
        if buffer.first <= step <= buffer.last:
            yield buffer.offset, buffer.offset + buffer.nbytes
