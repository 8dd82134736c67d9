"""What a program does, as data: shaders, dispatches, memory. Lowering makes it; `program.Program` runs it.

Imports no Vulkan. The slots of a program stand in the order arguments, results, constants, temporaries, flags, and
positions in windows; a program's address table holds one 64-bit device address, or position, a slot. Every shader gets
one push constant block of 128 bytes: `uint64_t table` and `uint words[30]`, the words being the dispatch's slots, then
its own words.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Union

MAX_WORDS = 30

# The GLSL of what a shader sees through a descriptor of the array in its n-th slot, by the form in which it is seen:
# texels of four words, texels of one, and four words at once to be written.
BINDINGS = {
    "vectors": "layout(set = 0, binding = {binding}) uniform usamplerBuffer vectors{number};\n",
    "elements": "layout(set = 0, binding = {binding}) uniform usamplerBuffer elements{number};\n",
    "stores": "layout(set = 0, binding = {binding}, scalar) writeonly buffer Stores{number} "
    "{{ uvec4 data[]; }} stores{number};\n",
}


@dataclass(frozen=True)
class Shader:
    """A compute shader: GLSL source, and the values of its specialization constants 0, 1, 2, …

    With `subgroup_size` given the shader runs in full subgroups of that size, and its local size in x must be a
    multiple of it. `bindings` has for each of its bindings the form, one of BINDINGS, and the array's position among
    the dispatch's slots. `doubles`: whether it computes in float64.
    """

    source: str
    specialization: tuple[int, ...] = ()
    subgroup_size: int | None = None
    bindings: tuple[tuple[str, int], ...] = ()
    doubles: bool = False


@dataclass(frozen=True)
class Dispatch:
    """One run of a shader over `groups` workgroups. `barrier`: it waits for all dispatches before it.

    At most 30 slots and words together. A dispatch with a zero in `groups` does nothing. With `counts`, a slot of a
    constant and an offset in bytes, the numbers of workgroups are read from there when it runs. `seen` are the slots of
    the arrays that the shader's bindings number, where `slots` are not these.
    """

    shader: Shader
    slots: tuple[int, ...]
    words: tuple[int, ...]
    groups: tuple[int, int, int]
    barrier: bool
    name: str
    counts: tuple[int, int] | None = None
    seen: tuple[int, ...] | None = None


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

    `flags` is how many 32-bit words there are that the host reads to end loops. `windowed` are the slots of arguments,
    results and temporaries that shaders see in windows; their positions there, in texels of 16 bytes, have the last
    slots.
    """

    arguments: tuple[int, ...]
    results: tuple[Result, ...]
    constants: tuple[bytes, ...]
    temporaries: tuple[int, ...]
    arena_bytes: int
    commands: tuple[Command, ...]
    flags: int = 0
    windowed: tuple[int, ...] = ()

    @property
    def dispatches(self) -> list[Dispatch]:
        """All dispatches, each once, however often it runs."""
        return list(dispatches_of(self.commands))
