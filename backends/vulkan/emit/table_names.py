"""The names of what a program's table holds besides its arrays: constants of the emitter's own, and flags.

They begin with a percent sign, as those of results and temporaries do: arguments have the names of a user's parameters,
and k1 is what many call a random key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from lavax.backends.vulkan.glsl.shader import REST_WORD, SPARE_WORDS
from lavax.ir.ops.attention import PROJECTED
from lavax.passes.kernels import commands as kernel_commands
from lavax.passes.kernels.commands import Guard
from lavax.passes.kernels.kernel import Kernel, KernelStep
from lavax.passes.schedule.merge import merge_key

# Routines whose launches may have memory of their own.
_HAVE_MEMORY = frozenset(("attention", "attention_logsumexp", *PROJECTED))


def is_merged(step: KernelStep) -> bool:
    """Whether its kernels are the same flat map, of whatever extents."""
    return len(step.kernels) > 1 and not (step.abreast or step.in_turn) and merge_key(step.kernel) is not None


def moves(step: KernelStep, views: Mapping[str, kernel_commands.View]) -> bool:
    return bool(views) and any(name in views for part in (*step.reads, *step.writes) for name in part)


def table_of(step: str) -> str:
    """The table of a step of several kernels."""
    return step if step.startswith("%") else f"%{step}"


def counts_of(guard: str) -> str:
    return f"{table_of(guard)}.counts"


def groups_of(guard: str) -> str:
    return f"{table_of(guard)}.groups"


def rest_of(step: str, number: int) -> str:
    return f"{table_of(step)}.{number}.rest"


def rest_before(step: str, number: int) -> str:
    """The same for the launch that must run before a kernel's own."""
    return f"{table_of(step)}.{number}.before.rest"


def memory_of(step: str, number: int) -> str:
    """The memory of its own that a kernel's launch has."""
    return f"{table_of(step)}.{number}.memory"


def rest_of_loop(command: kernel_commands.Repeat | kernel_commands.Until, is_last: bool) -> str:
    """The same for a loop that one workgroup runs; the last dispatch may have fewer turns."""
    step = next(kernel_commands.steps_of(command.commands))
    return f"{table_of(step.name)}.turns.{'last' if is_last else 'rest'}"


def slot_count(names: Iterable[str], views: Mapping[str, kernel_commands.View]) -> int:
    """The number of slots of arrays and of the counters with which they move."""
    count = 0
    for name in names:
        count += 1
        while name in views:
            count, name = count + 1, views[name].buffer
    return count


def names_of_constants(
    commands: Sequence[kernel_commands.Command],
    views: Mapping[str, kernel_commands.View],
    lifted: bool,
    given: Collection[Kernel],
) -> Iterator[str]:
    """The names of the plan's constants: tables of merged kernels and guards, words beyond push
    constants, and memory of launches' own."""
    for command in commands:
        if isinstance(command, KernelStep):
            if len(command.kernels) > 1 and not moves(command, views):
                yield table_of(command.name)
            if is_merged(command) and not moves(command, views):
                continue
            for number, arrays in enumerate(zip(command.reads, command.writes, strict=True)):
                has_words = lifted or command.kernels[number] in given
                if has_words or slot_count(chain(*arrays), views) + SPARE_WORDS > REST_WORD:
                    yield rest_of(command.name, number)
                    if command.kernels[number].kind == "routine":
                        yield rest_before(command.name, number)
                if command.kernels[number].graph.outputs[0].op in _HAVE_MEMORY:
                    yield memory_of(command.name, number)
        elif isinstance(command, Guard):
            yield from (counts_of(command.name), groups_of(command.name))
        else:
            if not isinstance(command, kernel_commands.Guarded):
                yield from (rest_of_loop(command, is_last) for is_last in (False, True))
            yield from names_of_constants(command.commands, views, lifted, given)


def guards_of_loops(commands: Sequence[kernel_commands.Command]) -> Iterator[tuple[str, str]]:
    """The flags that end loops, with the names of the guards that set them."""
    for command in commands:
        if isinstance(command, (KernelStep, Guard)):
            continue
        if isinstance(command, kernel_commands.Until):
            yield from ((command.flag, held.name) for held in command.commands if isinstance(held, Guard))
        yield from guards_of_loops(command.commands)


def flags_of(commands: Sequence[kernel_commands.Command]) -> Iterator[str]:
    """The flags that end loops, which the host reads."""
    for command in commands:
        if isinstance(command, kernel_commands.Until):
            yield command.flag
        if not isinstance(command, (KernelStep, Guard)):
            yield from flags_of(command.commands)
