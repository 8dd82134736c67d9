"""The commands of a program: dispatches, repetition, conditional execution, and views that move through arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Union

from lavax.base.quick_dataclasses import dataclass
from lavax.passes.kernels.kernel import KernelStep

# A flag is a 32-bit word, so that no write covers two flags.
FLAG_BYTES = 4


@dataclass(frozen=True)
class View:
    """A moving part of a buffer: it starts `stride` bytes times the number in `counter` from the buffer's start."""

    buffer: str  # a buffer, or a view
    counter: str
    stride: int


@dataclass(frozen=True, eq=False)
class Guard:
    """Sets the buffer `flag` if the scalar in `index`, clamped to the range of `count` cases, equals `equals`, and
    `parent`, if there is one, is set; clears it otherwise."""

    name: str
    flag: str
    index: str
    equals: int
    count: int
    parent: str | None = None


@dataclass(frozen=True, eq=False)
class Guarded:
    """Commands that have no effect unless `flag` is set."""

    flag: str
    commands: tuple[Command, ...]


@dataclass(frozen=True, eq=False)
class Repeat:
    """Commands that run `count` times."""

    count: int
    commands: tuple[Command, ...]


@dataclass(frozen=True, eq=False)
class Until:
    """Commands that run repeatedly until `flag` is not set; further iterations change nothing."""

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
    """The same commands; the first waits for all earlier work."""
    if not commands:
        return ()
    first, *rest = commands
    if isinstance(first, KernelStep):
        return (replace(first, barrier=True), *rest)
    if isinstance(first, Guard):
        return tuple(commands)  # a guard always waits
    return (replace(first, commands=after_barrier(first.commands)), *rest)
