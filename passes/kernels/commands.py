"""What a program does besides running kernels: repeat, leave out, and go through arrays step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Union

from lavax.passes.kernels.kernel import KernelStep

# A flag is a word: neighbours are never written together.
FLAG_BYTES = 4


@dataclass(frozen=True)
class View:
    """A part of a buffer that moves: it begins `stride` bytes further for each unit of the number in `counter`."""

    buffer: str  # a buffer, or a view
    counter: str
    stride: int


@dataclass(frozen=True, eq=False)
class Guard:
    """Sets the buffer `flag` to whether the scalar in `index` is `equals`, once moved into the range of `count`
    cases, and `parent`, if there is one, is set."""

    name: str
    flag: str
    index: str
    equals: int
    count: int
    parent: str | None = None


@dataclass(frozen=True, eq=False)
class Guarded:
    """Commands that do nothing where `flag` is not set."""

    flag: str
    commands: tuple[Command, ...]


@dataclass(frozen=True, eq=False)
class Repeat:
    """Commands done `count` times."""

    count: int
    commands: tuple[Command, ...]


@dataclass(frozen=True, eq=False)
class Until:
    """Commands done again and again until `flag` is not set; more turns than that change nothing."""

    flag: str
    commands: tuple[Command, ...]


Command = Union[KernelStep, Guard, Guarded, Repeat, Until]  # noqa: UP007  # names of classes defined above use it


def steps_of(commands: Sequence[Command]) -> Iterator[KernelStep]:
    """All steps, each once, however often it runs."""
    for command in commands:
        if isinstance(command, KernelStep):
            yield command
        elif not isinstance(command, Guard):
            yield from steps_of(command.commands)


def after_barrier(commands: Sequence[Command]) -> tuple[Command, ...]:
    """The same commands, of which the first waits for all work before it."""
    if not commands:
        return ()
    first, *rest = commands
    if isinstance(first, KernelStep):
        return (replace(first, barrier=True), *rest)
    if isinstance(first, Guard):
        return tuple(commands)  # a guard always waits
    return (replace(first, commands=after_barrier(first.commands)), *rest)
