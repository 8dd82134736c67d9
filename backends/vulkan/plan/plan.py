"""A program as data: shaders, dispatches, memory. Lowering creates it; run/program.py runs it.

Imports no Vulkan. A program's slots are, in this order, arguments, results, constants, temporaries, flags, and
positions in descriptor ranges. Its address table has one 64-bit device address, or position, per slot. Every shader
gets one push constant block of 128 bytes: `uint64_t table` and `uint words[30]`, which are the dispatch's slots, then
its own words.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Union

from lavax.base.quick_dataclasses import dataclass

MAX_WORDS = 30
BASE_WORD = MAX_WORDS - 1  # in a part of a dispatch that is cut along its workgroups: the number of the first one

# The GLSL declaration of a descriptor for the array in a shader's n-th slot, in each of its forms: texels of four, two
# or one words to read; four words or one to read of what the dispatch itself writes; eight, four, two or one words at
# once to write, two also as one of 64 bits, and four that begin behind one to three; eight or four, as words of 64
# bits, that are read or written.
BINDINGS = {
    "vectors": "layout(set = 0, binding = {binding}) uniform usamplerBuffer vectors{number};\n",
    "couples": "layout(set = 0, binding = {binding}) uniform usamplerBuffer couples{number};\n",
    "elements": "layout(set = 0, binding = {binding}) uniform usamplerBuffer elements{number};\n",
    "fours": "layout(set = 0, binding = {binding}, rgba32ui) coherent volatile readonly "
    "uniform uimageBuffer fours{number};\n",
    "ones": "layout(set = 0, binding = {binding}, r32ui) coherent volatile readonly "
    "uniform uimageBuffer ones{number};\n",
    "eights": "layout(set = 0, binding = {binding}, scalar) writeonly buffer Eights{number} "
    "{{ u64vec4 data[]; }} eights{number};\n",
    "stores": "layout(set = 0, binding = {binding}, scalar) writeonly buffer Stores{number} "
    "{{ uvec4 data[]; }} stores{number};\n",
    "pairs": "layout(set = 0, binding = {binding}, scalar) writeonly buffer Pairs{number} "
    "{{ uvec2 data[]; }} pairs{number};\n",
    "longs": "layout(set = 0, binding = {binding}, scalar) writeonly buffer Longs{number} "
    "{{ uint64_t data[]; }} longs{number};\n",
    "singles": "layout(set = 0, binding = {binding}, scalar) writeonly buffer Singles{number} "
    "{{ uint data[]; }} singles{number};\n",
    "octets": "layout(set = 0, binding = {binding}, scalar) buffer Octets{number} "
    "{{ u64vec4 data[]; }} octets{number};\n",
    "quartets": "layout(set = 0, binding = {binding}, scalar) buffer Quartets{number} "
    "{{ u64vec2 data[]; }} quartets{number};\n",
} | {
    f"shifted{words}_": f"layout(set = 0, binding = {{binding}}, scalar) writeonly buffer Shifted{words}_{{number}} "
    f"{{{{ uint before[{words}]; uvec4 data[]; }}}} shifted{words}_{{number}};\n"
    for words in (1, 2, 3)
}
CHANGING_FORMS = ("fours", "ones")  # those that are read of what the same dispatch writes
TEXEL_FORMS = ("vectors", "couples", "elements", *CHANGING_FORMS)  # those that are read


@dataclass(frozen=True)
class Shader:
    """A compute shader: GLSL source, and the values of its specialization constants 0, 1, 2, …

    With a `subgroup_size`, it runs in full subgroups of that size, and its local size in x must be a multiple of it.
    `bindings`: per binding, the form (a key of BINDINGS) and the array's position among the dispatch's slots.
    `doubles`: whether it computes in float64.
    """

    source: str
    specialization: tuple[int, ...] = ()
    subgroup_size: int | None = None
    bindings: tuple[tuple[str, int], ...] = ()
    doubles: bool = False


@dataclass(frozen=True)
class Work:
    """The least that a dispatch computes and moves: floating-point operations, and bytes read and written."""

    operations: int = 0
    nbytes: int = 0

    def share(self, groups: int, total: int) -> Work:
        """That of so many of all workgroups."""
        return Work(self.operations * groups // total, self.nbytes * groups // total)


@dataclass(frozen=True)
class DispatchPart:
    """The slots of one part of a dispatch to which the shader's bindings refer, and the part's workgroups."""

    seen: tuple[int, ...]
    groups: int


@dataclass(frozen=True)
class Fill:
    """A word of 32 bits all over the first `nbytes` of the array in a slot, a multiple of four."""

    slot: int
    nbytes: int
    word: int


@dataclass(frozen=True)
class Copy:
    """Runs of bytes from the array in one slot to that in another: where they begin in both, and their lengths."""

    source: int
    target: int
    runs: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Copies:
    """What gives a dispatch's results without its shader: `fills`, then `copies`, none of which overlap."""

    fills: tuple[Fill, ...]
    copies: tuple[Copy, ...]

    @property
    def slots(self) -> tuple[int, ...]:
        """Those of all arrays."""
        of_copies = (slot for copy in self.copies for slot in (copy.source, copy.target))
        return tuple(dict.fromkeys((*(fill.slot for fill in self.fills), *of_copies)))

    @property
    def nbytes(self) -> int:
        """How many bytes are written."""
        return sum(fill.nbytes for fill in self.fills) + sum(run[2] for copy in self.copies for run in copy.runs)


