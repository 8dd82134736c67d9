"""What a program does, as data: shaders, dispatches, memory. Lowering makes it; `program.Program` runs it.

Imports no Vulkan. The slots of a program stand in the order arguments, results, constants, temporaries, flags; a
program's address table holds one 64-bit device address a slot. Every shader gets one push constant block of
128 bytes: `uint64_t table` and `uint words[30]`, the words being the dispatch's slots, then its own words.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Union

MAX_WORDS = 30


@dataclass(frozen=True)
class Shader:
    """A compute shader: GLSL source, and the values of its specialization constants 0, 1, 2, …

    With `subgroup_size` given the shader runs in full subgroups of that size, and its local size in x must be a
    multiple of it.
    """

    source: str
    specialization: tuple[int, ...] = ()
    subgroup_size: int | None = None


@dataclass(frozen=True)
class Dispatch:
    """One run of a shader over `groups` workgroups. `barrier`: it waits for all dispatches before it.

    At most 30 slots and words together. A dispatch with a zero in `groups` does nothing. With `counts`, a slot of a
    constant and an offset in bytes, the numbers of workgroups are read from there when it runs.
    """

    shader: Shader
    slots: tuple[int, ...]
    words: tuple[int, ...]
    groups: tuple[int, int, int]
    barrier: bool
    name: str
    counts: tuple[int, int] | None = None


@dataclass(frozen=True)
class Repeat:
    """Commands that run `count` times."""

    count: int
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class Until:
    """Commands that run again and again until the flag of that number is 0; the host looks now and then."""

    flag: int
    commands: tuple[Command, ...]


Command = Union[Dispatch, Repeat, Until]  # noqa: UP007  # names of classes defined above use it


def dispatches_of(commands: Iterable[Command]) -> Iterator[Dispatch]:
    """All dispatches, each once, however often it runs."""
    for command in commands:
        if isinstance(command, Dispatch):
            yield command
        else:
            yield from dispatches_of(command.commands)


@dataclass(frozen=True)
class Result:
    """A result of `nbytes`; `donor` is the index of the argument whose buffer it takes over, or None."""

    nbytes: int
    donor: int | None


@dataclass(frozen=True)
class Plan:
    """A whole program. `arguments` are byte sizes, `temporaries` byte offsets into one arena of `arena_bytes`.

    Constants may be empty: nothing reads them then.

    `flags` is how many 32-bit words there are that the host reads to end loops; their slots are the last.
    """

    arguments: tuple[int, ...]
    results: tuple[Result, ...]
    constants: tuple[bytes, ...]
    temporaries: tuple[int, ...]
    arena_bytes: int
    commands: tuple[Command, ...]
    flags: int = 0

    @property
    def dispatches(self) -> list[Dispatch]:
        """All dispatches, each once, however often it runs."""
        return list(dispatches_of(self.commands))