@dataclass(frozen=True)
class Dispatch:
    """One run of a shader with `groups` workgroups. `barrier`: it waits for all earlier dispatches.

    There are at most 30 slots and words together. A dispatch with a zero in `groups` does nothing. `counts`, if given,
    is the slot of a constant and an offset in bytes; the workgroup counts are read from there when the dispatch runs.
    `seen`, if given, replaces `slots` as the list of slots to which the shader's bindings refer. `work`: from which its
    time is estimated.

    `parts`, if given, are kernels with bindings of their own; the last word is the number of the first workgroup. Those
    whose arrays lie in the same descriptor ranges are dispatched together.

    `copies`, if given, may take the dispatch's place where it does not depend on `counts`. Their slots are among the
    plan's `range_slots`.
    """

    shader: Shader
    slots: tuple[int, ...]
    words: tuple[int, ...]
    groups: tuple[int, int, int]
    barrier: bool
    name: str
    counts: tuple[int, int] | None = None
    seen: tuple[int, ...] | None = None
    work: Work = Work()
    parts: tuple[DispatchPart, ...] = ()
    copies: Copies | None = None

    def apart(self) -> list[Dispatch]:
        """A dispatch for each part."""
        firsts = accumulate((part.groups for part in self.parts), initial=0)
        return [
            replace(
                self,
                words=(*self.words[:-1], first),
                groups=(part.groups, 1, 1),
                barrier=self.barrier and first == 0,
                seen=part.seen,
                work=self.work.share(part.groups, self.groups[0]),
                parts=(),
            )
            for part, first in zip(self.parts, firsts, strict=False)
        ] or [self]


@dataclass(frozen=True)
class RepeatDispatches:
    """Commands that run `count` times."""

    count: int
    commands: tuple[Command, ...]


@dataclass(frozen=True)
class UntilFlag:
    """Commands that repeat until the flag with that number is 0; the host checks it now and then.

    `may_be_skipped`: they are in a branch. If it is not taken, the first turn sets the flag to 0.
    """

    flag: int
    commands: tuple[Command, ...]
    may_be_skipped: bool = False


Command = Union[Dispatch, RepeatDispatches, UntilFlag]  # noqa: UP007  # names of classes defined above use it


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


def blocks_of(arena_bytes: int, block_bytes: int) -> list[int]:
    """The sizes of an arena's allocations; there is always one."""
    starts = range(0, max(arena_bytes, 1), block_bytes)
    return [min(block_bytes, arena_bytes - start) for start in starts]


@dataclass(frozen=True)
class Plan:
    """A whole program. `arguments` are sizes in bytes, `temporaries` offsets in bytes into an arena of `arena_bytes`.

    The arena is allocations of `block_bytes`, of which the last is shorter. No temporary lies across the end of one.
    A constant may be empty if nothing reads it.

    `flags` is the number of 32-bit words that the host reads to end loops. `range_slots` are the slots of arguments,
    results and temporaries that shaders see through descriptors; the arrays' positions in their descriptor ranges, in
    texels of 16 bytes, have the last slots.
    """

    arguments: tuple[int, ...]
    results: tuple[Result, ...]
    constants: tuple[bytes, ...]
    temporaries: tuple[int, ...]
    arena_bytes: int
    commands: tuple[Command, ...]
    flags: int = 0
    range_slots: tuple[int, ...] = ()
    block_bytes: int = 1 << 62

    @property
    def arena_blocks(self) -> list[int]:
        """The sizes of the arena's allocations; there is always one."""
        return blocks_of(self.arena_bytes, self.block_bytes)

    @property
    def dispatches(self) -> list[Dispatch]:
        """All dispatches, each once, however often it runs."""
        return list(dispatches_of(self.commands))
